"""X -> Z: scenarios as ragged tensors, the network, its training, and latents for a whole corpus."""

import os

# oneDNN keeps memory for every shape it has met, and each ragged batch has a new one: a training grew for as long as it
# ran. Without that cache memory stays flat (benchmarks/README.md). It has to be said before torch is used.
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "0")
