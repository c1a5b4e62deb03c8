"""Learning classifiers from annotators who disagree, one file per method; needs torch."""

from .. import nn as _nn  # noqa: F401  (which says so where torch is missing)
