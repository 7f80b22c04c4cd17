"""Stage II: where P and Q differ."""

from __future__ import annotations

from avshift_core.glossary.entry import Entry

ENTRIES = (
    Entry(
        "cell", "Cell",
        "One of up to 256 small pieces of latent space, cut without looking at which scenario is of P or Q, so that "
        "its masses under both are honest counts.",
        "When it holds few scenarios: its masses are then mostly chance.",
        r"c(z)=\arg\min_k\|z-\mu_k\|", "", also="k-means partition n_cells",
    ),
    Entry(
        "region", "Region",
        "A connected group of cells that holds clearly more of Q than of P, or the other way round. One part of the "
        "drives proposes it, the other confirms and measures it. It is a place in latent space; a place on the map is "
        "an area.",
        "As a kind of scenario with sharp borders: it is cut from cells, and its fringe is uncertain.",
        r"R_k=\bigcup_{c\in C_k}\{z:c(z)=c\}", "app:local_shift_detection", also="R1 R_k mismatch region area",
    ),
    Entry(
        "h", "Score h",
        "The classifier's probability that a scenario is of Q, from a model that saw neither it nor its drive: above a "
        "half it looks like Q, below like P.",
        "For one scenario alone: it is a soft hint. Regions rest on many drives.",
        r"h(z)=\frac{q(z)}{p(z)+q(z)}", "eq:c2st_posterior", also="posterior logit",
    ),
    Entry(
        "h-bar", "Smoothed score",
        "The mean of the score over the nearest neighbours of a scenario in latent space: the local mix of P and Q.",
        "Near borders of regions, where the neighbourhood reaches across.",
        r"\bar h_i=\frac1k\sum_{j\in\mathcal N_k(i)}h(Z_j)", "eq:smoothed_classifier_score", also="h_bar",
    ),
    Entry(
        "local-effect", "Local effect size s",
        "How uneven the mix of P and Q is in a place, as the absolute log-odds of the smoothed score: 0 is even, 0.69 "
        "is two to one.",
        "As a proof: a large value in a place with few drives may be chance. The adjusted p-value tells.",
        r"s_i=\left|\log\frac{\tilde h_i}{1-\tilde h_i}\right|", "eq:local_effect_size", also="s score log-odds",
    ),
    Entry(
        "p-adj", "Adjusted p-value",
        "The p-value of a region, corrected for the number of candidates that were tested; at most 5 % of the regions "
        "that are shown are expected to be false.",
        "With drive ids that are wrong or missing.",
        r"p_{(i)}^{\text{adj}}=\min_{j\ge i}\frac{m}{j}\,p_{(j)}", "app:local_shift_detection",
        also="p_adj Benjamini-Hochberg false discovery rate multiple testing q-value",
    ),
    Entry(
        "masses", "Shares of P and Q in a region",
        "The share of P's and of Q's scenarios that lie in the region, measured on drives that had no part in choosing "
        "it.",
        "When few drives measured it: look at the number of drives in the region.",
        r"\hat p_k=\frac{\#\{P\in R_k\}}{n_P},\qquad\hat q_k=\frac{\#\{Q\in R_k\}}{n_Q}", "sec:lis",
        also="p_k q_k mass",
    ),
    Entry(
        "weight-k", "Ratio and weight of a region",
        "How many times as frequent the region is in Q as in P. It is the weight its scenarios of P get, at most B.",
        "When the share of P is tiny: the ratio of small numbers jumps.",
        r"w_k=\min\!\left(\frac{\hat q_k}{\hat p_k},\,B\right)", "eq:localized_weight", also="w_k ratio",
    ),
    Entry(
        "direction", "Direction",
        "Whether a region holds more of Q (orange) or more of P (blue).",
        "When the ratio is close to 1.", "", "app:local_shift_detection", also="target_heavy source_heavy",
    ),
    Entry(
        "overlap-violation", "Overlap violation",
        "A place where Q has scenarios and P has next to none. No weight can speak for it, so it is listed and never "
        "weighted.",
        "As a region: nothing of P is there that could be re-weighted. Collect such scenarios.",
        r"\frac{\hat p}{\hat p+\hat q}<\varepsilon", "app:local_shift_detection",
        also="support support_eps uncovered bare",
    ),
    Entry(
        "paper-regions", "Regions as in the paper",
        "Balls around single scenarios whose neighbours are tested by a coin-flip model, the strongest first, the "
        "others suppressed.",
        "Whenever scenarios come in drives: the coin-flip model then finds regions that are not there.",
        r"p_i=\Pr\!\left(|C-\tfrac k2|\ge|c_i-\tfrac k2|\right),\quad C\sim\mathrm{Bin}(k,\tfrac12)",
        "eq:local_binomial_pvalue", also="localize_paper binomial suppression nms",
    ),
    Entry(
        "gap-contribution", "Contribution to the metric gap",
        "How much of the difference between the observed rate of P and the calibrated one comes from a region: its "
        "change of mass times how far its event rate lies from the rest.",
        "As a cause: a region with many events moves the rate whatever made it more frequent.",
        r"C_k=\sum_{s\in R_k}(\text{mass}_s-\hat p_s)\,(\bar\ell_s-\hat\mu_P)", "", also="waterfall breakdown",
    ),
)
