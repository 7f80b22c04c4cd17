"""The glossary covers what the dashboard shows, and every entry says what it has to."""

import ast
import re
from pathlib import Path

import pytest

from avshift_core.glossary import ENTRIES, GROUPS, entry_of, find
from avshift_core.scenario.measure.metrics import METRICS
from avshift_core.shift import trust
from avshift_core.shift.calibrate import ESTIMATORS

PAPER = Path(__file__).parents[2] / "shared" / "paper.tex"
# Statistics of the dashboard, by the words a reader would look for.
ASKED = (
    "cohort", "drive", "scenario", "region", "area", "latent", "advantage", "accuracy", "Wilson", "Hoeffding",
    "verdict", "TV", "A/A", "permutation", "AUC", "ROC", "reliability", "KS", "MMD", "W1", "ICC", "design effect",
    "detectable", "h_bar", "score h", "local effect", "p_adj", "p_k", "q_k", "w_k", "overlap violation", "clip B",
    "naive", "target", "LIS", "IPW", "AIPW", "balance", "cell by cell", "traffic", "residual", "ESS", "k-hat",
    "clipped", "uncovered", "SMD", "MSE", "event rate", "shrinkage", "clusters", "UMAP", "PCA", "trustworthiness",
    "fingerprint", "run id", "ledger", "looks", "exposure", "performance", "not comparable", "leakage probe",
    "detectable difference", "collection plan", "reference traffic", "e-process", "wealth", "anytime-valid",
    "reference period", "conformal",
)


def names_of_checks() -> set[str]:
    """First arguments of everything in trust.py that makes a check: none is forgotten when one is added."""
    tree = ast.parse(Path(trust.__file__).read_text())
    return {call.args[0].value for call in ast.walk(tree) if isinstance(call, ast.Call)
            and getattr(call.func, "id", "") in ("_low", "_high", "Check") and call.args
            and isinstance(call.args[0], ast.Constant)}


def test_every_check_of_the_trust_panel_is_explained(clustered_analysis):
    shown = {check.check for check in clustered_analysis.trust}
    assert shown <= names_of_checks() and len(shown) >= 13
    assert [name for name in sorted(names_of_checks()) if entry_of(f"check:{name}") is None] == []


@pytest.mark.parametrize("name", ["naive", "target", *ESTIMATORS])
def test_every_estimator_is_explained(name):
    assert entry_of(f"estimator:{name}").formula


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_has_its_own_definition(name):
    entry = entry_of(f"metric:{name}")
    assert METRICS[name].text in entry.sentence and entry.formula and entry.distrust


def test_every_reference_test_is_explained(clustered_analysis):
    assert all(entry_of(f"test:{t.name}") for t in clustered_analysis.reference)


@pytest.mark.parametrize("words", ASKED)
def test_what_a_reader_looks_for_is_found(words):
    whole = re.compile(rf"(?<!\w){re.escape(words.lower())}(?!\w)")
    assert [entry.key for entries in find(words).values() for entry in entries if whole.search(entry.text)]


def test_every_entry_is_whole():
    assert len({entry.key for entry in ENTRIES}) == len(ENTRIES) == sum(map(len, GROUPS.values()))
    codes = [code for entry in ENTRIES for code in entry.codes]
    assert len(set(codes)) == len(codes)
    for entry in ENTRIES:
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", entry.key), entry.key  # a safe anchor
        assert entry.sentence.rstrip().endswith((".", "?")) and entry.distrust.endswith("."), entry.key
        assert len(entry.sentence) > 25 and len(entry.distrust) > 15, entry.key
        assert "$" not in entry.sentence + entry.distrust + entry.term and "<" not in entry.sentence, entry.key


def test_formulas_are_balanced():
    for entry in ENTRIES:
        assert entry.formula.count("{") == entry.formula.count("}"), entry.key
        assert entry.formula.count(r"\left") - entry.formula.count(r"\leftarrow") == entry.formula.count(r"\right"), (
            entry.key)
        assert not re.search(r"\\q?quad[a-zA-Z]", entry.formula), entry.key  # a macro that swallowed a letter


@pytest.mark.skipif(not PAPER.is_file(), reason="the paper is not beside the project")
def test_labels_are_the_papers():
    known = set(re.findall(r"\\label\{([^}]*)\}", PAPER.read_text()))
    assert [(e.key, e.label) for e in ENTRIES if e.label and e.label not in known] == []


def test_search_narrows_by_words_and_group():
    assert sum(map(len, find("").values())) == len(ENTRIES)
    assert list(find("", "Trust")) == ["Trust"] and find("no such word anywhere") == {}
    both = {e.key for entries in find("Pareto tail").values() for e in entries}
    assert both == {"khat"}
