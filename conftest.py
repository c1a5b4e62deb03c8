"""Promises of methods, and no examples of modules that need torch where it is missing."""

from importlib.util import find_spec

pytest_plugins = ["dissensus.conformance"]

_ON_TORCH = ["src/dissensus/deep/*", "tests/crowd_net.py", "tests/deep_sets.py"]

collect_ignore_glob = [] if find_spec("torch") else _ON_TORCH
