"""Nothing listens to others."""

import pytest

from dissensus.engine.cluster import joined


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
