"""What every kind, verb and result promises; `verbs.py` has what cannot be done."""
