"""Saved state that was damaged, or is of something else, ends in one line."""

import shutil

import numpy as np
import pytest

from dissensus import ClassAggregation, DataError, NumberAggregation, Numbers, aggregate
from dissensus.errors import DissensusError
from dissensus.scale.annotation_log import AnnotationBatch, read_batch, write_batch
from dissensus.scale.pieces import FolderCheckpoints
from dissensus.scale.stream import Stream

from ..support import relation

ROWS = [(i, w, "xyz"[(i * w + i) % 3]) for i in range(8) for w in range(5)]


def stream_result(folder):
    with Stream.opened(folder) as stream:
        return stream.online.result()


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Return a saved folder of every kind that needs no torch, with what loads it."""
    home = tmp_path_factory.mktemp("saved")
    aggregate(relation(ROWS), "dawid-skene").save(home / "aggregation")
    columns = [*zip(*ROWS, strict=True)]
    numbers = Numbers.from_columns(columns[0], columns[1], [float(i) for i in columns[0]])
    aggregate(numbers, "gaussian").save(home / "estimation")
    for rows in (ROWS[:30], ROWS[30:]):
        with Stream.opened(home / "stream") as stream:
            stream.add(*zip(*rows, strict=True))
    loads = {"aggregation": ClassAggregation.load, "estimation": NumberAggregation.load}
    return {name: (home / name, load) for name, load in (loads | {"stream": stream_result}).items()}


@pytest.mark.parametrize("kind", ["aggregation", "estimation", "stream"])
def test_damaged_folders_end_in_one_line(kind, saved, tmp_path):
    source, load = saved[kind]
    rng = np.random.default_rng(0)
    files = [path.name for path in source.iterdir() if path.name != "run.lock"]
    for number in range(60):
        shutil.rmtree(tmp_path / "copy", ignore_errors=True)
        shutil.copytree(source, tmp_path / "copy")
        victim = tmp_path / "copy" / files[number % len(files)]
        body = bytearray(victim.read_bytes())
        match number % 3:
            case 0:
                body = body[: rng.integers(len(body))]
            case 1:
                body[rng.integers(len(body))] ^= 1 << int(rng.integers(8))
            case _:
                body = rng.bytes(len(body))
        victim.write_bytes(bytes(body))
        try:
            load(tmp_path / "copy")
        except DissensusError as problem:
            words = str(problem)
            if "\n" in words or len(words) > 600 or str(tmp_path / "copy") not in words:
                pytest.fail(words)
            continue
        assert kind == "stream" or victim.name == "result.json"


def test_a_damaged_round_of_unfinished_work_ends_in_one_line(tmp_path):
    for body in (b"", b"PK\x03\x04 no zip", b"{}"):
        (tmp_path / "rounds-0.npz").write_bytes(body)
        with pytest.raises(DataError, match=r"rounds-0\.npz: damaged work .* resume=True"):
            FolderCheckpoints(tmp_path).load(None, 0)


def test_a_bit_that_flips_in_a_batch_of_a_stream_ends_in_one_line_without_a_panic(tmp_path, capfd):
    path = tmp_path / "batch"
    names = [f"i{n}" for n in range(40)]
    write_batch(path, AnnotationBatch(names, ["w"] * 40, ["x", "y"] * 20, None, {"seen": {}}))
    body, rng = path.read_bytes(), np.random.default_rng(0)
    complaints = []
    for _ in range(400):
        changed = bytearray(body)
        changed[rng.integers(len(body))] ^= 1 << int(rng.integers(8))
        path.write_bytes(bytes(changed))
        try:
            read_batch(path)
        except DataError as problem:
            complaints.append(str(problem))
    assert complaints
    assert not any("\n" in complaint for complaint in complaints)
    assert capfd.readouterr().err == ""
