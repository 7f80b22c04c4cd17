from dataclasses import replace

import numpy as np

from avshift_core.latent.benchmark import line_case
from avshift_core.shift.analyze import analyze
from avshift_core.shift.trust import headline


def statuses(analysis):
    return {c.check: c.status for c in analysis.trust}


def test_a_good_comparison_shows_its_headline(line_analysis):
    assert line_analysis.headline() == "strata"
    assert "refuse" not in statuses(line_analysis).values()
    assert statuses(line_analysis)["drives"] == "caution"  # no drive ids on the line


def test_missing_overlap_withholds_the_number():
    pair = line_case("global", n=2000, seed=0)
    analysis = analyze(pair.P, pair.Q, repeats=1)
    assert analysis.verdict.name == "global_shift"
    assert analysis.local is None
    assert statuses(analysis)["uncovered_mass"] == "refuse"  # N(6, 1) reaches far beyond N(4, 0.8)
    assert analysis.headline() is None


def test_a_tight_clip_is_reported(line_analysis):
    checks = {c.check: c for c in line_analysis.recheck(0.5)}
    assert checks["clipped_mass"].status == "refuse"
    assert line_analysis.headline(checks=tuple(checks.values())) is None
    assert "raise the clip" in checks["clipped_mass"].text


def test_a_cohort_that_differs_from_itself_is_not_trusted(line_analysis):
    from avshift_core.shift.trust import trust_panel

    a = line_analysis
    bad = replace(a.global_test, aa_target=replace(a.global_test.aa_target, gamma_lcb=0.2))
    checks = trust_panel(bad, a.calibrations, a.balance, a.P.n, a.config)
    assert headline(checks, "ell") is None
    assert checks[0].status == "refuse"


def test_every_check_has_a_sentence(line_analysis):
    for check in line_analysis.trust:
        assert check.text.endswith(".")
        assert np.isfinite(check.value)
