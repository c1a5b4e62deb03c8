"""Without torch, modules that need it are not collected for examples."""

from importlib.util import find_spec

_ON_TORCH = ["src/dissensus/deep/*", "tests/crowd_net.py", "tests/deep_sets.py"]

collect_ignore_glob = [] if find_spec("torch") else _ON_TORCH
