"""Nothing listens to others, and files of others run nothing."""

import os
import re
from pathlib import Path

import pytest

from dissensus.scale.dask import joined


def test_a_cluster_of_this_machine_listens_only_to_it():
    psutil = pytest.importorskip("psutil", reason="psutil is not installed")
    pytest.importorskip("distributed", reason="Dask is not installed")
    with joined(None, 1):
        here = psutil.Process()
        heard = [
            connection.laddr.ip
            for process in (here, *here.children(recursive=True))
            for connection in process.net_connections("tcp")
            if connection.status == psutil.CONN_LISTEN
        ]
    assert heard
    assert set(heard) == {"127.0.0.1"}


class Trap:
    """What a pickle can hold: a call."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_weights_of_another_project_are_read_without_running_what_they_hold(tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from dissensus.deep.nn.encoders import load_weights
    from dissensus.errors import DataError

    network = torch.nn.Linear(2, 1)
    torch.save(network.state_dict(), tmp_path / "good.pth")
    load_weights(network, str(tmp_path / "good.pth"))
    torch.save({"weight": Trap(tmp_path / "ran")}, tmp_path / "bad.pth")
    with pytest.raises(DataError, match="holds more than tensors; save it as"):
        load_weights(network, str(tmp_path / "bad.pth"))
    assert not (tmp_path / "ran").exists()


def test_the_policy_says_how_weights_of_others_are_read():
    root = Path(__file__).parents[2]
    calls = [
        line
        for path in (root / "src").rglob("*.py")
        if path.name != "conformance.py"  # its engine reads back what it has just written
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(r"\btorch\.load\(|pickle\.loads?\(", line) and "`" not in line
    ]
    assert calls
    assert all("weights_only=True" in line for line in calls)
    for page in ("SECURITY.md", "docs/concepts.md"):
        assert "torch.load(weights_only=True)" in (root / page).read_text(encoding="utf-8")
