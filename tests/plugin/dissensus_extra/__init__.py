"""Methods and a format of somebody else, found by their entry points."""
