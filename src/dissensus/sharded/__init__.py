"""More rows than fit into memory: chunks of Parquet, shards of items, and pieces of results."""
