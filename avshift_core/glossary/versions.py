"""Two AV versions: the parts of their difference, the leakage probe, power and the collection plan."""

from __future__ import annotations

from avshift_core.glossary.entry import Entry

ENTRIES = (
    Entry(
        "version-raw", "Raw difference of versions",
        "The observed rate of B on Q minus that of A on P: version and traffic together.",
        "As a statement about the versions, whenever the traffic of the two cohorts differs.",
        r"\mu_B(Q)-\mu_A(P)", "", ("part:raw",), "version comparison mu_B mu_A",
    ),
    Entry(
        "exposure", "Exposure",
        "What the difference of traffic makes of the raw difference: the same version in Q's traffic and in P's, "
        "within the traffic that both met.",
        "When the latents do not see what changed in the traffic: it then hides in the performance part.",
        r"\mu_A(Q_{\mathrm{in}})-\mu_A(P_{\mathrm{in}})\ \text{ or }\ \mu_B(Q_{\mathrm{in}})-\mu_B(P_{\mathrm{in}})",
        "", ("part:exposure",), "traffic part Oaxaca Blinder Nopo decomposition",
    ),
    Entry(
        "performance", "Performance",
        "B minus A in the same traffic: the part of the raw difference that is the version's.",
        "On latents that hold what the AV did: matching on it erases the effect. Also when the leakage probe refuses, "
        "and for traffic that only one version met.",
        r"\mu_B(Q_{\mathrm{in}})-\mu_A(Q_{\mathrm{in}})\ \text{ or }\ \mu_B(P_{\mathrm{in}})-\mu_A(P_{\mathrm{in}})",
        "", ("part:performance",), "version effect better worse",
    ),
    Entry(
        "not-comparable", "Not comparable",
        "What scenarios in traffic that only one version met add to the raw difference. Nothing is said about the "
        "versions there.",
        "As small because its share of the scenarios is: rare traffic can hold most of the events.",
        r"\left(\mu_B(Q)-\mu_B(Q_{\mathrm{in}})\right)-\left(\mu_A(P)-\mu_A(P_{\mathrm{in}})\right)", "",
        ("part:not_comparable",), "common support overlap gap Nopo",
    ),
    Entry(
        "common-traffic", "Traffic that both met",
        "Parts of the latent space in which each version has at least 5 scenarios of 3 drives, and neither more than B "
        "times the share of the other.",
        "As the same traffic in every respect: within a part it is matched by weights and a model, and only as far as "
        "the latents see it.",
        r"\min(\hat p_s,\hat q_s)\ge\tfrac{1}{1+B}\,(\hat p_s+\hat q_s)", "", (), "common support stratum overlap",
    ),
    Entry(
        "reference-traffic", "Reference traffic",
        "Whose traffic the versions are compared in: P's, Q's, or the mean of both. When a version helps in rare "
        "traffic, the answers rightly differ.",
        "When the two references disagree by more than their intervals: then say which traffic is meant.",
        r"\tfrac12\left(\mathrm{performance}_P+\mathrm{performance}_Q\right)", "", (),
        "symmetric mean reference choice",
    ),
    Entry(
        "version-verdict", "Better, worse, inside noise",
        "The verdict on B: by the 95 % drive-level intervals of the performance part in P's traffic, in Q's and on the "
        "mean of both, all of which have to leave out zero on the same side. Inside noise means that one holds it; "
        "when it leaves out zero in P's traffic to one side and in Q's to the other, it depends on the traffic.",
        "When many metrics are looked at: at 5 % one in twenty is better or worse by chance.",
        r"0\notin[\mathrm{lo},\mathrm{hi}]", "", (), "verdict of versions too few events not to be trusted",
    ),
    Entry(
        "leakage-probe", "Leakage probe",
        "How well a classifier tells the versions apart after each part of the latent space was given the same weight "
        "in both cohorts. Like two halves of one cohort, they should not be told apart.",
        "As proof that nothing leaks: it sees traces that are finer than the parts. A trace that moves scenarios from "
        "one part to another looks like other traffic, and no test of two cohorts can tell them apart; only the "
        "context view protects against it.",
        r"\hat\gamma(A_w,B_w)\approx\hat\gamma(A_1,A_2)", "", (), "version read from latents A/A control matched",
    ),
    Entry(
        "detectable-difference", "Smallest detectable difference",
        "The difference between the versions that this many drives would call better or worse with probability 0.8.",
        "For drives unlike those at hand, and for metrics with few events.",
        r"(t_{0.975}+t_{0.8})\,\max(\mathrm{se})", "", (), "power sample size drives needed minimum MDE",
    ),
    Entry(
        "collection-plan", "Collection plan",
        "By how much a thousand further scenarios of one kind of traffic, driven by one version, narrow the interval "
        "of the performance part. The traffic that is compared in stays as it is.",
        "When the new scenarios come from few drives, or from other places than the old ones of their kind.",
        r"V'=V-V_g\,\frac{m}{n_g+m}", "", (), "Neyman allocation planner which traffic to drive next",
    ),
)
