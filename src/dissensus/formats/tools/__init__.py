"""Labelling tools and data sets of research, one file each: what is read from it, what is written.

A tool is a file here and a line in the table of `exports`; imports `formats` and what is below it.
"""
