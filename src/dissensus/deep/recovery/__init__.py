"""Recovery of label distributions from one aggregated label per item."""
