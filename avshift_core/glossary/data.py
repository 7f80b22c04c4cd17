"""What is compared: cohorts, drives, scenarios, latents, metrics, and the names of results."""

from __future__ import annotations

from avshift_core.glossary.entry import Entry
from avshift_core.scenario.measure.metrics import METRICS

ENTRIES = (
    Entry(
        "source", "P, the source",
        "The cohort that was driven, and whose scenarios are re-weighted. Blue everywhere.",
        "As representative of all traffic: it is what this fleet met in this period and area.", "", "sec:problem",
        also="observed",
    ),
    Entry(
        "target-cohort", "Q, the target",
        "The cohort in whose traffic the number is wanted. Orange everywhere.",
        "When it was driven by another AV version: compare by context then, and read the residual with care.", "",
        "sec:problem", also="target",
    ),
    Entry(
        "cohort", "Cohort",
        "All scenarios of one choice of period, area, AV version, category, route or hour.",
        "Below 200 scenarios or 10 drives: such a cohort is refused.", also="query filter",
    ),
    Entry(
        "drive", "Drive",
        "One uninterrupted trip of one vehicle. Its scenarios are alike, so drives, not scenarios, are what is counted "
        "as independent.",
        "When drive ids are missing or shared between vehicles: bounds are then too tight.", also="drive_id cluster",
    ),
    Entry(
        "scenario", "Scenario",
        "A few seconds around something that happened: the ego, the agents around it and the road.",
        "When the log's rate is below 5 Hz: short events are missed.", "", "sec:problem", also="scene",
    ),
    Entry(
        "area", "Area",
        "A place on the map, such as a district. A place in latent space is called a region.",
        "As the cause of a difference: areas differ in many ways at once.", also="place map region",
    ),
    Entry(
        "period", "Period",
        "A stretch of time, usually an ISO week.",
        "When the fleet changed its routes in it: then the period is a change of plan, not of traffic.", also="week",
    ),
    Entry(
        "latent", "Latent z",
        "64 numbers that an encoder made of a scenario: scenarios that look alike have latents that lie near each "
        "other.",
        "For what the encoder does not see: weather, light, and anything that is not in the log.",
        r"z=\phi(X)\in\mathbb R^{64}", "sec:ae_impl", also="embedding vector representation",
    ),
    Entry(
        "view", "View: whole scenario or context",
        "The whole scenario holds the AV's own reaction; the context view shows what the AV did not cause, and is the "
        "one to compare AV versions by.",
        "Whole scenario, with two AV versions: the shift may be the car's. Context: it ends before the AV can have "
        "changed the others, so it knows less.", also="full context",
    ),
    Entry(
        "metric", "Metric",
        "What is counted in a scenario, from 0 to a largest value. Its mean is the rate that is calibrated.",
        "When its definition has another version on the two sides: such cohorts are refused.",
        r"\ell(X)\in[0,M]", "eq:target_metric", also="event rate ell",
    ),
    Entry(
        "low-rate", "Low rate",
        "States below 5 Hz. Metrics that need more miss short events there.",
        "In a comparison of a low-rate cohort with another one.", also="sampling rate Hz low_rate",
    ),
    Entry(
        "derived", "Derived values",
        "What the log lacks and was filled in: sizes, headings, speeds.",
        "For gaps, times to collision and collisions where sizes are typical ones: a collision is then no proof of "
        "contact.", also="imputed typical size",
    ),
    Entry(
        "fingerprint", "Fingerprint",
        "A hash over every byte of a cohort or corpus: equal fingerprints, equal data.",
        "As a name for people: it says that data is the same, not what it is.",
        r"\mathrm{SHA\text{-}256}", also="hash identity",
    ),
    Entry(
        "run", "Run",
        "Twelve digits that name data, latents, settings and engine of a comparison. Equal runs, equal numbers; it "
        "stands on every page and in every export.",
        "Across versions of the engine: another version is another run, even if all numbers agree.",
        also="run id stamp",
    ),
    Entry(
        "looks", "Looks at a corpus",
        "How many comparisons were made on a corpus, by anybody; the ledger lists them. The more looks, the likelier "
        "that one of them shows what is not there: the formula is for n independent looks of error level alpha each.",
        "As the true chance of a false alarm: looks share scenarios, the bounds err less often than their level, and "
        "whoever copies the corpus elsewhere looks without being counted.",
        r"1-(1-\alpha)^{n}", also="ledger multiple comparisons false alarm looks forking",
    ),
)

# Formula and limits of each metric; the definition itself is that of the registry, in its own words.
NOTES: dict[str, tuple[str, str, str]] = {
    "ttc_min_s": (
        "Time to collision, smallest", r"\min_{t,a}\mathrm{TTC}_{t,a}",
        "As a risk by itself: at low speed small values are common. Below 5 Hz short closings are missed."),
    "drac_mps2": (
        "Deceleration needed (DRAC)", r"\max_t\frac{(\Delta v_t)_+^2}{2\,g_t}",
        "In the last seconds of a scenario, where what lies ahead on the path is a guess."),
    "thw_min_s": (
        "Time headway, smallest", r"\min_t\frac{g_t}{v_t},\quad v_t\ge 1\ \mathrm{m/s}",
        "In queues, where a small headway is usual."),
    "gap_min_m": (
        "Gap, smallest", r"\min_{t,a}\mathrm{dist}(\text{ego}_t,\text{box}_{a,t})",
        "When boxes are of typical size because the log has none: errors of half a metre are then usual."),
    "collision": (
        "Collision", r"\mathbb 1\{\min_t\mathrm{gap}_t=0\}",
        "As real contact when boxes are derived, and for rates of a few events: the interval rests on the drives that "
        "saw one."),
    "hard_brake": (
        "Hard brake", r"\mathbb 1\{\min_t\bar a_t<-3\ \mathrm{m/s^2}\}",
        "As discomfort of a passenger: no duration is required, a short touch of the brake counts."),
    "jerk_max_mps3": (
        "Jerk, largest", r"\max_t|\dot a_t|", "With noisy accelerations: jerk is their slope."),
    "lateral_acceleration_max_mps2": (
        "Lateral acceleration, largest", r"\max_t|v_t\,\dot\psi_t|",
        "When headings were derived from positions: yaw rates are then coarse."),
    "comfort_score": (
        "Comfort score", r"\max_{q,t}\frac{|q_t|}{\text{bound}_q}",
        "Against figures of nuPlan's own tools: the bounds are theirs, the filters are ours."),
    "comfort_bound_exceeded": (
        "Comfort bound exceeded", r"\mathbb 1\{\text{comfort score}>1\}", "Against nuPlan's own score, as above."),
    "discomfort": (
        "Discomfort", r"\mathbb 1\{\text{comfort score}>\tau\}",
        "When the conclusion hangs on the threshold: move it."),
    "duration_s": (
        "Duration", r"\sum_t\Delta t", "As exposure of a whole drive: scenarios are cut from drives."),
    "distance_km": (
        "Distance", r"\int v\,dt", "As exposure of a whole drive: scenarios are cut from drives."),
}


def metric_entries() -> tuple[Entry, ...]:
    """One entry a metric of the registry."""
    found = []
    for name, metric in METRICS.items():
        term, formula, distrust = NOTES[name]
        unit = "" if metric.unit in ("0/1", "ratio") else f" In {metric.unit}, cut at {metric.M:g}."
        found.append(Entry(f"metric-{name.replace('_', '-')}", term, f"{metric.text}{unit}", distrust, formula, "",
                           (f"metric:{name}",), name))
    return tuple(found)
