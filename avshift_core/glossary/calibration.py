"""What P's metric would be in the traffic of Q."""

from __future__ import annotations

from avshift_core.glossary.entry import Entry

ENTRIES = (
    Entry(
        "naive", "Observed rate of P (naive)",
        "The mean of the metric over the scenarios of P as they were driven.",
        "As the rate in the traffic of Q, as soon as the two differ.",
        r"\hat\mu_P=\frac1{n_P}\sum_{i\in P}\ell_i", "sec:calibration_problem", ("estimator:naive",), "mu_naive mu_P",
    ),
    Entry(
        "target", "Observed rate of Q (target)",
        "The mean of the metric over the scenarios of Q: what calibration should come to if car and definition of the "
        "metric are the same on both sides.",
        "As a yardstick when P and Q were driven by different AV versions: the difference may be the car's.",
        r"\hat\mu_Q=\frac1{n_Q}\sum_{j\in Q}\ell_j", "eq:target_metric", ("estimator:target",), "mu_target mu_Q",
    ),
    Entry(
        "weight", "Weight",
        "How often a scenario of P is counted so that P as a whole looks like the traffic of Q: 2 counts twice, a half "
        "counts half.",
        "For scenarios where P is thin: look at the clip and at the effective sample.",
        r"w(z)=\frac{q(z)}{p(z)}", "thm:latent_calibration", also="importance weight density ratio w",
    ),
    Entry(
        "clip", "Clip B",
        "The largest weight a scenario may get. Low: steady numbers that lean towards P. High: closer to Q, but a few "
        "scenarios may dominate.",
        "When the estimate still moves at the largest clip, or when much of Q's mass is lost to it.",
        r"w_B(z)=\min\{w(z),\,B\}", "eq:localized_weight", also="B clipping slider sweep",
    ),
    Entry(
        "strata", "Cell by cell",
        "Every cell of latent space gets the weight it has in Q, and the metric is averaged inside the cells. The "
        "default headline: it needs no model of the metric, and its error was near the smallest on both benchmarks.",
        "When cells are coarse against the shift, so that the mix inside a cell changes as well.",
        r"\hat\mu=\sum_c \hat q_c\,\bar\ell_{P,c}", "", ("estimator:strata",), "post-stratification headline cells",
    ),
    Entry(
        "lis", "Region by region (LIS)",
        "Localized importance sampling: each detected region gets its share under Q, and everything outside shares "
        "what is left.",
        "When the shift is not in the regions: what they do not cover stays uncorrected.",
        r"\hat\mu=\sum_k\hat q_k\bar\ell_{k}+\Big(1-\sum_k\hat q_k\Big)\bar\ell_{\text{out}}", "eq:self_normalized_lis",
        ("estimator:lis",), "localized importance sampling mu_lis",
    ),
    Entry(
        "lis-paper", "Region by region (paper)",
        "Localized importance sampling as the paper has it: weights in regions, weight 1 outside.",
        "Whenever the regions' total share changes: with a perfect region and endless data it gives 0.4039 in the "
        "paper's own case, where the truth is 0.4118.",
        r"\hat\mu=\frac{\sum_i w_{k(i)}\ell_i}{\sum_i w_{k(i)}},\qquad w=1\ \text{outside}", "eq:self_normalized_lis",
        ("estimator:lis_paper",), "localized importance sampling",
    ),
    Entry(
        "ipw", "Classifier weights (IPW)",
        "Each scenario counts as often as the classifier's odds for Q say.",
        "When the classifier is overconfident, or when a few weights are very large (see the tail of the weights).",
        r"\hat\mu=\frac{\sum_i w_i\ell_i}{\sum_i w_i},\qquad w_i=\min\Big\{\frac{h_i}{1-h_i},B\Big\}",
        "thm:latent_calibration", ("estimator:ipw",), "inverse propensity weighting",
    ),
    Entry(
        "aipw", "Classifier weights and model (AIPW)",
        "Classifier weights, plus a model of the metric for what they miss: right if one of the two is.",
        "When weights and model are both learnt from too few events.",
        r"\hat\mu=\frac1{n_Q}\sum_Q m(z)+\frac{\sum_i w_i(\ell_i-m(z_i))}{\sum_i w_i}", "", ("estimator:aipw",),
        "augmented doubly robust outcome model",
    ),
    Entry(
        "balance", "Balanced weights",
        "The smallest change of the weights that gives P the mean of Q in the classifier's score and in the predicted "
        "event rate.",
        "When the classifier sees little of the shift: then there is little to balance. It is left out where no such "
        "weights exist.",
        r"\min_w\sum_i w_i\log w_i\quad\text{s.t.}\quad\sum_i w_i f(z_i)=\bar f_Q", "", ("estimator:balance",),
        "entropy balancing",
    ),
    Entry(
        "traffic", "Traffic and residual",
        "Traffic is what re-weighting to Q changes; the residual is what is left between the calibrated rate and the "
        "observed rate of Q. Is it the car, or the traffic it met?",
        "As proof that the car is worse: the residual also holds everything the latents do not show.",
        r"\hat\mu_Q-\hat\mu_P=\underbrace{(\hat\mu-\hat\mu_P)}_{\text{traffic}}+"
        r"\underbrace{(\hat\mu_Q-\hat\mu)}_{\text{residual}}", "sec:calibration_problem",
        also="residual decomposition car",
    ),
    Entry(
        "interval", "Interval of a rate",
        "Where the rate lies in 95 of 100 such comparisons, with drives as what is independent and the uncertainty of "
        "the weights included.",
        "With fewer than ten drives in which the event happened, and for what the latents do not show.",
        r"\hat\mu\pm t\,\sqrt{\sum_{\text{drives}}\Big(\sum_{i\in d}\mathrm{IF}_i\Big)^2}", "eq:oracle_lis_clt",
        also="confidence interval standard error influence function bootstrap",
    ),
    Entry(
        "exceedance", "Threshold of a metric",
        "A continuous metric as an event: whether it lies below or above a threshold. Its rate is the share of "
        "scenarios in which it does.",
        "When the conclusion hangs on one threshold: move it.",
        r"\ell=\mathbb 1\{x<\tau\}", "", also="event rate threshold slider ttc_min_s<1.5",
    ),
    Entry(
        "per-category", "Rates per category",
        "The same comparison inside each category of scenarios.",
        "In categories with few drives: their intervals are wide, and of many rows some will differ by chance.",
        "", "tab:full_scene_calibration", also="breakdown table",
    ),
)
