"""The synthetic lab: words for how far from the truth."""

from __future__ import annotations

from avshift_core.glossary.entry import Entry

ENTRIES = (
    Entry(
        "truth", "Truth",
        "What a simulated fleet or a drawn case is made from, and of real traffic nobody knows: exact weights, the "
        "best classifier, the true rate.",
        "As a promise for your data: the tool is as good there only if your traffic behaves like the simulation.",
        also="ground truth oracle",
    ),
    Entry(
        "gamma-star", "Best possible advantage",
        "The advantage of the best classifier there can be. No test can show more.",
        "On two AV versions in the full view: the latents then hold the car as well, and can show more than the "
        "traffic.",
        r"\gamma^{*}=\tfrac12\,\mathrm{TV}(P,Q)=\tfrac14\,\mathbb E_P|w^{*}-1|", "prop:classifier_tv",
        also="gamma_star Bayes",
    ),
    Entry(
        "exact-weights", "Exact weights",
        "The true ratio of Q to P at every scenario. The error they leave is that of the sample, and no weighting can "
        "be expected to do much better.",
        "As a target of exactly zero error: they have the noise of the sample, too.",
        r"w^{*}(z)=\frac{dQ}{dP}(z)", "thm:oracle_lis_mse", ("estimator:exact",), "oracle w*",
    ),
    Entry(
        "bias", "Bias",
        "The mean signed distance of an estimate from the truth over the repeats: what does not go away with more of "
        "them.",
        "With few repeats: look at its interval.",
        r"\frac1R\sum_r(\hat\mu_r-\mu_r)", "", also="mean error",
    ),
    Entry(
        "rms-error", "Root mean square error",
        "The typical distance of an estimate from the truth, bias and noise together.",
        "With few repeats: one of them can rule it.",
        r"\sqrt{\frac1R\sum_r(\hat\mu_r-\mu_r)^2}", "", also="rms rmse",
    ),
    Entry(
        "coverage", "Coverage",
        "How often the interval held the true rate of Q. An honest 95 % interval does so in 95 of 100 repeats.",
        "With few repeats: after ten, 9 of 10 and 10 of 10 cannot be told apart.",
        r"\frac1R\#\{r:\mu_r\in[\mathrm{lo}_r,\mathrm{hi}_r]\}", "", also="interval Wilson",
    ),
    Entry(
        "precision-recall", "Precision and recall of regions",
        "Precision: of the scenarios in regions, the share whose true ratio is off 1 by more than 0.2. Recall: of all "
        "such scenarios, the share in regions.",
        "When nothing was found: there is then no precision, and the recall is 0.",
        r"\frac{|R\cap S|}{|R|},\qquad\frac{|R\cap S|}{|S|}", "", also="false discovery",
    ),
)
