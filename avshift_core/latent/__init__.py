"""Z alone: cohorts of latents, tables of them, neighbours, cells, and synthetic pairs with known truth."""
