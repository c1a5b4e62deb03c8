"""Where torch is missing, what stands on it is not looked at for examples."""

from importlib.util import find_spec

_ON_TORCH = [
    "src/dissensus/learning/*",
    "src/dissensus/meta/*",
    "src/dissensus/nn/*",
    "src/dissensus/recovery/_nets/*",
    "src/dissensus/recovery/estimator.py",
    "tests/crowd_net.py",
]

collect_ignore_glob = [] if find_spec("torch") else _ON_TORCH
