"""From one aggregated label back to how people would have split."""
