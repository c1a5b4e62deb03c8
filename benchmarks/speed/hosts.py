"""Two hosts on one machine: this one and a network namespace, with a link between, perhaps slow.

    with Hosts(rate=100e6) as hosts:            # bits a second
        hosts.start(1, ["python", "-c", "…"])   # on the other host
        with hosts.cluster() as address: …      # a Dask scheduler here, and a worker on each

Needs root and iproute2. The other host goes when the block ends.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import socket
from typing import Any

__all__ = ["Hosts", "can_make_hosts", "train_on_two_hosts"]

ROOT = Path(__file__).parents[2]
Launcher = subprocess.Popen[bytes]


def can_make_hosts() -> bool:
    """Return whether this process may make network namespaces."""
    if shutil.which("ip") is None or os.geteuid() != 0:
        return False
    name = f"try{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False)
    subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
    return made.returncode == 0


def remove_left_over_hosts() -> None:
    """Remove hosts of processes that were killed: their link has the same address."""
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=False)
    for name in re.findall(r"^ds(\d+)", listed.stdout, re.MULTILINE):
        if not Path("/proc", name).exists():
            link = f"v{int(name) % 10**6}-0"
            subprocess.run(["ip", "link", "del", link], capture_output=True, check=False)
            subprocess.run(["ip", "netns", "del", f"ds{name}"], capture_output=True, check=False)


class Hosts:
    """Two hosts with a link between them.

    Parameters
    ----------
    rate
        Bits a second; as fast as it goes if not given.
    """

    def __init__(self, rate: float | None = None) -> None:
        self.rate = rate
        self.name = f"ds{os.getpid()}"
        self.addresses = ["10.83.7.1", "10.83.7.2"]
        self.links = [f"v{os.getpid() % 10**6}-{position}" for position in range(2)]

    def __enter__(self) -> Hosts:
        remove_left_over_hosts()
        _do("ip", "netns", "add", self.name)
        here, there = self.links
        _do("ip", "link", "add", here, "type", "veth", "peer", "name", there)
        _do("ip", "link", "set", there, "netns", self.name)
        for position, (link, address) in enumerate(zip(self.links, self.addresses, strict=True)):
            _do(*self._on(position), "ip", "addr", "add", f"{address}/24", "dev", link)
            _do(*self._on(position), "ip", "link", "set", link, "up")
            if self.rate:
                slow = ["tbf", "rate", f"{self.rate / 1e6:g}mbit", "burst", "256kb"]
                slow = ["tc", "qdisc", "add", "dev", link, "root", *slow, "latency", "50ms"]
                _do(*self._on(position), *slow)
        _do(*self._on(1), "ip", "link", "set", "lo", "up")
        return self

    def __exit__(self, *_: object) -> None:
        _do("ip", "link", "del", self.links[0])  # the host itself goes with its last process
        _do("ip", "netns", "del", self.name)

    def _on(self, position: int) -> list[str]:
        return ["ip", "netns", "exec", self.name] if position else []

    def start(self, position: int, command: list[str], **given: Any) -> subprocess.Popen[bytes]:
        """Start a command on a host."""
        return subprocess.Popen([*self._on(position), *command], **given)

    @contextmanager
    def cluster(self) -> Iterator[str]:
        """Yield the address of a Dask scheduler, which has a worker on each host."""
        address = f"tcp://{self.addresses[0]}:8786"
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        python = [sys.executable, "-m"]
        scheduler = [*python, "distributed.cli.dask_scheduler", "--host", self.addresses[0]]
        running = [self.start(0, [*scheduler, "--port", "8786", "--no-dashboard"], **quiet)]
        for position in range(2):
            worker = [*python, "distributed.cli.dask_worker", address, "--nthreads", "1"]
            running.append(self.start(position, [*worker, "--no-dashboard"], **quiet))

        try:
            yield address
        finally:
            for one in running[::-1]:
                one.terminate()
            for one in running:
                one.wait()


def train_on_two_hosts(folder: Path) -> dict[str, Any]:
    """Train the small network of the tests with torchrun on two hosts, and on one."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    script = [str(ROOT / "tests" / "crowd_net.py"), str(folder / "run"), "--dropout", "0"]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "OMP_NUM_THREADS": "1"}
    began = time.monotonic()
    with Hosts() as hosts:
        running = []
        with socket() as free:
            free.bind((hosts.addresses[0], 0))
            port = str(free.getsockname()[1])
        for position in range(2):
            command = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "2"]
            command += ["--node-rank", str(position), "--nproc-per-node", "1"]
            command += ["--master-addr", hosts.addresses[0], "--master-port", port]
            summary = {**environment, "GLOO_SOCKET_IFNAME": hosts.links[position]}
            command += [*script, "--out", str(folder / "two.json")]
            running.append(hosts.start(position, command, env=summary, stderr=subprocess.PIPE))
        left = _wait(running)
        ended = [one.communicate()[1] for one in running]
    wrong = any(one.returncode for one in running if one not in left) or len(left) == 2
    if wrong or not (folder / "two.json").exists():
        return {"failed": ended[0].decode()[-500:] + ended[1].decode()[-500:]}
    seconds = time.monotonic() - began
    checkpoint = (folder / "run" / "checkpoint.safetensors").exists()
    command = [sys.executable, script[0], str(folder / "one"), *script[2:]]
    command += ["--out", str(folder / "one.json"), "--two", str(folder / "here.json")]
    subprocess.run(command, env=environment, check=True, capture_output=True, cwd=ROOT)
    two, here = (json.loads((folder / f"{name}.json").read_text()) for name in ("two", "here"))
    return {
        "seconds on two hosts": round(seconds, 1),
        "checkpoint there": checkpoint,
        "loss on two hosts": two["loss"],
        "loss of two processes on one": here["loss"],
        "weights bit for bit the same": two["weights"] == here["weights"],
    }


def _wait(running: list[Launcher], limit: float = 300, grace: float = 20) -> list[Launcher]:
    """Wait for launchers; once one has ended, the other gets a while. Return whom it ended.

    A launcher waits up to five minutes for one that has gone already, long after all training.
    """
    until = time.monotonic() + limit
    while None in (ended := [one.poll() for one in running]) and time.monotonic() < until:
        if any(code is not None for code in ended):
            until = min(until, time.monotonic() + grace)
            grace = limit
        time.sleep(0.1)
    left = [one for one in running if one.poll() is None]
    for one in left:
        one.kill()
    return left


def _do(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)
