"""Run the tests marked `numeric` as other processors would: `make processors`.

OpenBLAS and NumPy choose their code by the processor, and round differently. Each setting runs in a
process of its own, which first checks that the setting took.
"""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import scipy.linalg  # noqa: F401 - loads SciPy's own OpenBLAS
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__
from threadpoolctl import threadpool_info

CORES = {  # what OpenBLAS's code for a core needs
    "Nehalem": "SSE42",
    "Sandybridge": "AVX",
    "Haswell": "AVX2",
    "SkylakeX": "AVX512_SKX",
}
_FILES = sorted(Path(__file__).parent.rglob("test_*.py"))
_SIGNS = ("mark.numeric", "dissensus.conformance import *")  # the promises have such tests
TESTS = [str(p) for p in _FILES if any(s in p.read_text(encoding="utf-8") for s in _SIGNS)]
CORE, OFF = "OPENBLAS_CORETYPE", "NPY_DISABLE_CPU_FEATURES"


def cores() -> list[str]:
    """Return the cores that the loaded copies of OpenBLAS work as."""
    loaded = [one for one in threadpool_info() if one["internal_api"] == "openblas"]
    return [one["architecture"] for one in loaded]


def settings() -> list[dict[str, str]]:
    """Return the settings that this processor can run; name those it cannot."""
    found = []
    for core, needs in CORES.items():
        if cores() and __cpu_features__.get(needs):
            found.append({CORE: core})
        else:
            show(f"skipped: {CORE}={core}, which needs OpenBLAS and {needs}")
    present = [name for name in __cpu_dispatch__ if __cpu_features__[name]]
    widest = [name for name in present if name.startswith(("AVX512", "X86_V4"))]
    for name in __cpu_dispatch__:
        if name not in present:
            show(f"skipped: {OFF}={name}, which this processor does not have")
    found += [{OFF: " ".join(names)} for names in (widest, present) if names]
    return [one for number, one in enumerate(found) if one not in found[:number]]


def show(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def as_text(setting: dict[str, str]) -> str:
    return " ".join(f"{name}={value!r}" for name, value in setting.items())


def run(setting: dict[str, str]) -> int:
    """Run the tests under a setting, in another process."""
    # One setting at a time: those of the caller would add to it.
    env = {name: value for name, value in os.environ.items() if name not in (CORE, OFF)}
    env |= {"OMP_NUM_THREADS": "1"} | setting
    done = subprocess.run(
        [sys.executable, "-m", "tests.processors", json.dumps(setting)],
        env=env,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    lines = done.stdout.strip().splitlines()
    show(f"{as_text(setting)}: {lines[-1] if lines else 'no output'}")
    if done.returncode:
        show(done.stdout)
    return done.returncode


def check(setting: dict[str, str]) -> int:
    """Run the tests in this process, once it is sure that the setting took."""
    if CORE in setting:
        assert {core.lower() for core in cores()} == {setting[CORE].lower()}, cores()
    for name in setting.get(OFF, "").split():
        assert not __cpu_features__[name], f"{name} is still on"
    return int(pytest.main(["-q", "-m", "numeric", "-p", "no:cacheprovider", *TESTS]))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.exit(check(json.loads(sys.argv[1])))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        sys.exit(max(pool.map(run, settings()), default=0))
