"""Latent space: how it was made, how good it is, and how it is drawn."""

from __future__ import annotations

from avshift_core.glossary.entry import Entry

ENTRIES = (
    Entry(
        "encoder", "Encoder",
        "A network that turns a scenario into 64 numbers, trained to rebuild the scenario and to keep what can be read "
        "from it. Its id is a hash of its weights.",
        "On scenarios it was trained on: latents of these can differ from others without any shift.",
        r"\min_\phi\;\mathcal L_{\text{rebuild}}+\lambda_{\text{attr}}\mathcal L_{\text{attr}}", "sec:ae_impl",
        also="model card autoencoder weights",
    ),
    Entry(
        "pca", "PCA",
        "The straight directions along which latents vary most. Two of them make a picture without any bending.",
        "As a complete picture: two directions hold a small part of the variance of 64.",
        r"z\mapsto U^{\top}(z-\bar z)", "app:vis_latent", also="principal components axes",
    ),
    Entry(
        "umap", "UMAP",
        "A picture of latent space in two dimensions that keeps neighbours together. It is only a picture: tests, "
        "regions and neighbours are computed in 64 dimensions. One map is drawn of the whole corpus: a scenario has "
        "the same place in every comparison.",
        "For distances and sizes: gaps and densities on the map mean little. With every import into the corpus the "
        "map is drawn anew.", "", "fig:latent_space_umap", also="map projection atlas common",
    ),
    Entry(
        "trustworthiness", "Trustworthiness of a map",
        "Whether neighbours on the map are neighbours in latent space: 1 is perfect. Continuity asks the other way "
        "round.",
        "As a promise for one point: it is a mean over a sample.",
        r"T(k)=1-\frac{2}{nk(2n-3k-1)}\sum_i\sum_{j\in U_k(i)}\left(r(i,j)-k\right)", "",
        also="continuity neighbours kept",
    ),
    Entry(
        "neighbours", "Nearest neighbours",
        "The scenarios whose latents lie nearest, by straight distance in 64 dimensions, of other drives unless said "
        "otherwise.",
        "When the nearest one is far: there may be no scenario like it.",
        r"\|z_i-z_j\|_2", "fig:latent_retrieval", also="kNN retrieval similar",
    ),
    Entry(
        "clusters", "Clusters",
        "Kinds of scenarios, cut by k-means without any label: 27 as in the paper, or as many as you choose.",
        "As natural kinds: another number or another training cuts elsewhere. Look at the stability.",
        r"\min\sum_i\|z_i-\mu_{k(i)}\|^2", "fig:cluster_event_correlation", also="k-means groups",
    ),
    Entry(
        "event-rate", "Event rate of a cluster",
        "The share of a cluster's scenarios in which the event happened.",
        "In small clusters: look at the shrunk rate.",
        r"r_k=\frac{e_k}{n_k}", "fig:cluster_event_correlation", also="rates risk",
    ),
    Entry(
        "event-share", "Event share of a cluster",
        "The share of all events that fall into a cluster. It follows the cluster's size.",
        "As risk: large clusters have large shares whatever their risk.",
        r"s_k=\frac{e_k}{\sum_j e_j}", "fig:cluster_event_correlation", also="shares",
    ),
    Entry(
        "shrinkage", "Shrinkage",
        "A rate pulled towards the mean of all clusters, the more so the fewer scenarios it rests on (empirical "
        "Bayes). What is left differs by more than chance.",
        "For a cluster that is truly unlike all others and small: it is pulled in as well.",
        r"\tilde r_k=\frac{n_k r_k+(a+b)\,m}{n_k+a+b}", "", also="empirical Bayes shrunk rate beta-binomial",
    ),
    Entry(
        "second-source", "Second source of events",
        "Rates of another event, counted on the other half of the drives. If both agree on which clusters are risky, "
        "it is not noise.",
        "When the two events are the same thing twice, or when the encoder was taught one of them.",
        r"\rho=\mathrm{corr}_k(r_k^{(1)},r_k^{(2)})", "fig:cluster_event_correlation",
        also="correlation Pearson Spearman agreement",
    ),
    Entry(
        "effective-rank", "Effective rank",
        "How many directions of latent space are in use: 64 when all vary alike, 1 when all scenarios lie on a line.",
        "Of whitened latents: it is then the full number whatever they hold.",
        r"\exp\Big(-\sum_j\lambda_j\log\lambda_j\Big)", "", also="rank directions spectrum",
    ),
    Entry(
        "probe", "Probe",
        "How well a straight line reads an attribute from z, on drives it was not fitted on: R² of numbers, AUC of "
        "classes.",
        "As proof of understanding for attributes that the encoder was taught.",
        r"R^2=1-\frac{\sum(x-\hat x)^2}{\sum(x-\bar x)^2}", "", also="R2 linear probe attributes",
    ),
    Entry(
        "precision-10", "Precision of neighbours",
        "Of the ten nearest scenarios of other drives, the share with the same category.",
        "For broad categories: 'general' has no common look.",
        r"\frac1{10}\sum_{j\in\mathcal N_{10}(i)}\mathbb 1\{c_j=c_i\}", "fig:latent_retrieval", also="retrieval",
    ),
    Entry(
        "leakage", "Leakage",
        "What the latents tell about the AV version, area or drive beyond what the traffic explains.",
        "Without the true contexts: what looks like leakage may be traffic that nobody measured.",
        r"\mathrm{AUC}(z,c)-\mathrm{AUC}(c)", "", also="leak version drive",
    ),
    Entry(
        "kept", "Advantage kept",
        "The advantage on the latents over that on the true contexts, over all pairs of weeks and areas: how much of a "
        "shift the encoder keeps.",
        "Where the truth is not known; it is told on simulated fleets only.",
        r"\frac{\sum\hat\gamma_z}{\sum\hat\gamma_{\text{contexts}}}", "", also="shift kept",
    ),
    Entry(
        "jaccard", "Jaccard index of regions",
        "The scenarios that two trainings both put into regions, over those that one of them did: 1 is the same story.",
        "Without the value that chance gives beside it.",
        r"J=\frac{|A\cap B|}{|A\cup B|}", "tab:latent_ablation", also="stability ablation seeds",
    ),
    Entry(
        "ablation", "Ablation",
        "The paper's table of latent sizes and of the KL term, trained over several seeds and judged on one pair of "
        "cohorts.",
        "For differences smaller than the spread over seeds.", "", "tab:latent_ablation", also="latent10 latent128 KL",
    ),
)
