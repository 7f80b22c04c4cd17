"""How far the tool is from the truth, where it is known: the paper's line, a drawn fleet, a simulated corpus."""
