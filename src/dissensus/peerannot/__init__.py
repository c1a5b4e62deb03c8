"""Say here what this room holds."""
