"""Learning classifiers from annotators who disagree, one file per method; needs torch."""
