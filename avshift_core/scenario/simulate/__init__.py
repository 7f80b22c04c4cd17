"""A simulated fleet in closed loop: an explicit law of contexts, traffic that reacts, two ego policies, known truth."""
