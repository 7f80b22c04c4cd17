"""The evidence pack: one self-contained HTML file of a comparison, and the JSON behind it."""
