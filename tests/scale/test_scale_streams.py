"""Labels that never stop arriving: near the batch fit, nothing lost, nothing counted twice."""

import json
import os
import random
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from dissensus import DataError, MethodError, OptionError, aggregate, simulate
from dissensus.base.engine import add
from dissensus.scale import OnlineAggregation, Stream, online

from ..support import relation, rows_of, run

ROOT = Path(__file__).parents[2]


def crowd(n_items=2000, seed=1, **given):
    settings = {"n_annotators": 40, "n_classes": 4, "feedback": 5} | given
    return simulate("independent-confusion", n_items=n_items, seed=seed, **settings)


def shuffled(annotations, seed=0):
    rows = rows_of(annotations)
    random.Random(seed).shuffle(rows)
    return rows


def batches(rows, count):
    for some in np.array_split(np.arange(len(rows)), count):
        yield tuple(map(list, zip(*(rows[position] for position in some), strict=True)))


def by_item(result):
    order = {name: position for position, name in enumerate(result.answers.items.tolist())}
    return {name: result.posterior[position] for name, position in order.items()}


@pytest.mark.parametrize("method", ["dawid-skene", "one-coin", "hierarchical", "bcc"])
def test_a_stream_ends_near_the_batch_fit(method, monkeypatch):
    monkeypatch.setattr(online, "_SMALL", 500)
    simulation = simulate(
        "one-coin", n_items=1200, n_annotators=40, n_classes=4, feedback=5, seed=1
    )
    model = OnlineAggregation(method, refit=0.8)
    for batch in batches(shuffled(simulation.annotations), 150):
        model.add(*batch)
    assert model.fitted < len(model)
    there, back = by_item(aggregate(simulation.annotations, method)), by_item(model.result())
    assert there.keys() == back.keys()
    same = np.mean([there[item].argmax() == back[item].argmax() for item in there])
    assert same > 0.98


def test_right_after_a_fit_labels_are_those_of_the_batch():
    simulation = crowd(300)
    model = OnlineAggregation("dawid-skene")
    for batch in batches(shuffled(simulation.annotations), 7):
        model.add(*batch)
    assert model.fitted == len(model)
    there, back = by_item(aggregate(simulation.annotations, "dawid-skene")), by_item(model.result())
    for item, posterior in there.items():
        np.testing.assert_allclose(back[item], posterior, atol=1e-9)


def test_counts_are_those_of_the_posterior(monkeypatch):
    monkeypatch.setattr(online, "_SMALL", 500)
    model = OnlineAggregation("dawid-skene")
    for batch in batches(shuffled(crowd(500).annotations), 60):
        model.add(*batch)
    recomputed = model.method.counts(model.log.whole(), model.posterior)
    for stored, counted in zip(model._counts, recomputed, strict=True):
        np.testing.assert_allclose(stored, counted, atol=1e-8)


def test_no_step_lowers_the_free_energy(monkeypatch):
    """Refreshing items without new labels never makes the fit worse."""
    monkeypatch.setattr(online, "_SMALL", 500)
    model = OnlineAggregation("dawid-skene")
    for batch in batches(shuffled(crowd(500).annotations), 40):
        model.add(*batch)

    def energy():
        part = model.log.whole()
        joint, posterior = model.method.log_joint(part, model.params), model.posterior
        surprise = np.where(posterior > 0, posterior * np.log(np.maximum(posterior, 1e-300)), 0.0)
        return float((posterior * joint).sum() - surprise.sum()) + model.method.log_prior(
            model.params
        )

    before = energy()
    for start in range(0, 500, 50):
        items = np.arange(start, start + 50)
        part = model.log.part(items)
        less = model.method.counts(part, model._posterior[items])
        model._posterior[items] = model._infer(part, model.params)
        more = model.method.counts(part, model._posterior[items])
        model._counts = add(online._add_counts(model._counts, less, -1.0), more)
        model.params = model.method.update(model._counts, model.params)
        after = energy()
        assert after >= before - 1e-7
        before = after


def test_items_annotators_and_classes_may_appear_at_any_time(monkeypatch):
    monkeypatch.setattr(online, "_SMALL", 2)
    rows = [(f"i{n % 50}", f"w{n % 23}", str(n % 3 if n > 200 else n % 2)) for n in range(400)]
    model = OnlineAggregation("dawid-skene")
    for batch in batches(rows, 80):
        model.add(*batch)
    result = model.result()
    assert result.classes.tolist() == ["0", "1", "2"]
    assert result.answers == relation(
        rows, items=result.answers.items, annotators=result.answers.annotators
    )
    assert np.isfinite(result.posterior).all()


def test_an_id_counts_once():
    model = OnlineAggregation()
    assert model.add("aab", "xyx", "010", ids=[1, 2, 3]) == 3
    assert model.add("bab", "yyz", "010", ids=[4, 2, 5]) == 2
    assert len(model) == 5
    assert model.add([], [], [], ids=[]) == 0


def test_what_cannot_be_kept_up_to_date_is_refused():
    with pytest.raises(MethodError, match="glad cannot take labels one by one; these can: dawid"):
        OnlineAggregation("glad")
    with pytest.raises(DataError, match="no annotations yet"):
        OnlineAggregation().result()


def test_a_stream_goes_on_where_it_was(tmp_path, monkeypatch):
    monkeypatch.setattr(online, "_SMALL", 500)
    given = list(batches(shuffled(crowd(400).annotations), 50))
    with Stream.opened(tmp_path / "whole") as whole:
        for batch in given:
            whole.add(*batch)
        there = by_item(whole.online.result())
    for part in (given[:13], given[13:14], given[14:41], given[41:]):
        with Stream.opened(tmp_path / "parts") as stream:
            for batch in part:
                stream.add(*batch)
            back = by_item(stream.online.result())
    for item, posterior in there.items():
        np.testing.assert_allclose(back[item], posterior, atol=1e-8)


def test_a_stream_is_written_by_one_process_and_kept_in_one_way(tmp_path):
    second, other = Stream.opened(tmp_path), Stream.opened(tmp_path, "one-coin")
    with Stream.opened(tmp_path), pytest.raises(OptionError, match="another run works there"):
        second.__enter__()
    with pytest.raises(OptionError, match="started with method dawid-skene, not one-coin"):
        other.__enter__()


KILLED = textwrap.dedent(
    """
    import os, random, signal, sys
    import dissensus.base.files
    from dissensus.cli import main
    from dissensus.scale import online

    # Die at a random moment: before or after one of the next renames, or in the middle of a write.
    online._SMALL = 200
    folder, output, seed = sys.argv[1:]
    left = [random.Random(int(seed)).randrange(2, 8)]
    from pathlib import Path
    rename = Path.replace

    def dying(self, target):
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        rename(self, target)
        if left[0] == 1 and int(seed) % 2:
            os.kill(os.getpid(), signal.SIGKILL)

    Path.replace = dying
    main(["watch", folder, "-o", output, "--once"])
    """
)


def test_random_kills_lose_and_double_nothing(tmp_path):
    rows = shuffled(crowd(200).annotations)
    (tmp_path / "in").mkdir()
    output, killed = tmp_path / "labels.csv", 0
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    for position, (item, annotator, label) in enumerate(batches(rows, 8)):
        frame = pl.DataFrame({"item": item, "annotator": annotator, "label": label})
        whole, file = frame.write_csv(), tmp_path / "in" / f"{position:02}.csv"
        file.write_text(whole[: -1 - position])  # the last line is still being written
        if position % 2:
            command = [
                sys.executable,
                "-c",
                KILLED,
                str(tmp_path / "in"),
                str(output),
                str(position),
            ]
            done = subprocess.run(command, env=environment, capture_output=True, check=False)
            killed += done.returncode == -signal.SIGKILL
            assert done.returncode in (0, -signal.SIGKILL), done.stderr
        file.write_text(whole)
    assert killed >= 2
    done = run("watch", tmp_path / "in", "-o", output, "--once", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["n_labels"] == len(rows)
    with Stream.opened(tmp_path / ".labels.csv.state") as stream:
        assert sorted(rows_of(stream.online.log.annotations(with_names=True))) == sorted(rows)
    assert [path.name for path in tmp_path.iterdir() if ".part" in path.name] == []


def test_a_file_that_grows_is_followed(tmp_path):
    file, output = tmp_path / "answers.csv", tmp_path / "labels.csv"
    watch = ("watch", file, "-o", output, "--once", "--json")
    file.write_text("task,worker,label\na,x,0\na,y,0\nb,x,1\n")
    assert json.loads(run(*watch).stdout)["new"] == 3
    with file.open("a") as more:
        more.write("b,y,1\nc,x")  # the last line is not ended yet
    assert json.loads(run(*watch).stdout)["new"] == 1
    with file.open("a") as more:
        more.write(",0\n")
    summary = json.loads(run(*watch).stdout)
    assert (summary["new"], summary["n_labels"], summary["n_items"]) == (1, 5, 3)
    assert pl.read_csv(output)["item"].sort().to_list() == ["a", "b", "c"]
    file.write_text("task,worker,label\na,x,0\n")
    done = run(*watch)
    assert done.returncode == 2
    assert b"5 rows were read before, and now they are others; files may only grow" in done.stderr


def test_rows_that_are_sent_twice_count_once_by_their_id(tmp_path):
    (tmp_path / "in").mkdir()
    watch = ("watch", tmp_path / "in", "-o", tmp_path / "l.csv", "--once", "--json")
    (tmp_path / "in" / "1.jsonl").write_text(
        '{"id": 1, "item": "a", "annotator": "x", "label": "0"}\n'
        '{"id": 2, "item": "a", "annotator": "y", "label": "1"}\n'
    )
    assert json.loads(run(*watch).stdout)["new"] == 2
    (tmp_path / "in" / "2.jsonl").write_text(
        '{"id": 2, "item": "a", "annotator": "y", "label": "1"}\n'
        '{"id": 3, "item": "b", "annotator": "y", "label": "1"}\n'
    )
    assert json.loads(run(*watch).stdout)["new"] == 1


def test_a_file_that_cannot_be_read_changes_nothing(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.csv").write_text("task,worker,label\na,x,0\n")
    watch = ("watch", tmp_path / "in", "-o", tmp_path / "l.csv", "--once")
    assert run(*watch).returncode == 0
    before = (tmp_path / "l.csv").read_bytes()
    (tmp_path / "in" / "2.parquet").write_bytes(b"PAR1 and no more")
    done = run(*watch)
    assert done.returncode == 2
    assert b"2.parquet: damaged parquet" in done.stderr
    assert (tmp_path / "l.csv").read_bytes() == before
