"""Training on two hosts leads to the weights of two processes on one, bit for bit."""

import pytest

from ..support import benchmark

pytest.importorskip("torch")
pytest.importorskip("lightning_fabric")


def test_two_hosts_train_as_two_processes_do(tmp_path):
    hosts = benchmark("hosts")
    if not hosts.can_make_hosts:
        pytest.skip("network namespaces need root and iproute2")
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    found = hosts.train_on_two_hosts(tmp_path / "first")
    if "failed" in found:  # torch's launcher may abort while it leaves: once more, on another port
        found = hosts.train_on_two_hosts(tmp_path / "second")
    assert "failed" not in found, found
    assert found["weights bit for bit the same"]
    assert found["checkpoint there"]
