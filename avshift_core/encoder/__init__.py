"""X -> Z: scenarios as ragged tensors, the network, its training, and latents for a whole corpus."""
