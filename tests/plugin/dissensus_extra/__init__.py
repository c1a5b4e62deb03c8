"""Methods of somebody else, found by their entry points."""
