"""Stage I: how far apart P and Q are."""

from __future__ import annotations

from avshift_core.glossary.entry import Entry

ENTRIES = (
    Entry(
        "c2st", "Classifier two-sample test",
        "A classifier learns to tell scenarios of Q from those of P; if it cannot do better than a coin on scenarios "
        "it has not seen, the two cohorts met the same traffic as far as the latents can show.",
        "When scenarios of one drive stand in training and in test: the classifier then recognises drives, not "
        "traffic. Here drives are kept whole.",
        r"h(z)=\Pr(y=1\mid z),\qquad \hat y=\mathbb 1\{h(z)\ge\tfrac12\}", "sec:two_stage_tst",
        also="C2ST global test classifier stage I",
    ),
    Entry(
        "accuracy", "Accuracy",
        "The share of held-out scenarios that the classifier puts into the right cohort, with P and Q counting the "
        "same: 0.5 is a coin, 1 is without error.",
        "As a measure of the best that is possible: a weak classifier or few scenarios give less. It is a lower bound.",
        r"\hat a=\tfrac12\left(\Pr(\hat y=0\mid P)+\Pr(\hat y=1\mid Q)\right)", "sec:two_stage_tst",
        also="acc a-hat balanced held-out",
    ),
    Entry(
        "advantage", "Advantage",
        "How much better than a coin the classifier is: 0 means that P and Q cannot be told apart, 0.5 that they can "
        "without error. It is the size of the shift behind the verdict.",
        "As a number for its own sake when its interval is wide, or when the A/A control is not near zero.",
        r"\hat\gamma=\max\!\left(0,\;\hat a-\tfrac12\right)", "eq:empirical_advantage",
        also="gamma gamma_hat effect size",
    ),
    Entry(
        "gamma-drive", "Lower and upper bound, by drive",
        "The advantage is between these bounds with the stated confidence, when drives, not scenarios, are taken as "
        "what is independent. The verdict rests on the lower one.",
        "With fewer than about 20 drives a side, or when the same vehicle on the same day makes drives alike.",
        r"\gamma_{\mathrm{LCB}}=\hat a-t_{1-\alpha}\sqrt{2\,V_{\mathrm{test}}+V_{\mathrm{train}}}-\tfrac12",
        "app:bandpass_thresholds", also="gamma_lcb gamma_ucb confidence bound clustered interval",
    ),
    Entry(
        "gamma-wilson", "Wilson bound (paper)",
        "The paper's lower bound of the advantage. It treats every scenario as independent of all others.",
        "Whenever scenarios come in drives: with random splits, a fifth of the variance between drives and no shift at "
        "all, it claimed a shift in every one of 100 runs.",
        r"\gamma=\frac{\hat a+\frac{z^2}{2n}-z\sqrt{\frac{\hat a(1-\hat a)}{n}+\frac{z^2}{4n^2}}}{1+\frac{z^2}{n}}"
        r"-\tfrac12", "app:bandpass_thresholds", also="gamma_lcb_wilson binomial",
    ),
    Entry(
        "gamma-hoeffding", "Hoeffding bound (paper)",
        "A lower bound of the advantage that holds for any distribution, and is wider for it.",
        "Whenever scenarios come in drives: it, too, counts every scenario as independent.",
        r"\gamma=\hat a-\sqrt{\frac{\ln(1/\alpha)}{2n}}-\tfrac12", "eq:c2st_accuracy_bound",
        also="gamma_lcb_hoeffding distribution-free",
    ),
    Entry(
        "verdict", "Verdict",
        "The band in which the lower bound of the advantage lies: no detectable shift, a moderate shift that is worth "
        "locating, or a global shift for which regions would be most of the space.",
        "When it is marked undecided (the interval reaches into the next band), or when a cohort differs from itself.",
        r"\begin{array}{ll}\gamma_{\mathrm{LCB}}<\gamma_{\mathrm{small}}&\text{no shift}\\"
        r"\gamma_{\mathrm{LCB}}\le\gamma_{\mathrm{large}}&\text{localize}\\"
        r"\gamma_{\mathrm{LCB}}>\gamma_{\mathrm{large}}&\text{global}\end{array}", "app:bandpass_thresholds",
        also="band gate gamma_small gamma_large localize no_shift global_shift undecided",
    ),
    Entry(
        "total-variation", "Total variation",
        "The largest difference in probability that any kind of scenario can have between P and Q; at least twice the "
        "lower bound of the advantage.",
        "As an upper bound: a classifier that sees little proves little, so the true distance may be larger.",
        r"\mathrm{TV}(P,Q)\;\ge\;2\,\gamma_{\mathrm{LCB}}", "prop:classifier_tv", also="TV tv_lower distance",
    ),
    Entry(
        "aa-control", "A/A control",
        "The same test between two random halves, by drive, of one cohort. It must find nothing; what it finds is the "
        "test's own error.",
        "When it is above the small threshold, do not trust the verdict: drive ids may be wrong, so that one drive "
        "stands on both sides.",
        r"\hat\gamma(P_1,P_2)\approx 0,\qquad P=P_1\cup P_2\ \text{by drive}", "", ("check:aa_placebo",),
        also="placebo control aa_source aa_target",
    ),
    Entry(
        "permutation-p", "Permutation p-value",
        "How often a difference as large as this one appears when whole drives are dealt out to P and Q at random.",
        "As a measure of size. With many scenarios any difference drives it to its floor, one over the number of "
        "permutations plus one, and there it stays however large the shift.",
        r"p=\frac{1+\#\{T^{*}\ge T\}}{1+n_{\mathrm{perm}}}", "tab:synthetic_twosample",
        also="p_value significance saturation floor null distribution",
    ),
    Entry(
        "auc", "Area under the ROC curve",
        "The probability that a scenario of Q gets a higher score than one of P: 0.5 is a coin. The p-value rests on "
        "it, because it sees small shifts that the accuracy misses.",
        "As the size of the shift: that is the advantage.",
        r"\mathrm{AUC}=\Pr\{h(Z_Q)>h(Z_P)\}", "", ("test:auc",), also="rank statistic ROC curve",
    ),
    Entry(
        "roc", "ROC curve",
        "For every threshold of the score: the share of Q recognised against the share of P taken for Q, on scenarios "
        "that the classifier has not seen.",
        "Where it crosses the diagonal: scores of different folds have different offsets.",
        r"\left(\Pr\{h(Z_P)>t\},\;\Pr\{h(Z_Q)>t\}\right)_{t}", "", also="receiver operating characteristic",
    ),
    Entry(
        "calibration-error", "Expected calibration error",
        "How far the classifier's probabilities lie from what there is, on average over the bins of the reliability "
        "curve.",
        "As a verdict on the weights: a small error on average can hide a large one where weights are large.",
        r"\mathrm{ECE}=\sum_b\frac{n_b}{n}\left|\bar y_b-\bar h_b\right|", "", also="ECE reliability",
    ),
    Entry(
        "reliability", "Reliability curve",
        "Of the scenarios to which the classifier gives the probability h to be of Q, how many are. On the diagonal "
        "its probabilities can be taken as they are, which the classifier weights do.",
        "In bins with few scenarios; look at their intervals.",
        r"\mathbb E[\,y\mid h(Z)=h\,]\quad\text{against}\quad h", "", also="calibration of the classifier",
    ),
    Entry(
        "neighbour-test", "Neighbour test",
        "Do scenarios have more neighbours of their own cohort than chance gives? Neighbours of the same drive do not "
        "count.",
        "As a size of the shift, and when drives of P are much longer than those of Q.",
        r"T=s^{\top}Ls,\qquad s=\tfrac{1}{n_Q}\ \text{in }Q,\;-\tfrac1{n_P}\ \text{in }P", "", ("test:neighbors",),
        also="p_neighbors kNN graph",
    ),
    Entry(
        "ks", "Kolmogorov-Smirnov distance",
        "The largest gap between the cumulative distributions of P and Q, the largest over all latent dimensions, or "
        "on the classifier's score.",
        "The closed-form p-value assumes independent scenarios. Dimension by dimension it misses shifts that only show "
        "in combinations.",
        r"D=\max_j\sup_x\left|F_{P,j}(x)-F_{Q,j}(x)\right|", "tab:synthetic_twosample", ("test:ks", "test:ks_h"),
        also="KS",
    ),
    Entry(
        "mmd", "Maximum mean discrepancy",
        "The distance between the mean of P and the mean of Q after both are mapped to 128 random waves.",
        "As a size that could be compared between pairs: it depends on the bandwidth, the median distance of the data.",
        r"\mathrm{MMD}^2=\left\|\tfrac1{n_P}\sum_{P}\varphi(z)-\tfrac1{n_Q}\sum_{Q}\varphi(z)\right\|^2",
        "tab:synthetic_twosample", ("test:mmd",), also="MMD kernel random Fourier features",
    ),
    Entry(
        "w1", "Wasserstein distance",
        "How far the scenarios of P would have to be moved, on average, to lie like those of Q; in many dimensions the "
        "mean over 32 random directions.",
        "When a small part moved and all else stayed: the mean over directions makes it look like nothing.",
        r"W_1=\int\left|F_P(x)-F_Q(x)\right|\,dx", "tab:synthetic_twosample", ("test:w1",),
        also="earth mover sliced W1",
    ),
    Entry(
        "icc", "Variance between drives",
        "The share of the latent variance that lies between drives: 0 when scenarios of a drive are no more alike than "
        "any others, 1 when a drive has but one kind of scenario.",
        "With few drives, or with drives of very different length.",
        r"\mathrm{ICC}=\frac{\sigma^2_{\text{between}}}{\sigma^2_{\text{between}}+\sigma^2_{\text{within}}}", "",
        ("check:drives",), also="ICC intraclass correlation clustering",
    ),
    Entry(
        "design-effect", "Design effect",
        "By how much the variance of the accuracy is larger than that of as many independent scenarios. Divide the "
        "number of scenarios by it to see what they are worth.",
        "When there are no drive ids: it is then 1 by assumption.",
        r"\mathrm{deff}=\frac{V_{\text{by drive}}(\hat a)}{V_{\text{binomial}}(\hat a)},\qquad "
        r"n_{\text{eff}}=\frac{n}{\mathrm{deff}}", "", also="effective sample size deff",
    ),
    Entry(
        "detectable", "Detectable advantage",
        "The smallest advantage that would have been called a shift in four of five comparisons of this size. Below "
        "it, 'no shift' says little.",
        "When the number of drives changes: it is a matter of drives, not of scenarios.",
        r"\gamma_{\mathrm{small}}+(z_{1-\alpha}+z_{0.8})\,\mathrm{se}", "", also="detectable_gamma power sample size",
    ),
    Entry(
        "variance-split", "Test and training part of the variance",
        "How much of the accuracy's uncertainty comes from which scenarios were held out, and how much from the random "
        "training of the classifier.",
        "With one repeat there is no training part to see.",
        r"\mathrm{Var}(\hat a)=V_{\mathrm{test}}+V_{\mathrm{train}}", "eq:c2st_variance_decomposition",
        also="var_test var_training repeats",
    ),
    Entry(
        "smd-ranking", "Standardised mean difference",
        "How far the means of an attribute lie apart in P and Q, in units of its spread. Ranked, it shows what differs "
        "in words people know.",
        "As the cause of a shift: attributes go together, and the latents hold more than attributes.",
        r"d=\frac{\bar x_Q-\bar x_P}{\sqrt{(s_P^2+s_Q^2)/2}}", "", also="SMD Cohen's d attribute ranking love plot",
    ),
)
