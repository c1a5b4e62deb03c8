"""Labelling tools and data sets of research, one file each: what is read from it, what is written.

A tool is a file here that ends with its `FORMAT`, and a line in `formats.format`; imports `formats`
and what is below it.
"""
