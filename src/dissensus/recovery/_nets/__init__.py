"""The networks behind recovery: everything here stands on torch."""
