"""Pieces of a page that several pages share: conclusion, key numbers, estimators, trust panel, p-values, settings."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from math import floor, log10
from types import MappingProxyType

import streamlit as st

from avshift_core.comparison import Comparison
from avshift_core.config import AnalysisConfig
from avshift_core.notebook import RegionNote
from avshift_core.plots.metrics import LABELS
from avshift_core.shift.analyze import Analysis
from avshift_core.shift.calibrate import ESTIMATORS, Calibration
from avshift_core.shift.gate import GLOBAL_SHIFT, LOCALIZE, NO_SHIFT
from avshift_core.shift.regions import RegionFacts, region_shares
from avshift_core.shift.trust import CAUTION, OK, REFUSE, Check
from pages.common import state
from pages.common.notes import badge
from pages.common.text import count, escape, percent, span

NUMBERS_S = 0.08  # a browser on two slow cores needs as long for a row of numbers
BADGES = {
    NO_SHIFT: ("green", ":material/check_circle:"), LOCALIZE: ("orange", ":material/my_location:"),
    GLOBAL_SHIFT: ("red", ":material/public:"),
}
SENTENCES = {
    "naive": "The event rate of P as it was observed; right for Q only if the traffic is the same.",
    "strata": "Latent space is cut into cells without looking at P or Q, and each cell carries its mass under Q. "
    "The default headline.",
    "lis": "Localized importance sampling: each detected region carries its mass under Q, measured on scenarios that "
    "did not choose it; the rest shares what is left.",
    "lis_paper": "Localized importance sampling as in the paper: regions are balls around neighbours, the weight "
    "outside is 1, masses are measured where the regions were chosen.",
    "balance": "The smallest change of the weights that gives P the mean of Q in the classifier's score and in the "
    "predicted event rate (entropy balancing).",
    "ipw": "Each scenario counts as often as the classifier's odds for Q say (inverse propensity weighting).",
    "aipw": "Classifier weights, and a model of the event rate for what they miss (doubly robust).",
    "target": "The event rate of Q itself, known here for comparison.",
}
CHECKS = {
    "aa_placebo": "A cohort against itself", "drives": "Scenarios of one drive", "ess": "Effective scenarios",
    "ess_drives": "Effective drives", "khat": "Tail of the weights", "clipped_mass": "Lost to the clip",
    "uncovered_mass": "Not covered by P", "top_drive": "Heaviest drive", "smd_after": "Mean differences left",
    "weighted_c2st": "Shift left after weighting", "mse_gain": "Bias removed, noise added",
    "agreement": "Agreement of the estimators", "events": "Events seen in P",
}
STATUS = {
    REFUSE: (":red-badge[:material/block: refuse]", 0), CAUTION: (":orange-badge[:material/warning: caution]", 1),
    OK: (":green-badge[:material/check: ok]", 2),
}
AT_CONFIG_CLIP = ("smd_after", "weighted_c2st")  # costly checks, not measured again when the clip moves
TESTS = {
    "ks": "Kolmogorov-Smirnov", "ks_h": "Kolmogorov-Smirnov on the classifier's score",
    "mmd": "Maximum mean discrepancy", "w1": "Wasserstein distance",
}


def refusals(checks: tuple[Check, ...]) -> list[Check]:
    return [check for check in checks if check.status == REFUSE]


def check_title(check: Check) -> str:
    return CHECKS.get(check.check, check.check)


def verdict_badges(analysis: Analysis) -> None:
    decision = analysis.verdict
    color, icon = BADGES[decision.name]
    with st.container(horizontal=True, vertical_alignment="center"):
        st.badge(decision.title, icon=icon, color=color,
                 help="The verdict: the band in which the lower bound of the advantage lies.")
        if not decision.decided:
            st.badge("undecided", icon=":material/help:", color="gray",
                     help="The interval of the advantage reaches into the next band: more scenarios are needed.")


def conclusion(
    analysis: Analysis, calibration: Calibration, headline: str | None, checks: tuple[Check, ...], event: str
) -> None:
    """The first line: what to believe, with the verdict's badge.

    Args:
        event: the metric in words.
    """
    verdict_badges(analysis)
    st.markdown(f"### {conclusion_words(analysis, calibration, headline, checks, event)}")
    st.caption(analysis.verdict.sentence)
    if headline is not None:
        st.markdown(gap_words(calibration))


def gap_words(calibration: Calibration) -> str:
    """Car or traffic: what of the difference between the observed rates the traffic explains, and what is left over."""
    gap, traffic, left = calibration.target.mu - calibration.naive.mu, calibration.traffic, calibration.residual
    points = lambda e: f"**{100 * e.mu:+.2f}** ({100 * e.lo:+.2f} to {100 * e.hi:+.2f})"  # noqa: E731
    end = ("within what chance gives." if left.lo <= 0 <= left.hi else
           "not the traffic that was seen, but another AV version, or what the latents do not show.")
    return (f"Q itself shows {percent(calibration.target.mu)}, {100 * gap:+.2f} percentage points from P. The traffic "
            f"explains {points(traffic)} of them; {points(left)} are left over: {end}")


def conclusion_words(analysis: Analysis, calibration: Calibration, headline, checks, event: str) -> str:
    regions = analysis.local.regions if analysis.local is not None else ()
    where = {
        NO_SHIFT: _no_shift(analysis),
        LOCALIZE: f"Q differs from P in {count(len(regions), 'region')}." if regions
        else "Q differs moderately from P, but in no region that could be confirmed.",
        GLOBAL_SHIFT: "Q differs strongly from P.",
    }[analysis.verdict.name]
    event = escape(event[:1].lower() + event[1:])
    if headline is None:
        first, *more = refusals(checks)
        others = f" and {count(len(more), 'other check')}" if more else ""
        return f"{where} The calibrated rate of “{event}” is withheld, because of “{check_title(first)}”{others}."
    value, naive = percent(getattr(calibration, headline).mu), percent(calibration.naive.mu)
    none_seen = calibration.traffic.lo <= 0 <= calibration.traffic.hi
    if none_seen and analysis.verdict.name == NO_SHIFT:
        return f"{where} The observed rate of “{event}” is {naive}; calibrated to Q it is {value}."
    if none_seen:
        return (f"{where} For “{event}” that makes no difference that could be seen: calibrated to Q {value}, observed "
                f"in P {naive}.")
    return f"{where} For “{event}” in Q read the calibrated {value}, not the observed {naive}."


def _no_shift(analysis: Analysis) -> str:
    upto = f"{analysis.global_test.gamma_ucb:.3f}"
    if analysis.verdict.decided:
        return f"No classifier that was trained tells P from Q by an advantage of more than {upto}."
    return f"No shift between P and Q could be shown; an advantage up to {upto} is not excluded."


def key_numbers(analysis: Analysis, calibration: Calibration, headline: str | None) -> None:
    """The row of numbers, each with its interval and what it means."""
    test, level = analysis.global_test, f"{analysis.config.level:.0%}"
    quiet = {"delta_color": "off", "delta_arrow": "off", "border": True, "height": "stretch"}
    with st.grid(5, min_column_width=165):
        st.metric(
            "Advantage", f"{test.gamma_hat:.3f}", f"{test.gamma_lcb:.3f} to {test.gamma_ucb:.3f}", **quiet,
            help="How much better than a coin a classifier tells P and Q apart on scenarios it has not seen: 0 not at "
            f"all, 0.5 without error. The bounds are one-sided, each with error level {analysis.config.alpha:g}.",
        )
        st.metric(
            "Observed rate (P)", percent(calibration.naive.mu), span(calibration.naive), **quiet,
            help=f"Share of the scenarios of P with an event, with its {level} interval.",
        )
        if headline is None:
            st.metric(
                "Calibrated to Q", "withheld", "see Trust", **quiet,
                help="A check of the trust panel refuses the number: it would not be the event rate of Q.",
            )
        else:
            estimate = getattr(calibration, headline)
            st.metric(
                "Calibrated to Q", percent(estimate.mu), span(estimate), **quiet,
                help=f"Event rate that P's scenarios give in the traffic of Q ({LABELS[headline].lower()}), with its "
                f"{level} interval.",
            )
        st.metric(
            "Observed rate (Q)", percent(calibration.target.mu), span(calibration.target), **quiet,
            help=f"Share of the scenarios of Q with an event, with its {level} interval: the calibrated rate should "
            "meet it.",
        )
        st.metric(
            "Effective sample", f"{calibration.ess:,.0f}", f"{calibration.ess / analysis.P.n:.0%} of {analysis.P.n:,}",
            **quiet,
            help="As many unweighted scenarios would be as informative as P with its weights. No interval: it is a "
            "property of the weights, not an estimate.",
        )


def numbers_first() -> None:
    """Let the browser show the numbers before the figures come: what arrives together, it draws together."""
    time.sleep(NUMBERS_S)


def regions_text(
    analysis: Analysis, described: Sequence[RegionFacts] = (), notes: Mapping[int, RegionNote] = MappingProxyType({})
) -> None:
    """Which regions there are, or why there are none. A stop is a result.

    Args:
        described: R1, R2, ... with their names, where they are at hand.
        notes: what people say about them.
    """
    local, config = analysis.local, analysis.config
    if local is None and analysis.verdict.name == GLOBAL_SHIFT:
        st.info(
            f"Localization stopped on purpose: the advantage lies above {config.gamma_large:g}, too much for regions "
            "to explain. Next step: choose a P that is closer to Q.",
            icon=":material/stop_circle:",
        )
    elif local is None:
        st.info(
            f"Localization stopped on purpose: the lower bound of the advantage is below {config.gamma_small:g}, so no "
            "shift could be shown that one could look for. Next step: none, unless a smaller shift matters; then add "
            "scenarios.",
            icon=":material/stop_circle:",
        )
    elif not local.regions:
        st.info(
            f"Regions were looked for and none was found: {count(local.n_candidates, 'candidate')} proposed by one "
            "part of the scenarios, none confirmed by the other.", icon=":material/search_off:",
        )
    else:
        rows = []
        for region, shares in zip(local.regions, described or region_shares(analysis), strict=True):
            rows.append({
                "Region": f"**R{region.k}** {escape(shares.name)} {badge(notes.get(region.k))}".rstrip()
                if described else f"R{region.k}",
                "Share of P": f"{percent(shares.p.mu)} :gray[({span(shares.p)})]",
                "Share of Q": f"{percent(shares.q.mu)} :gray[({span(shares.q)})]",
                "Q / P": f"{region.w_k:.2f}" if shares.ratio is None
                else f"{shares.ratio.mu:.2f} :gray[({shares.ratio.lo:.2f} to {shares.ratio.hi:.2f})]",
            })
        st.table(rows, hide_index=True, border="horizontal", alt="Detected regions with their shares of P and Q")
    for bare in () if local is None else local.overlap_violations:
        st.caption(f"{percent(bare.q_k)} of Q lies where P has next to nothing (grey): not weighted.")


def estimator_table(calibration: Calibration, headline: str | None) -> None:
    """All estimators side by side, each with one sentence."""
    rows = []
    for name, label in LABELS.items():
        estimate = calibration.estimates()[name]
        rows.append({
            "Estimator": f"**{label}** (headline)" if name == headline else label,
            "Rate": "—" if estimate is None else percent(estimate.mu),
            "Interval": "no regions were looked for" if estimate is None and name.startswith("lis")
            else "no such weights exist" if estimate is None else span(estimate),
            "What it does": SENTENCES[name],
        })
    st.table(rows, hide_index=True, border="horizontal", alt="Event rate by every estimator")


def trust_list(checks: tuple[Check, ...], config: AnalysisConfig, B: float) -> None:
    """Every check with its status and its own sentence, the worst first; red ones withhold the headline."""
    refused = refusals(checks)
    if refused:
        names = ", ".join(f"“{check_title(c)}”" for c in refused)
        st.error(f"The calibrated number is withheld because of: {names}.", icon=":material/block:")
    with st.grid(2, min_column_width=380):
        for check in sorted(checks, key=lambda c: STATUS[c.status][1]):
            _trust_line(check, config, B)


def _trust_line(check: Check, config: AnalysisConfig, B: float) -> None:
    note = f" Measured at clip {config.B:g}." if check.check in AT_CONFIG_CLIP and config.B != B else ""
    st.markdown(f"{STATUS[check.status][0]} **{check_title(check)}.** {escape(check.text)}{note}")


def p_values(analysis: Analysis) -> None:
    """Every p-value, and why none of them is the verdict."""
    test = analysis.global_test
    rows = [
        _p_row("Classifier (area under the ROC curve)", f"{test.auc:.4f}", test.p_value),
        _p_row("Neighbours of the same cohort", "", test.p_neighbors),
    ]
    rows += [
        _p_row(TESTS.get(r.name, r.name), f"{r.statistic:.4g}", r.p_value, r.p_asymptotic) for r in analysis.reference
    ]
    st.table(rows, hide_index=True, border="horizontal", alt="p-values of the global test and of the reference tests")
    st.caption(
        "A p-value says whether there is a shift, not how large it is. With many scenarios the slightest difference "
        "drives it to its floor, one over the number of permutations plus one "
        f"({1 / (analysis.config.n_perm + 1):.3g} for the first two), and there it stays however large the shift; the "
        "closed form goes on falling, but assumes that scenarios of a drive are independent. The verdict therefore "
        "rests on the size of the advantage and its bounds."
    )


def _p_row(test: str, statistic: str, p: float, closed: float | None = None) -> dict[str, str]:
    return {"Test": test, "Statistic": statistic, "p by permutation": f"{p:.3g}",
            "p in closed form": "" if closed is None else f"{closed:.2g}"}


def in_words(comparison: Comparison, sentence: str, metric: str) -> str:
    """A sentence of the engine with the metric and the estimators as people call them."""
    sentence = re.sub(rf"\b({'|'.join(ESTIMATORS)})\b", lambda m: f"“{LABELS[m[0]]}”", sentence)
    return sentence.replace(metric, f"“{comparison.phrase(metric)}”")


def checks_in_words(comparison: Comparison, checks: tuple[Check, ...], metric: str) -> tuple[Check, ...]:
    return tuple(replace(check, text=in_words(comparison, check.text, metric)) for check in checks)


def trust_summary(checks: tuple[Check, ...]) -> None:
    """How many checks are of which kind, and what the worst of them say."""
    numbers = {status: sum(c.status == status for c in checks) for status in STATUS}
    words = {REFUSE: ("red", "refuse"), CAUTION: ("orange", "to note"), OK: ("green", "ok")}
    st.markdown(" ".join(f":{words[s][0]}-badge[{n} {words[s][1]}]" for s, n in numbers.items() if n or s == OK))
    for check in [c for c in checks if c.status != OK][:4]:
        st.markdown(f"{STATUS[check.status][0]} **{check_title(check)}.** {escape(check.text)}")


def settings_form(names: tuple[str, ...]) -> None:
    """A widget for each of these settings; they take effect together, and stand in the URL when they differ."""
    defaults = {f.name: f for f in fields(AnalysisConfig)}
    with st.form("settings", border=False):
        with st.grid(4, min_column_width=190):
            for name in names:
                _setting_widget(defaults[name])
        left, right = st.columns(2, width=420)
        left.form_submit_button("Apply and run again", type="primary", on_click=_apply, args=(names,))
        right.form_submit_button("Back to the defaults", on_click=_reset, args=(names,))


def _apply(names: tuple[str, ...]) -> None:
    defaults = {f.name: f.default for f in fields(AnalysisConfig)}
    for name in names:
        new = st.session_state[f"setting_{name}"]
        state.go(**{name: None if new == defaults[name] else new if isinstance(new, (bool, str)) else f"{new:.12g}"})


def _reset(names: tuple[str, ...]) -> None:
    state.go(**dict.fromkeys(names))


def _setting_widget(setting):
    meta, kind, key = setting.metadata, type(setting.default), f"setting_{setting.name}"
    text, common = state.value(setting.name), {"key": key, "help": meta["help"]}
    shown = setting.default
    if text:
        shown = text == "1" if kind is bool else kind(state.real(setting.name, setting.default)) if kind is not str \
            else text
    if meta["choices"]:
        st.session_state[key] = shown if shown in meta["choices"] else setting.default
        return st.selectbox(setting.name, meta["choices"], **common)
    if kind is bool:
        st.session_state[key] = shown
        return st.toggle(setting.name, **common)
    low, high = (None if end is None else kind(end) for end in (meta["low"], meta["high"]))
    inside = (low is None or shown >= low) and (high is None or shown <= high)
    st.session_state[key] = shown if inside else setting.default
    step = 1 if kind is int else 10.0 ** floor(log10(setting.default))
    return st.number_input(setting.name, min_value=low, max_value=high, step=step,
                           format="%d" if kind is int else "%g", **common)
