"""The workbench: a local web app in which people settle disagreement.

Entries of a journal become decisions, decisions become gold, and gold goes into a fit; pages show
the fit and what was decided since. Everything that is computed comes from the packages below.
"""
