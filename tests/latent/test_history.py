"""A corpus in time order: what the reference is, what comes later, and what cannot be put in order."""

import numpy as np
import pytest

from avshift_core.errors import AVShiftError, CohortError
from avshift_core.latent.history import read_history
from avshift_core.scenario.store.corpus import create_or_open, open_corpus
from tests.latent.weeks import add_week

DAYS = ("2026-03-02", "2026-03-09", "2026-03-16", "2026-03-23")  # Mondays of the weeks 10 to 13
REFERENCE = "period=2026-W10|2026-W11"


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    url = str(tmp_path_factory.mktemp("history") / "fleet")
    for k in (2, 0, 3, 1):  # imported in any order
        add_week(url, DAYS[k], n=60, drives=6, version="v2" if k == 3 else "v1")
    return open_corpus(url)


def test_weeks_and_drives_are_in_time_order(fleet):
    h = read_history(fleet, REFERENCE, "area=harbor", metrics=["discomfort"], latents="mine")
    assert h.periods == ("2026-W10", "2026-W11", "2026-W12", "2026-W13") and h.n_reference == 2
    assert (np.diff(h.week) >= 0).all() and (np.diff(h.unit) >= 0).all() and h.n_units == 24
    assert h.drives == (6,) * 4 and h.versions == (("v1",),) * 3 + (("v2",),) and h.cautions == ()
    table, z = fleet.table("period=2026-W12", columns=["drive_id"], metrics=["discomfort"], latents="mine")
    for k in np.flatnonzero(h.unit_week == 2):  # the rows of a drive are those of the corpus
        own, there = h.unit == k, (table["drive_id"] == h.unit_ids[k]).to_numpy()
        assert sorted(h.z[own, 0]) == sorted(z[there, 0])
        assert h.ell["discomfort"][own].sum() == table.loc[there, "discomfort"].sum()


def test_a_later_week_only_adds_at_the_end(fleet, tmp_path):
    url = str(tmp_path / "growing")
    for k in range(3):
        add_week(url, DAYS[k], n=60, drives=6)
    short = read_history(open_corpus(url), REFERENCE, latents="mine")
    add_week(url, DAYS[3], n=60, drives=6)
    long_ = read_history(open_corpus(url), REFERENCE, latents="mine")
    assert (long_.z[:180] == short.z).all() and long_.unit_ids[:18].tolist() == short.unit_ids.tolist()


def test_days_can_be_the_unit(fleet):
    h = read_history(fleet, REFERENCE, unit="day")
    assert h.unit_ids.tolist() == list(DAYS) and h.drives == (6,) * 4 and h.z is None


def test_some_weeks_only_and_weeks_before_the_reference(fleet):
    h = read_history(fleet, "period=2026-W10", "period=2026-W13")
    assert h.periods == ("2026-W10", "2026-W13") and h.cautions == ()
    h = read_history(fleet, "period=2026-W12")
    assert h.periods == ("2026-W12", "2026-W13")
    assert "2026-W10, 2026-W11 came before the end of the reference" in h.cautions[0]


@pytest.mark.parametrize(("reference", "where", "sentence"), [
    ("", "", "No reference is chosen"),
    ("period=2026-W10,area=harbor", "", "it is chosen by period alone"),
    ("period=2026-W13", "", "no week after the reference, which ends with 2026-W13"),
    ("period=2026-W09", "", "is of the reference period '2026-W09'. It holds 2026-W10, 2026-W11"),
    ("period=2026-W11", "period=2026-W10|2026-W12", "2026-W10 is not after the reference, which ends with 2026-W11"),
    ("period=2026-W10", "area=moon", "No scenario of .* has area=moon"),
    ("period=2026-W10", "weather=rain", "'weather' is no key of a cohort"),
])
def test_queries_of_which_no_history_comes(fleet, reference, where, sentence):
    with pytest.raises(AVShiftError, match=sentence):
        read_history(fleet, reference, where)


def test_no_drive_ids(tmp_path):
    url = str(tmp_path / "loose")
    for day in DAYS[:2]:
        add_week(url, day, n=60, known_drives=40)
    with pytest.raises(CohortError, match="40 of 120 scenarios have no drive id"):
        read_history(open_corpus(url), "period=2026-W10")


def test_a_metric_that_is_missing_in_some_weeks(tmp_path):
    url = str(tmp_path / "gaps")
    values = np.arange(60.0)
    values[:3] = np.nan
    add_week(url, DAYS[0], n=60, own=np.arange(60.0))
    add_week(url, DAYS[1], n=60, own=values)
    add_week(url, DAYS[2], n=60)
    with pytest.raises(CohortError, match=r"'own' is missing .* \(3 of 60 in 2026-W11, 60 of 60 in 2026-W12\)"):
        read_history(open_corpus(url), "period=2026-W10", metrics=["own"])
    with pytest.raises(AVShiftError, match="no metric 'crash'"):
        read_history(open_corpus(url), "period=2026-W10", metrics=["crash"])


def test_periods_without_dates_or_that_overlap(tmp_path, fleet):
    for name, day, period, sentence in (("undated", "unknown", "first", "60 of 120 scenarios have no date"),
                                        ("overlap", "2026-03-01", "first", "'first' .* and '2026-W10' .* overlap")):
        url = str(tmp_path / name)
        add_week(url, DAYS[0], n=60)
        _named_period(url, fleet, day, period)
        with pytest.raises(CohortError, match=sentence):
            read_history(open_corpus(url), "period=2026-W10")


def test_too_many_scenarios(fleet):
    with pytest.raises(CohortError, match="have 240 scenarios; at most 100 are read at once"):
        read_history(fleet, REFERENCE, most=100)


def test_a_drive_in_two_weeks_is_told(tmp_path):
    url = str(tmp_path / "midnight")
    for day in DAYS[:3]:
        add_week(url, day, n=60, drives=6)
    _named_period(url, None, "2026-03-17", "2026-W12", drive=f"{DAYS[0]}-d0")
    h = read_history(open_corpus(url), REFERENCE)
    assert "1 drives have scenarios in more than one week" in h.cautions[0]
    assert (h.unit_ids == f"{DAYS[0]}-d0").sum() == 2


def _named_period(url, corpus, day, period, drive="other"):
    """Sixty scenarios of a period of any name; from the day before to the day after for one that is to overlap."""
    import pandas as pd

    from avshift_core.scenario.schema import ID_FIELDS, UNKNOWN

    ids = pd.DataFrame({name: np.full(60, UNKNOWN, dtype=object) for name in ID_FIELDS})
    ids["scenario_id"] = [f"{period}-{day}-{i}" for i in range(60)]
    ids["drive_id"], ids["day"], ids["period"], ids["area"], ids["hour"] = drive, day, period, "harbor", 8
    if period == "first" and day != UNKNOWN:
        ids.loc[30:, "day"] = "2026-03-05"
    with create_or_open(url) as writer:
        writer.add_table(ids, pd.DataFrame({"ego_speed_mps": np.ones(60)}), {"discomfort": np.zeros(60)},
                         np.zeros((60, 3), np.float32), model="mine", source=f"{period}-{day}")
