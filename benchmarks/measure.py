"""One measurement in a process of its own, so that its time and its peak memory are its own.

`fresh("module:function", limit=…, **given)` starts this file anew, which calls the function with
what was given and prints what it returns as JSON. The function's module should import little:
whatever it imports counts.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

__all__ = ["Found", "fresh"]

Found = dict[str, Any]  # what the function returned and `peak` in GiB, or only why it `failed`

_MARK = "measured:"


def fresh(job: str, *, limit: float | None = None, **given: Any) -> Found:
    """Return what a function finds in a new process, within so many seconds."""
    command = [sys.executable, __file__, job, json.dumps(given)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return {"failed": f"over {limit:g} s"}
    for line in reversed(done.stdout.splitlines()):
        if line.startswith(_MARK):
            return json.loads(line.removeprefix(_MARK))
    if done.returncode < 0:
        return {"failed": f"ended by signal {-done.returncode}"}
    summary = [line for line in done.stderr.splitlines() if line.strip()]
    return {"failed": summary[-1][:120] if summary else f"exit {done.returncode}"}


def _spare_the_machine() -> None:
    """Let what asks for more memory than there is fail by itself."""
    pages = next(line for line in Path("/proc/meminfo").read_text().splitlines() if "Avail" in line)
    most = int(pages.split()[1]) * 1024
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def _main() -> None:
    job, given = sys.argv[1:]
    module, _, function = job.partition(":")
    if sys.platform == "linux":
        _spare_the_machine()
    found = getattr(import_module(module), function)(**json.loads(given))
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found["peak"] = used * (1 if sys.platform == "darwin" else 1024) / 2**30
    print(_MARK + json.dumps(found))


if __name__ == "__main__":
    _main()
