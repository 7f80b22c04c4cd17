"""Raw logs -> scenarios X and metrics ell: schema, readers, store, metrics, and a simulated fleet with known truth."""
