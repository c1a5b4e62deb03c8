"""Kinds of answers beside one class per item; so far numbers."""
