"""A corpus that grows week by week: has anything changed since the reference, and where."""
