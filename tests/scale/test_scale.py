"""Beyond memory and beyond one machine: the same results, whatever happens meanwhile."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from dissensus import (
    DataError,
    MethodError,
    OptionError,
    OutputError,
    aggregate,
    aggregators,
    agree,
    simulate,
)
from dissensus.base.names import numbered
from dissensus.scale import aggregate_files, agree_shards, fit_shards, quality_intervals, shard_rows
from dissensus.scale import shards as shard_files
from dissensus.scale.fitting import Disk
from dissensus.scale.parquet import RowReading, fits
from dissensus.scale.parquet_files import chunks_of, find_files, read_all

from ..support import run

ROOT = Path(__file__).parents[2]
ADDITIVE = [name for name in aggregators if aggregators.find(name).additive]
close = {"rtol": 0, "atol": 1e-9}


def crowd(n_items=400, seed=3, **given):
    settings = {"n_annotators": 14, "n_classes": 3, "feedback": 5} | given
    return simulate("independent-confusion", n_items=n_items, seed=seed, **settings).annotations


def write_files(annotations, folder, files=3, seed=0, prefix=""):
    """Write annotations as Parquet files, rows in random order; items are texts with a prefix."""
    folder.mkdir(parents=True, exist_ok=True)
    order = np.random.default_rng(seed).permutation(len(annotations))
    item = pl.Series(annotations.items.tolist()).gather(annotations.item[order])
    frame = pl.DataFrame(
        {
            "item": prefix + item if prefix else item.cast(pl.Int64),
            "annotator": pl.Series(annotations.annotators.tolist()).gather(
                annotations.annotator[order]
            ),
            "label": pl.Series(annotations.classes.tolist())
            .gather(annotations.label[order])
            .cast(pl.Int8),
        }
    )
    for position, rows in enumerate(np.array_split(np.arange(len(annotations)), files)):
        frame[rows].write_parquet(folder / f"{position}.parquet", row_group_size=100)
    return folder


def in_memory(folder):
    return read_all(chunks_of(find_files([str(folder)])))


def code(folder, work, n_shards=4, rows=257, **given):
    engine = Disk(threads=2, folder=str(work))
    rows = chunks_of(find_files([str(folder)]), rows=rows)
    return shard_rows(rows, engine, n_shards=n_shards, **given), engine


def labels(path):
    return pl.read_parquet(path).sort("item")


def assert_same(found, result):
    """Compare a table of labels with a result in memory, item by item."""
    position = {name: position for position, name in enumerate(result.answers.items.tolist())}
    rows = [position[name] for name in found["item"]]
    assert sorted(rows) == list(range(result.answers.n_items))
    posterior = found.select(f"p:{name}" for name in result.classes.tolist()).to_numpy()
    np.testing.assert_allclose(posterior, result.probabilities[rows], **close)
    np.testing.assert_allclose(found["confidence"], result.confidence[rows], **close)
    return rows


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write_files(crowd(), tmp_path_factory.mktemp("files") / "answers")


@pytest.fixture(scope="module")
def shards(files, tmp_path_factory):
    return code(files, tmp_path_factory.mktemp("work"))


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed")
    from dissensus.scale.dask import Dask

    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as made,
        distributed.Client(made) as client,
    ):
        yield Dask(client)


@pytest.mark.parametrize("name", ADDITIVE)
def test_shards_on_disk_lead_to_the_result_in_memory(name, files, shards, tmp_path):
    annotations, engine = shards
    fit = fit_shards(annotations, name, engine).write(tmp_path)
    annotators = fit.annotators
    result = aggregate(in_memory(files), name)
    rows = assert_same(labels(tmp_path), result)
    np.testing.assert_allclose(annotators["quality"], result.quality, **close)
    np.testing.assert_allclose(annotators["agreement"], result.agreement, **close)
    assert annotators["n_labels"].tolist() == result.annotators["n_labels"].tolist()
    np.testing.assert_allclose(fit.trace, result.trace, rtol=1e-9)
    if name != "majority":  # its ties are drawn by the place of an item
        assert labels(tmp_path)["label"].to_list() == result.labels[rows].tolist()


@pytest.mark.parametrize("name", ["dawid-skene", "majority", "one-coin", "wawa", "hierarchical"])
def test_a_cluster_leads_to_the_result_in_memory(name, files, cluster, tmp_path):
    done = aggregate_files([str(files)], name, str(tmp_path / "out.parquet"), engine=cluster)
    result = aggregate(in_memory(files), name)
    assert_same(labels(tmp_path / "out.parquet"), result)
    np.testing.assert_allclose(done.annotators["quality"], result.quality, **close)


def test_a_cluster_also_works_on_annotations_in_memory(cluster):
    annotations = crowd()
    for name in ("dawid-skene", "glad", "catd"):
        here, there = aggregate(annotations, name), aggregate(annotations, name, engine=cluster)
        np.testing.assert_allclose(here.posterior, there.posterior, **close)


@pytest.mark.filterwarnings("ignore")  # of what Dask asks pandas
def test_a_dask_dataframe_is_aggregated_where_it_is(files, cluster, tmp_path):
    pandas = pytest.importorskip("pandas")
    frames = pytest.importorskip("dask.dataframe", reason="dask.dataframe needs pandas and pyarrow")
    annotations = in_memory(files)
    columns = ("items", "item"), ("annotators", "annotator"), ("classes", "label")
    table = pandas.DataFrame(
        {
            role: getattr(annotations, names)[getattr(annotations, role)].tolist()
            for names, role in columns
        }
    )
    table = frames.from_pandas(table.sample(frac=1, random_state=1), npartitions=3)
    from dissensus.scale.dask import frame_chunks

    annotations = shard_rows(frame_chunks(cluster, table), cluster, n_shards=3)
    fit_shards(annotations, "dawid-skene", cluster).write(tmp_path)
    assert_same(labels(tmp_path), aggregate(in_memory(files), "dawid-skene"))


def test_names_may_be_texts_and_gold_is_kept(tmp_path):
    annotations = crowd(100)
    folder = write_files(annotations, tmp_path / "in", prefix="photo ")
    gold = {"photo 7": "2", "photo 11": "0", "photo 12": "1", "elsewhere": "1"}
    coded, engine = code(folder, tmp_path / "work", gold=gold)
    fit_shards(coded, "dawid-skene", engine).write(tmp_path / "out")
    result = aggregate(in_memory(folder), "dawid-skene", gold=gold)
    assert_same(labels(tmp_path / "out"), result)
    found = dict(labels(tmp_path / "out").select("item", "label").iter_rows())
    assert (found["photo 7"], found["photo 11"], found["photo 12"]) == ("2", "0", "1")


def test_declared_classes_need_not_look_like_those_that_were_used(tmp_path):
    rows = {"item": [1, 1, 2], "annotator": [-7, 3, 3], "label": [2, 1, 1]}
    pl.DataFrame(rows).write_parquet(tmp_path / "a.parquet")
    annotations, _ = code(tmp_path, tmp_path / "work", classes=["none", "2", "1"])
    assert annotations.annotators.tolist() == ["-7", "3"]
    assert annotations.labels_per_class.tolist() == [0, 1, 2]
    assert annotations.labels_per_annotator.tolist() == [1, 2]
    with pytest.raises(DataError, match="label '1' is not among the classes none, 2"):
        code(tmp_path, tmp_path / "other", classes=["none", "2"])


def test_random_starts_do_not_depend_on_the_shards(files, tmp_path):
    spec = "dawid-skene[restarts=3]"
    traces = [
        fit_shards(*code(files, tmp_path / f"{n}", n_shards=n)[:1], spec, Disk(folder=".")).trace
        for n in (1, 1)
    ]
    assert traces[0] == traces[1]


def test_the_order_of_items_is_by_shard_and_natural_within(shards):
    annotations, engine = shards
    for names in engine.each(lambda shard: shard.names.to_list(), annotations.shards):
        assert names == sorted(names, key=int)


def test_agreement_from_shards_is_that_in_memory(files, shards):
    annotations, engine = shards
    measures = ["percent", "alpha", "fleiss", "ac1"]
    there = agree(in_memory(files), measures, resamples=50).estimates
    assert agree_shards(annotations, engine, measures, resamples=50) == there
    with pytest.raises(OptionError, match="cohen looks at pairs"):
        agree_shards(annotations, engine, ["cohen"])


@pytest.mark.parametrize("name", ["dawid-skene", "majority"])
def test_intervals_from_shards_hold_the_quality(name, shards):
    annotations, engine = shards
    fit = fit_shards(annotations, name, engine)
    bounds = quality_intervals(fit, resamples=20)
    assert bounds.shape == (annotations.n_annotators, 2)
    quality = aggregators.create(name).quality(fit.params, bounds.mean(axis=1))
    assert ((bounds[:, 0] <= quality + 0.02) & (quality <= bounds[:, 1] + 0.02)).mean() > 0.8
    assert (bounds[:, 1] - bounds[:, 0] > 0.005).mean() > 0.8


def test_a_folder_a_pattern_and_several_files_are_one_table(files, tmp_path):
    spec = ["-s", "dawid-skene", "-o"]
    run("aggregate", files, *spec, tmp_path / "a.parquet")
    run("aggregate", f"{files}/*.parquet", *spec, tmp_path / "b.parquet")
    done = run("aggregate", *sorted(files.iterdir()), *spec, tmp_path / "c.parquet")
    assert done.returncode == 0, done.stderr
    assert labels(tmp_path / "a.parquet").equals(labels(tmp_path / "b.parquet"))
    assert labels(tmp_path / "a.parquet").equals(labels(tmp_path / "c.parquet"))


def test_files_are_read_through_fsspec(files, tmp_path):
    fsspec = pytest.importorskip("fsspec")
    store = fsspec.filesystem("memory")
    for file in files.iterdir():
        store.pipe(f"/answers/{file.name}", file.read_bytes())
    aggregate_files(["memory://answers/*.parquet"], output=str(tmp_path / "out.parquet"))
    assert_same(labels(tmp_path / "out.parquet"), aggregate(in_memory(files), "dawid-skene"))
    with pytest.raises(DataError, match="memory://nothing/: no Parquet file there"):
        find_files(["memory://nothing/"])


def test_folders_named_by_what_they_hold_are_read(tmp_path):
    rows = [("a", "x"), ("b", "x"), ("a", "y"), ("b", "y")]
    for who in "xy":
        folder = tmp_path / "in" / f"annotator={who}"
        folder.mkdir(parents=True)
        items = [item for item, name in rows if name == who]
        pl.DataFrame({"item": items, "label": [1.0, 2.0]}).write_parquet(folder / "0.parquet")
    annotations = in_memory(tmp_path / "in")
    assert annotations.annotators.tolist() == ["x", "y"]
    assert annotations.classes.tolist() == ["1", "2"]
    assert annotations.votes().tolist() == [[2, 0], [0, 2]]


@pytest.mark.parametrize("ending", [".parquet", ".csv", "/", ".jsonl"])
def test_beyond_memory_the_command_writes_the_same_labels(ending, files, tmp_path):
    output = f"{tmp_path}/labels{ending}"
    done = run(
        "aggregate", files, "-s", "dawid-skene", "-o", output, "--memory", "200K", "--json",
        "--save", tmp_path / "kept",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    result = aggregate(in_memory(files), "dawid-skene")
    summary = json.loads(done.stdout)
    assert (summary["n_items"], summary["rounds"]) == (result.answers.n_items, len(result.trace))
    read = {".csv": pl.read_csv, ".jsonl": pl.read_ndjson}.get(ending, pl.read_parquet)
    assert_same(read(output).with_columns(pl.col("item").cast(pl.String)), result)
    kept = pl.read_parquet(tmp_path / "kept" / "annotators.parquet")
    assert kept["annotator"].to_list() == result.answers.annotators.tolist()
    assert {path.name for path in tmp_path.iterdir()} == {"kept", f"labels{ending}".rstrip("/")}


def test_files_that_fit_are_aggregated_in_memory():
    assert fits(1000, 10**6)
    assert not fits(10**6, 10**6)


def test_a_damaged_file_is_named_and_nothing_is_written(files, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    for file in files.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    body = bytearray((folder / "1.parquet").read_bytes())
    for position in range(40, len(body) // 2, 7):
        body[position] ^= 0xFF
    (folder / "1.parquet").write_bytes(body)
    for memory in ("200K", "1G"):
        done = run("aggregate", folder, "-o", tmp_path / "l.parquet", "--memory", memory,
                   "-s", "dawid-skene")  # fmt: skip
        assert done.returncode == 2
        assert b"1.parquet: " in done.stderr
        assert done.stderr.count(b"\n") == 1
        assert [path.name for path in tmp_path.iterdir()] == ["in"]
    (folder / "1.parquet").write_bytes(b"PAR1 and no more")
    done = run("aggregate", folder, "-o", tmp_path / "l.parquet")
    assert done.returncode == 2
    assert b"1.parquet: damaged" in done.stderr


def test_a_full_disk_is_reported_in_one_line(files, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dissensus.scale.fitting.append", full)
    with pytest.raises(OutputError, match="no space left on device; work=…"):
        aggregate_files([str(files)], output=str(tmp_path / "l.parquet"), memory=200_000)
    assert not list(tmp_path.iterdir())


def test_rows_that_lack_something_are_refused_or_dropped(tmp_path):
    rows = {"item": [1, 2, None, 2], "annotator": ["x", "x", "y", "y"], "label": list("aaba")}
    pl.DataFrame(rows).write_parquet(tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"a\.parquet: row 3: no item; missing='drop'"):
        aggregate_files([str(tmp_path / "a.parquet")], output=str(tmp_path / "l.parquet"))
    done = aggregate_files(
        [str(tmp_path / "a.parquet")],
        output=str(tmp_path / "l.parquet"),
        reading=RowReading(missing="drop"),
    )
    assert done.annotations.classes.tolist() == ["a"]
    assert len(done.annotations) == 3


def test_methods_that_need_all_items_say_so_before_anything_is_read(tmp_path):
    with pytest.raises(MethodError, match="glad does not learn from sums over items"):
        aggregate_files([str(tmp_path)], "glad", str(tmp_path / "l.parquet"))


def test_matrices_that_do_not_fit_are_refused_with_their_size(shards):
    annotations, engine = shards
    with pytest.raises(MethodError, match=r"dawid-skene needs .* GiB for 14 annotators and 3"):
        fit_shards(annotations, "dawid-skene", engine, memory=1000)
    huge = replace(annotations, annotators=numbered(10**5), classes=numbered(1000))
    with pytest.raises(MethodError, match=r"needs 2.24e.03 GiB for .* If not, one-coin would do"):
        fit_shards(huge, "dawid-skene", engine, memory=2**28)


KILLED = textwrap.dedent(
    """
    import os, signal, sys
    from contextlib import contextmanager
    from pathlib import Path
    from dissensus.scale import aggregate_files
    from dissensus.scale.fitting import Disk
    import dissensus.scale.pieces as checkpoints
    import dissensus.scale.fitting as disk

    files, output, where = sys.argv[1:]

    def die():
        os.kill(os.getpid(), signal.SIGKILL)

    if where == "note":
        atomic_file = checkpoints.atomic_file

        @contextmanager
        def dying(path):
            with atomic_file(path) as draft:
                yield die()

        checkpoints.atomic_file = dying
    if where == "end":
        unlink = Path.unlink
        Path.unlink = lambda path, **how: (unlink(path, **how), path.suffix == ".npy" and die())
    if where == "spill":
        disk.append = lambda *_: die()
    if where == "sort":
        write = disk.write_shard
        disk.write_shard = lambda folder, join, n: die() if n == 2 else write(folder, join, n)
    aggregate_files(
        [files], "dawid-skene[max_iter=8,tol=0]", output, memory=200_000, engine=Disk(threads=1),
        on_round=lambda done, _: die() if where == "round" and done == 4 else None,
    )
    """
)


@pytest.mark.parametrize("where", ["note", "spill", "sort", "round", "end"])
def test_work_that_was_killed_is_taken_up_again(where, files, tmp_path):
    output = tmp_path / "l.parquet"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-c", KILLED, str(files), str(output), where]
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert output.exists() == (where == "end")
    rounds = []
    again = aggregate_files(
        [str(files)],
        "dawid-skene[max_iter=8,tol=0]",
        str(output),
        memory=200_000,
        engine=Disk(threads=1),
        resume=True,
        on_round=lambda number, _: rounds.append(number),
    )
    assert rounds == list(range(4 if where == "round" else 1, 9))  # the fourth was not kept
    result = aggregate(in_memory(files), "dawid-skene[max_iter=8,tol=0]")
    assert_same(labels(output), result)
    np.testing.assert_allclose(again.trace, result.trace, rtol=1e-9)
    assert [path.name for path in tmp_path.iterdir()] == ["l.parquet"]


def test_work_on_something_else_is_not_taken_up(files, tmp_path):
    output = str(tmp_path / "l.parquet")
    command = [sys.executable, "-c", KILLED, str(files), output, "round"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    subprocess.run(command, env=environment, capture_output=True, check=False)
    with pytest.raises(OptionError, match="work on other files, or with other options"):
        aggregate_files([str(files)], "one-coin", output, memory=200_000, resume=True)


def test_a_folder_that_holds_something_else_is_left_alone(files, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("precious")
    with pytest.raises(OptionError, match="holds something else"):
        aggregate_files(
            [str(files)], output=str(tmp_path / "l.parquet"), work=str(tmp_path / "mine")
        )
    assert (tmp_path / "mine" / "thesis.tex").read_text() == "precious"


@pytest.mark.parametrize("at_once", [1, 2], ids=["one", "all of them"])
def test_workers_that_are_killed_change_nothing(at_once, files, tmp_path):
    pytest.importorskip("distributed")
    from dissensus.scale.dask import joined

    killed = []
    with joined(workers=2) as engine:

        def progress(number, _):
            if number in (2, 4):
                info = engine.client.scheduler_info(n_workers=-1)["workers"]
                workers = {one: engine.client.run(os.getpid, workers=[one])[one] for one in info}
                for pid in list(workers.values())[:at_once]:
                    killed.append(pid)
                    os.kill(pid, signal.SIGKILL)

        done = aggregate_files(
            [str(files)],
            "dawid-skene[max_iter=6,tol=0]",
            str(tmp_path / "l.parquet"),
            engine=engine,
            on_round=progress,
        )
    assert len(set(killed)) == 2 * at_once
    result = aggregate(in_memory(files), "dawid-skene[max_iter=6,tol=0]")
    assert_same(labels(tmp_path / "l.parquet"), result)
    np.testing.assert_allclose(done.trace, result.trace, rtol=1e-9)


def test_no_scheduler_at_an_address_is_reported(files, tmp_path):
    pytest.importorskip("distributed")
    done = run("aggregate", files, "--engine", "dask", "--address", "nowhere", "-o",
               tmp_path / "l.parquet", "-s", "dawid-skene")  # fmt: skip
    assert done.returncode == 2
    assert b"no Dask scheduler answers" in done.stderr


def test_blocks_are_read_as_they_were_written(tmp_path):
    first, second = pl.DataFrame({"a": [1, 2]}), pl.DataFrame({"a": [3]})
    for piece in (first, first.clear(), second):
        shard_files.append(tmp_path / "rows", piece)
    assert [one["a"].to_list() for one in shard_files.blocks(tmp_path / "rows")] == [[1, 2], [3]]
