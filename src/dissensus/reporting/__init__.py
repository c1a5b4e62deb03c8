"""Reports on annotations and results: first numbers, then sentences, then pages."""
