"""A corpus on disk or at a URL: Parquet parts under one manifest, written whole, read through DuckDB."""
