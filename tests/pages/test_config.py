"""The settings that a server of this project runs with: protected, quiet, and open to this machine only."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OPTIONS = (
    "server.enableXsrfProtection", "server.enableCORS", "server.corsAllowedOrigins", "server.trustedUserHeaders",
    "server.maxUploadSize", "server.enableStaticServing", "server.enableAgentApi", "server.address",
    "server.unsafeMetricsUserAttributes", "client.showErrorDetails", "client.showErrorLinks",
    "client.showSidebarNavigation", "browser.gatherUsageStats", "global.developmentMode",
    "global.maxCachedMessageAge",
)


@pytest.fixture(scope="module")
def option(tmp_path_factory):
    """What is in effect for `streamlit run` in the project's folder, without settings of this machine or user."""
    code = f"import json, streamlit.config as c; print(json.dumps({{o: c.get_option(o) for o in {OPTIONS!r}}}))"
    clean = {name: value for name, value in os.environ.items() if not name.startswith("STREAMLIT_")}
    out = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True,
                         env={**clean, "HOME": str(tmp_path_factory.mktemp("home"))}).stdout
    return json.loads(out)


def test_requests_from_other_sites_are_refused(option):
    assert option["server.enableXsrfProtection"] is True and option["server.enableCORS"] is True
    assert option["server.corsAllowedOrigins"] == [] and not option["global.developmentMode"]


def test_browsers_keep_messages_for_longer_than_runs_overtake_each_other(option):
    """With Streamlit's 2, pages under load stood still (benchmarks/load.py)."""
    assert option["global.maxCachedMessageAge"] >= 30


def test_nobody_is_trusted_for_a_header_and_nothing_is_served_beside_the_pages(option):
    assert not option["server.trustedUserHeaders"] and not option["server.unsafeMetricsUserAttributes"]
    assert option["server.enableAgentApi"] is False and option["server.enableStaticServing"] is False


def test_errors_tell_a_visitor_and_other_sites_nothing_about_the_server(option):
    assert option["client.showErrorDetails"] == "none"
    assert str(option["client.showErrorLinks"]).lower() == "false"  # links that send the error to other sites


def test_uploads_have_a_limit(option):
    assert 0 < option["server.maxUploadSize"] <= 500  # MB


def test_nothing_is_reported_to_others_and_no_helper_is_listed_as_a_page(option):
    assert option["browser.gatherUsageStats"] is False and option["client.showSidebarNavigation"] is False


def test_without_more_the_dashboard_is_open_to_this_machine_only(option):
    assert option["server.address"] in ("localhost", "127.0.0.1")


def test_secrets_are_never_committed():
    ignored = (ROOT / ".gitignore").read_text().split()
    assert ".streamlit/secrets.toml" in ignored
    assert "cookie_secret" not in (ROOT / ".streamlit" / "config.toml").read_text()
