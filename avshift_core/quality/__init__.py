"""Can this latent space be trusted? Probes, retrieval, clusters, stability, leakage and kept shifts, in one report."""
