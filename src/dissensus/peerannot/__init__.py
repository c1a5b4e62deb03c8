"""peerannot's classes, names and strategies on our methods; `dissensus.models` is `models` here.

`aggregation` and `networks` hold the classes, `models` the tables of its strategies by all names
that they have had. May import everything below it but the command line. A class of a new release
of peerannot goes where its family is, and into a table of `models`.
"""
