"""What must hold before a calibrated number may be shown."""

from __future__ import annotations

from avshift_core.glossary.entry import Entry

ENTRIES = (
    Entry(
        "headline", "Headline and withheld",
        "The calibrated number that is shown first. One red check withholds it, because it would not be the rate of Q.",
        "When the number is shown with orange checks: read their sentences.",
        also="trust panel refuse caution ok red orange green",
    ),
    Entry(
        "indicator", "Safety performance indicator",
        "A metric with a threshold that a claim rests on. In the evidence pack it holds when the whole interval of the "
        "calibrated rate lies at or below the threshold, and is violated when all of it lies above.",
        "When the threshold was chosen after looking at the rate, and when the metric is about comfort rather than "
        "safety.",
        also="SPI claim threshold safety case UL 4600 evidence pack",
    ),
    Entry(
        "ess", "Effective scenarios",
        "As many unweighted scenarios would be as informative as P with its weights.",
        "As a count of independent scenarios: it knows about weights, not about drives. See effective drives.",
        r"\mathrm{ESS}=\frac{(\sum_i w_i)^2}{\sum_i w_i^2}", "eq:oracle_lis_mse", ("check:ess",),
        "effective sample size Kish",
    ),
    Entry(
        "ess-drives", "Effective drives",
        "The same for drives: how many drives carry the estimate. Below 20 be careful, below 8 no number is shown.",
        "When drive ids are missing: every scenario then counts as a drive.",
        r"\frac{(\sum_d W_d)^2}{\sum_d W_d^2},\qquad W_d=\sum_{i\in d}w_i", "", ("check:ess_drives",), "ess_drives",
    ),
    Entry(
        "khat", "Tail of the weights",
        "How heavy the tail of the classifier weights is before the clip: above 0.7 a few scenarios dominate.",
        "As a statement about the headline: cell weights do not use the classifier.",
        r"w_{(j)}-u\sim\mathrm{GPD}(\hat k,\sigma)", "", ("check:khat",), "Pareto k-hat PSIS",
    ),
    Entry(
        "clipped-mass", "Lost to the clip",
        "The share of Q that weights above B would have carried. The estimate leans towards P by it.",
        "When it is small but the metric is large exactly there.",
        r"\sum_c\left(\hat q_c-B\,\hat p_c\right)_+", "eq:localized_weight", ("check:clipped_mass",), "clipped_mass",
    ),
    Entry(
        "uncovered-mass", "Not covered by P",
        "The share of Q that lies where P has next to nothing. No weight can speak for it.",
        "As harmless because it is small: rare kinds of scenarios can hold most of the events.",
        r"\sum_{c:\;\hat p_c<\varepsilon(\hat p_c+\hat q_c)}\hat q_c", "ass:latent_shift", ("check:uncovered_mass",),
        "uncovered_mass overlap support",
    ),
    Entry(
        "top-drive", "Heaviest drive",
        "The share of the weight that lies on one drive. Above a tenth, look at that drive.",
        "When P has few drives anyway.",
        r"\max_d W_d\big/\sum_d W_d", "", ("check:top_drive",), "top_drive",
    ),
    Entry(
        "smd-after", "Mean differences left",
        "The largest difference of means in any latent dimension after weighting, in units of its spread: should be "
        "below 0.1.",
        "As proof of balance: means can agree while the distributions do not. The test on weighted data looks further.",
        r"\max_j\left|\frac{\sum_i w_iz_{ij}}{\sum_i w_i}-\bar z_{Q,j}\right|\Big/s_j", "", ("check:smd_after",),
        "SMD standardised love plot balance",
    ),
    Entry(
        "weighted-c2st", "Shift left after weighting",
        "The classifier test between weighted P and Q. If the weights did their work it is back at chance.",
        "When it could not have seen much: compare with the detectable advantage.",
        r"\hat\gamma(P_w,Q)\approx0", "sec:two_stage_tst", ("check:weighted_c2st",), "weighted_c2st residual shift",
    ),
    Entry(
        "mse-gain", "Bias removed, noise added",
        "Calibration pays when the squared bias it removes is larger than the variance it adds.",
        "When the move is within its own error: observed and calibrated rate can then not be told apart.",
        r"\Delta^2>\frac{\sigma_{\mathrm{LIS}}^2-\sigma_P^2}{n}", "eq:lis_mse_dominance", ("check:mse_gain",),
        "mean squared error MSE condition variance",
    ),
    Entry(
        "agreement", "Agreement of the estimators",
        "The distance of the farthest other estimator from the headline, in standard errors: above 2 be careful, above "
        "4 no number is shown.",
        "As proof of truth: all estimators see the same latents, and may be wrong together.",
        r"\max_e\frac{|\hat\mu_e-\hat\mu|}{\sqrt{\mathrm{se}_e^2+\mathrm{se}^2}}", "", ("check:agreement",), "agree",
    ),
    Entry(
        "events", "Events seen in P",
        "The number of drives of P in which the event happened. Below 10 be careful, below 5 there is no interval "
        "worth showing.",
        "When the few drives share a vehicle or a day.",
        r"\#\{d\in P:\ \textstyle\sum_{i\in d}\ell_i>0\}", "", ("check:events",), "event_drives rare events",
    ),
)
