"""Recorded outputs: what every verb prints and writes about small inputs of every kind."""
