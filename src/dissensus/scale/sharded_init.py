"""Data sets beyond memory: chunks of Parquet, shards of items, and pieces of results."""
