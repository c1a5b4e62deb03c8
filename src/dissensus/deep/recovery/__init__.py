"""Recovery of label distributions from one aggregated label per item.

`base` has what a method fulfils and the distances between distributions, `estimator` the default
and the estimator around all methods; methods of a family share a file.
"""
