"""What there is to tell about annotations and a result: first numbers, then pages."""
