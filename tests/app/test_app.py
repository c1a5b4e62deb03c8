"""The workbench without a browser: journal, decisions, fits, the queue, what if, exports."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import count
from pathlib import Path
from shutil import copy
from threading import Barrier, Condition, Event

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dissensus import aggregate, demo, read, write
from dissensus.answers.annotations import Annotations
from dissensus.app import exports
from dissensus.app import workbench as workbench_module
from dissensus.app.browse import Catalogue, Filter, media_of
from dissensus.app.decisions import DECIDED, DISPUTED, SPLIT, Changes, Decisions
from dissensus.app.fits import Present
from dissensus.app.guard import is_password, set_password
from dissensus.app.journal import Entry, Journal, RequestError
from dissensus.app.state_files import open_state
from dissensus.app.workbench import Workbench
from dissensus.cli.open import aggregate_command
from dissensus.errors import DataError, OptionError, OutputError
from dissensus.formats import examine
from dissensus.planning import plan_review
from dissensus.planning.label_errors import SPREAD, Checked, checked_errors

from ..support import run

_REVIEWERS = ("ann", "bob", "cat")
OLD = Path(__file__).parents[1] / "fixtures_workbench"


def small(n_items: int = 60) -> Annotations:
    annotations, _ = demo()
    return annotations.subset(items=annotations.items[:n_items].tolist())


@pytest.fixture
def bench(tmp_path):
    annotations = small()
    journal = Journal(tmp_path / "state")
    workbench = Workbench(
        lambda: examine(annotations), journal, name="small", method="dawid-skene-map"
    )
    yield workbench
    workbench.close()


def test_an_entry_is_there_after_opening_the_journal_again(tmp_path):
    journal = Journal(tmp_path / "state")
    entry, new = journal.add("ann", "label", item="a", value="cat", comment="sure", drawn=True)
    journal.close()
    assert new
    again = Journal(tmp_path / "state")
    assert again.entries() == [entry]
    assert again.entries(after=entry.number) == []
    again.close()


def test_the_same_request_is_entered_once(tmp_path):
    journal = Journal(tmp_path / "state")
    first = journal.add("ann", "label", item="a", value="cat", request="r")
    second = journal.add("ann", "label", item="a", value="cat", request="r")
    assert (first[0], False) == second
    assert len(journal.entries()) == 1
    journal.close()


def test_entries_cannot_be_changed_or_deleted(tmp_path):
    journal = Journal(tmp_path / "state")
    journal.add("ann", "label", item="a", value="cat")
    journal.close()
    with sqlite3.connect(tmp_path / "state") as connection:
        for statement in ("UPDATE entries SET value = 'dog'", "DELETE FROM entries"):
            with pytest.raises(sqlite3.IntegrityError, match="never"):
                connection.execute(statement)
    connection.close()


def test_a_state_that_is_no_state_is_refused(tmp_path):
    (tmp_path / "text").write_text("item,label\n" * 200)
    with pytest.raises(DataError, match="not a state of the workbench"):
        Journal(tmp_path / "text")
    with pytest.raises(OutputError, match="give another state"):
        Journal(tmp_path / "nowhere" / "state")


def test_one_workbench_at_a_time_has_a_state(tmp_path):
    journal = Journal(tmp_path / "state")
    with pytest.raises(DataError, match="another workbench"):
        Journal(tmp_path / "state")
    journal.close()
    Journal(tmp_path / "state").close()


def test_only_the_owner_can_read_the_state(tmp_path):
    journal = Journal(tmp_path / "state")
    journal.close()
    assert (tmp_path / "state").stat().st_mode & 0o077 == 0


def _state(path: Path, n_entries: int = 60) -> bytes:
    """Write a state with decisions, an undo, a change and a password; return its bytes."""
    journal = Journal(path)
    for k in range(n_entries - 2):
        comment = "é" * k + "long " * (600 if k == 7 else 0)
        journal.add("ann", "label", item=f"item {k}", value="cat", comment=comment, certainty=0.5)
    journal.add("ann", "undo", item="item 3", value="4")
    changes = {"left_out": ["bob"], "renamed": {"cat": "dog"}, "method": ""}
    journal.add("ann", "change", value=json.dumps(changes))
    set_password(journal, "long enough")
    journal.close()
    return path.read_bytes()


def _damaged(raw: bytes, rng: np.random.Generator) -> bytes:
    """Return bytes with flipped bits, other pages, holes, or without an end."""
    out = np.frombuffer(raw, dtype=np.uint8).copy()
    how, position = rng.integers(6), int(rng.integers(len(out)))
    if how < 3:  # flipped bits: one, many, many in the first page
        flipped = rng.integers(len(out) if how < 2 else 1000, size=1 if how == 0 else 40)
        out[flipped] ^= (1 << rng.integers(8, size=len(flipped))).astype(np.uint8)
    elif how == 3:
        page = slice(position // 4096 * 4096, position // 4096 * 4096 + 4096)
        out[page] = rng.integers(256, size=len(out[page]), dtype=np.uint8)
    elif how == 4:
        out[position : position + 3000] = 0
    else:
        out = out[: position + 1]
    return out.tobytes()


def _opened(path: Path, *, recover: bool = False) -> tuple[list[Entry], list[str]]:
    sentences: list[str] = []
    journal = open_state(path, say=sentences.append, recover=recover)
    entries = journal.entries()
    journal.close()
    assert Decisions(entries).gold() is not None
    return entries, sentences


def _refusal(path: Path, *, recover: bool = False) -> str:
    """Return why a state is refused; nothing if it opens."""
    try:
        _opened(path, recover=recover)
    except (DataError, OutputError) as problem:
        return str(problem)
    return ""


def test_damaged_states_are_refused_in_one_line_and_recovered_beside_themselves(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("dissensus.app.state_files._back_up", lambda *_: None)
    whole = _state(tmp_path / "whole")
    entries = _opened(tmp_path / "whole")[0]
    rng, n_refused, shares = np.random.default_rng(0), 0, []
    for k in range(200):
        path = tmp_path / str(k) / "state"
        path.parent.mkdir()
        raw = _damaged(whole, rng)
        path.write_bytes(raw)
        refusal = _refusal(path)
        if not refusal:
            continue
        n_refused += 1
        assert len(refusal.splitlines()) == 1
        assert f"{path}: " in refusal
        assert "recover=True" in refusal or "install that" in refusal
        assert path.read_bytes() == raw
        try:
            recovered, _ = _opened(path, recover=True)
        except DataError:
            assert "nothing can be read" in _refusal(path, recover=True)
            assert path.read_bytes() == raw
            continue
        assert path.with_name("state.damaged-1").read_bytes() == raw
        right = {entry.number for entry in entries}
        assert {entry.number for entry in recovered} <= right
        shares.append(len(recovered) / len(entries))
    assert n_refused > 80
    assert len(shares) > 0.8 * n_refused
    assert np.median(shares) > 0.6


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("undo", "x"),
        ("undo", "-1"),
        ("change", "{nope"),
        ("change", "[]"),
        ("change", '{"left_out": "ann"}'),
        ("change", '{"renamed": {"cat": 1}}'),
        ("change", "[" * 100_000),
        ("guess", ""),
    ],
)
def test_an_entry_that_cannot_be_read_is_named_and_left_out_by_recovering(tmp_path, kind, value):
    _state(tmp_path / "state")
    with sqlite3.connect(tmp_path / "state") as connection:
        connection.execute(
            "INSERT INTO entries (at, reviewer, kind, item, value, comment, inferred, drawn)"
            " VALUES ('', 'ann', ?, '', ?, '', '', 0)",
            (kind, value),
        )
    connection.close()
    with pytest.raises(DataError, match=r"damaged \(entry 61 .*recover=True"):
        _opened(tmp_path / "state")
    entries, sentences = _opened(tmp_path / "state", recover=True)
    assert len(entries) == 60
    assert "1 of 61 could not be read" in sentences[0]
    journal = Journal(tmp_path / "state")
    assert is_password(journal, "long enough")
    journal.close()


def test_an_empty_state_is_refused_and_its_backup_recovered(tmp_path):
    path = tmp_path / "state"
    path.touch()
    with pytest.raises(DataError, match="empty; remove it"):
        _opened(path)
    with pytest.raises(DataError, match="nothing can be read"):
        _opened(path, recover=True)
    path.unlink()
    _state(path)
    before = _opened(path)[0]
    for lose in (lambda: path.write_bytes(b""), path.unlink):
        lose()
        if path.exists():
            with pytest.raises(DataError, match="empty; recover=True takes what its backups"):
                _opened(path)
        else:
            assert "state.backup-1 beside it has 60 entries" in _opened(path)[1][0]
        after, sentences = _opened(path, recover=True)
        assert after == before
        assert "60 of them from state.backup" in sentences[0]
        for old in tmp_path.glob("state.backup-[2-9]"):
            old.unlink()


@pytest.mark.parametrize("start", [0, 1], ids=["zeros", "all but the first byte"])
def test_entries_below_a_damaged_page_are_recovered(tmp_path, start):
    path = tmp_path / "state"
    _state(path)
    before, _ = _opened(path)
    for backup in tmp_path.glob("*.backup-*"):
        backup.unlink()
    with closing(sqlite3.connect(path)) as connection:
        query = "SELECT rootpage FROM sqlite_master WHERE name = 'entries'"
        (root,) = connection.execute(query).fetchone()
    raw = bytearray(path.read_bytes())
    raw[(root - 1) * 4096 + start : root * 4096] = bytes(4096 - start)
    path.write_bytes(raw)
    with pytest.raises(DataError, match="damaged"):
        _opened(path)
    after, sentences = _opened(path, recover=True)
    assert after == before
    assert "60 entries recovered" in sentences[0]
    assert "all could be read" in sentences[0]


def test_recovering_takes_from_a_backup_what_the_damaged_state_has_not(tmp_path):
    path = tmp_path / "state"
    _state(path)
    before = _opened(path)[0]
    journal = Journal(path)
    newest, _ = journal.add("ann", "label", item="late", value="cat")
    journal.close()
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TRIGGER no_update")
        connection.execute("UPDATE entries SET value = x'ff' WHERE number = 5")
    connection.close()
    with pytest.raises(DataError, match="damaged"):
        _opened(path)
    entries, sentences = _opened(path, recover=True)
    assert entries == [*before, newest]
    assert "61 entries recovered" in sentences[0]
    assert "1 of them from state.backup-1; all could be read" in sentences[0]


def test_backups_of_another_state_are_not_mixed_in(tmp_path):
    path = tmp_path / "state"
    _state(path)
    _opened(path)
    path.unlink()
    journal = Journal(path)
    for k in range(3):
        journal.add("bob", "label", item=f"other {k}", value="cat")
    journal.add("bob", "undo", value="x")
    journal.close()
    entries, _ = _opened(path, recover=True)
    assert [entry.item for entry in entries] == ["other 0", "other 1", "other 2"]


def test_a_state_with_decisions_is_backed_up_on_every_start(tmp_path):
    path = tmp_path / "state"
    _opened(path)
    assert not list(tmp_path.glob("*backup*"))
    raw = _state(path)
    for _ in range(5):
        entries = _opened(path)[0]
    names = sorted(one.name for one in tmp_path.iterdir())
    assert names == ["state", "state.backup-3", "state.backup-4", "state.backup-5"]
    for name in names:
        assert (tmp_path / name).stat().st_mode & 0o077 == 0
    assert _opened(tmp_path / "state.backup-5")[0] == entries
    assert path.read_bytes()[100:] == raw[100:]


def test_a_whole_state_is_not_touched_by_recovering(tmp_path):
    raw = _state(tmp_path / "state")
    entries, sentences = _opened(tmp_path / "state", recover=True)
    assert len(entries) == 60
    assert "nothing to recover" in sentences[0]
    assert (tmp_path / "state").read_bytes()[100:] == raw[100:]
    assert not list(tmp_path.glob("*damaged*"))
    with pytest.raises(DataError, match="no such file"):
        _opened(tmp_path / "none", recover=True)


def test_a_state_that_is_open_elsewhere_is_not_recovered(tmp_path):
    _state(tmp_path / "state")
    held = Journal(tmp_path / "state")
    with pytest.raises(DataError, match="open in another workbench"):
        open_state(tmp_path / "state", say=print, recover=True)
    held.close()


def test_the_command_says_of_a_damaged_state_what_would_do(tmp_path, monkeypatch):
    write(small(), tmp_path / "answers.csv")
    monkeypatch.setattr("dissensus.app.server.serve", lambda bench, **_: bench.close())
    raw = _state(tmp_path / "answers.csv.workbench", 200)
    (tmp_path / "answers.csv.workbench").write_bytes(raw[: len(raw) // 2])
    line = ["open", "answers.csv", "--strategy", "majority", "--no-browser"]
    refused = run(*line, cwd=tmp_path)
    assert refused.returncode == 2
    assert refused.stderr.startswith(b"dissensus: answers.csv.workbench: damaged (")
    assert refused.stderr.count(b"\n") == 1
    assert b"--recover takes what can be read" in refused.stderr
    opened = run(*line, "--recover", cwd=tmp_path)
    assert opened.returncode == 0
    assert b"recovered into answers.csv.workbench" in opened.stderr
    assert b"answers.csv.workbench.damaged-1" in opened.stderr


_ENTRIES = st.lists(
    st.tuples(
        st.sampled_from(_REVIEWERS),
        st.sampled_from(["label", "split", "unclear", "undo"]),
        st.sampled_from("ab"),
        st.sampled_from(["x", "y"]),
    ),
    max_size=20,
)


def _journal_of(rows) -> list[Entry]:
    """Return entries in which an undo takes back the reviewer's last decision."""
    entries: list[Entry] = []
    open_entries: dict[str, list[int]] = {name: [] for name in _REVIEWERS}
    numbers = count(1)
    for reviewer, kind, item, value in rows:
        number = next(numbers)
        if kind == "undo":
            if open_entries[reviewer]:
                last = open_entries[reviewer].pop()
                entries.append(Entry(number, "", reviewer, "undo", value=str(last)))
            continue
        open_entries[reviewer].append(number)
        entries.append(Entry(number, "", reviewer, kind, item, value if kind == "label" else ""))
    return entries


@settings(max_examples=200, deadline=None)
@given(_ENTRIES, st.sampled_from(["", "ann"]))
def test_gold_is_what_a_plain_replay_gives(rows, arbiter):
    entries = _journal_of(rows)
    decisions = Decisions(entries)
    decisions.arbiter = arbiter
    undone = {int(one.value) for one in entries if one.kind == "undo"}
    last: dict[tuple[str, str], tuple[str, str]] = {}
    for one in entries:
        if one.kind != "undo" and one.number not in undone:
            last[one.item, one.reviewer] = (one.kind, one.value)
    expected = {}
    for item in "ab":
        made = {who: what for (of, who), what in last.items() if of == item}
        counts = {made[arbiter]} if arbiter in made else set(made.values())
        if len(counts) == 1 and next(iter(counts))[0] == "label":
            expected[item] = next(iter(counts))[1]
    assert decisions.gold() == expected


def test_a_decision_shows_at_once_and_moves_its_annotators_by_the_formula(bench):
    before = bench.present
    item = bench.next_item("ann").item
    code = before.fit.codes[item]
    other = str(before.fit.annotations.classes[(before.label[code] + 1) % 5])
    bench.decide("ann", item, "label", other)
    after = bench.present
    assert after.certainty[code] == 1
    assert after.fit.annotations.classes[after.label[code]] == other
    assert after.provisional[code]
    assert after.status[code] == DECIDED
    annotations, posterior = before.fit.annotations, before.fit.report.result.posterior
    expected = before.accuracy.copy()
    for row in range(annotations.index[code], annotations.index[code + 1]):
        who, label = annotations.annotator[row], annotations.label[row]
        right = annotations.classes[label] == other
        expected[who] += (right - posterior[code, label]) / annotations.labels_per_annotator[who]
    np.testing.assert_allclose(after.accuracy, expected, atol=1e-12)


def test_undo_brings_back_the_state_before(bench):
    before = bench.present
    item = bench.next_item("ann").item
    bench.decide("ann", item, "label", "fox")
    bench.undo("ann")
    for name in ("label", "certainty", "status", "provisional"):
        np.testing.assert_array_equal(getattr(bench.present, name), getattr(before, name))
    np.testing.assert_allclose(bench.present.accuracy, before.accuracy, atol=1e-12)
    with pytest.raises(OptionError, match="nothing to undo"):
        bench.undo("ann")


def test_only_the_reviewer_who_decided_can_undo(bench):
    entry = bench.decide("ann", bench.next_item("ann").item, "split")
    with pytest.raises(OptionError, match="only the reviewer"):
        bench.undo("bob", entry.number)


def test_a_fit_has_decisions_as_gold_and_the_same_labels_as_aggregate(bench):
    for value in ("fox", "deer", "boar"):
        bench.decide("ann", bench.next_item("ann").item, "label", value)
    bench.decide("ann", bench.next_item("ann").item, "split")
    assert not bench.settled
    assert bench.settle()
    fit = bench.present.fit
    assert len(fit.gold) == 3
    alone = aggregate(bench.reading.annotations, "dawid-skene-map", gold=fit.gold)
    assert alone.labels.tolist() == fit.report.result.labels.tolist()
    assert not bench.present.provisional.any()
    assert "accuracy" in bench.messages[-1] or "label" in bench.messages[-1]


def test_where_reviewers_differ_the_arbiter_decides(bench):
    item = bench.next_item("ann").item
    code = bench.present.fit.codes[item]
    bench.decide("ann", item, "label", "fox")
    bench.decide("bob", item, "label", "deer")
    assert bench.present.status[code] == DISPUTED
    assert bench.decisions.gold() == {}
    bench.name_arbiter("ann", "eve")
    assert bench.next_item("eve").item == item
    bench.decide("eve", item, "label", "deer")
    assert bench.decisions.gold() == {item: "deer"}
    bench.decide("eve", item, "split")
    assert bench.present.status[code] == SPLIT
    assert bench.decisions.gold() == {}


def test_two_reviewers_get_different_items(bench):
    assert bench.next_item("ann").item != bench.next_item("bob").item


def test_with_two_reviews_a_second_reviewer_gets_the_same_item(tmp_path):
    journal = Journal(tmp_path / "state")
    bench = Workbench(lambda: examine(small()), journal, name="s", method="majority", reviews=2)
    item = bench.next_item("ann").item
    bench.decide("ann", item, "label", "fox")
    assert bench.next_item("ann").item != item
    assert bench.next_item("bob").item == item
    bench.close()


def test_the_queue_begins_with_the_least_certain_and_every_fifth_is_drawn(bench):
    certainty, drawn = [], []
    for _ in range(10):
        shown = bench.next_item("ann")
        certainty.append(
            bench.present.fit.report.doubt.certainty[bench.present.fit.codes[shown.item]]
        )
        drawn.append(shown.drawn)
        bench.decide("ann", shown.item, "label", "fox", drawn=shown.drawn)
    assert drawn == [False] * 4 + [True] + [False] * 4 + [True]
    chosen = [value for value, random in zip(certainty, drawn, strict=True) if not random]
    assert chosen == sorted(chosen)
    assert chosen[0] == bench.present.fit.report.doubt.certainty.min()


def test_checked_labels_calibrate_the_doubts_about_the_others():
    sure, unsure = np.full(900, 0.01), np.full(100, 0.4)
    confidence = 1 - sure
    rng = np.random.default_rng(0)
    as_stated = Checked(
        np.concatenate([unsure, sure[:200]]), rng.random(300) < np.concatenate([unsure, sure[:200]])
    )
    stated = checked_errors(confidence, as_stated)
    assert stated.low <= 9 <= stated.high
    many = Checked(sure[:200], np.arange(200) % 10 == 0)  # ten times as many errors as stated
    assert checked_errors(confidence, many).low > stated.expected
    none = Checked(np.concatenate([unsure, sure]), np.zeros(1000, dtype=bool))
    assert checked_errors(confidence, none).high < stated.high


def test_the_interval_holds_as_often_as_it_says_where_its_model_holds():
    rng, spread = np.random.default_rng(1), SPREAD
    held = 0
    for _ in range(100):
        odds = -rng.normal(2.5, 1.5, 400)
        first = np.argsort(-odds)[:60]  # chosen by doubt, and a few at random
        chosen = rng.permutation(np.union1d(first, rng.choice(400, 15, replace=False)))
        rest = np.setdiff1d(np.arange(400), chosen)
        walk = rng.normal(0, spread.shift) + np.cumsum(
            rng.normal(0, spread.drift / 20, len(chosen))
        )
        shift = np.full(400, walk[-1])
        shift[chosen] = walk  # drifts while they are checked
        slope = np.exp(rng.normal(0, spread.slope))
        wrong = rng.random(400) < 1 / (1 + np.exp(-(shift + slope * odds)))
        doubt = 1 / (1 + np.exp(-odds))
        errors = checked_errors(1 - doubt[rest], Checked(doubt[chosen], wrong[chosen]))
        held += errors.low - 0.5 <= wrong[rest].sum() <= errors.high + 0.5
    assert 0.82 <= held / 100 <= 0.98


def test_old_checks_count_less_than_new_ones():
    confidence, early = np.full(400, 0.9), np.arange(400) < 20
    errors = [
        checked_errors(confidence, Checked(np.full(400, 0.1), wrong)).expected
        for wrong in (early, early[::-1])
    ]
    assert errors[0] < errors[1] / 2


def test_a_review_states_how_many_to_check_and_when_to_stop():
    certainty = np.concatenate([np.full(50, 0.5), np.full(950, 0.995)])
    review = plan_review(certainty, np.ones(1000, dtype=bool), target=0.98)
    assert set(review.order[:50].tolist()) == set(range(50))
    assert 0 < review.n_needed <= 50
    assert not review.stop
    for n_checked, enough in ((50, False), (149, True)):  # 149 without an error show 98 %
        checked = Checked(np.full(n_checked, 0.005), np.zeros(n_checked, dtype=bool))
        rest = plan_review(certainty, certainty > 0.9, n_items=1000, checked=checked, target=0.98)
        assert rest.wrong[2] < 0.02
        assert rest.stop == enough
    slow = np.where(np.arange(1000) < 25, 100.0, 1.0)
    assert plan_review(certainty, np.ones(1000, dtype=bool), seconds=slow).order[0] == 25


def test_a_what_if_is_what_a_fit_of_the_changed_annotations_gives(bench):
    annotations = bench.reading.annotations
    name = str(annotations.annotators[3])
    effect = bench.what_if(Changes((name,), {"fox": "deer"}, "majority"))
    kept = annotations.subset(
        annotators=[one for one in annotations.annotators.tolist() if one != name]
    )
    rows = zip(
        kept.items[kept.item].tolist(),
        kept.annotators[kept.annotator].tolist(),
        ["deer" if one == "fox" else one for one in kept.classes[kept.label].tolist()],
        strict=True,
    )
    item, who, label = zip(*rows, strict=True)
    alone = aggregate(
        Annotations.from_columns(
            item, who, label, items=kept.items, classes=["badger", "boar", "deer", "empty"]
        ),
        "majority",
    )
    now = bench.present.fit.report.result.labels.tolist()
    differs = sum(
        ("deer" if a == "fox" else a) != b for a, b in zip(now, alone.labels.tolist(), strict=True)
    )
    assert len(effect.changed) == differs > 0
    assert bench.decisions.changes == Changes()


def test_kept_changes_are_fitted_and_can_be_taken_back(bench):
    name = str(bench.reading.annotations.annotators[0])
    item = bench.next_item("ann").item
    bench.decide("ann", item, "label", "fox")
    entry = bench.keep("ann", Changes((name,), {"fox": "red fox"}))
    bench.settle()
    assert name not in bench.present.fit.annotations.annotators.tolist()
    assert bench.present.fit.gold == {item: "red fox"}
    bench.undo("bob", entry.number)
    bench.settle()
    assert bench.present.fit.gold == {item: "fox"}
    assert name in bench.present.fit.annotations.annotators.tolist()


def test_kept_changes_that_are_not_possible_any_more_are_skipped_and_can_be_taken_back(tmp_path):
    journal = Journal(tmp_path / "state")
    stored = {"left_out": ["Zoe", "gone"], "renamed": {"lost": "deer", "fox": "red fox"}}
    journal.add("ann", "change", value=json.dumps({**stored, "method": "nonsense"}))
    bench = Workbench(lambda: examine(small()), journal, name="s", method="majority")
    fit = bench.present.fit
    assert bench.settled
    assert "Zoe" not in fit.annotations.annotators.tolist()
    assert "red fox" in fit.annotations.classes.tolist()
    assert [words in " ".join(fit.skipped) for words in ("'gone'", "'lost'", "nonsense")] == [
        True
    ] * 3
    assert "Zoe" not in fit.skipped[0]
    bench.undo("ann", bench.decisions.last_change.number)
    bench.settle()
    assert bench.present.fit.skipped == ()
    assert "Zoe" in bench.present.fit.annotations.annotators.tolist()
    bench.close()


def test_a_workbench_opens_when_kept_changes_make_the_fit_fail(tmp_path, monkeypatch):
    journal = Journal(tmp_path / "state")
    journal.add("ann", "change", value=json.dumps({"method": "glad"}))
    usual = workbench_module.fit

    def failing(reading, decisions, **options):
        if decisions.changes.method:
            raise DataError("glad cannot do this")
        return usual(reading, decisions, **options)

    monkeypatch.setattr(workbench_module, "fit", failing)
    bench = Workbench(lambda: examine(small()), journal, name="s", method="majority")
    assert "glad cannot do this" in bench.problem
    assert not bench.settled
    bench.undo("ann", 1)
    assert bench.settle()
    bench.close()


def test_what_comes_while_a_fit_fails_is_fitted(bench, monkeypatch):
    usual = workbench_module.fit

    def failing(*_args, **_options):
        monkeypatch.setattr(workbench_module, "fit", usual)
        bench.decide("ann", bench.next_item("ann").item, "label", "fox")
        raise DataError("no")

    bench.decide("ann", bench.next_item("ann").item, "label", "fox")
    monkeypatch.setattr(workbench_module, "fit", failing)
    bench.start()
    assert bench.settle(60)
    assert len(bench.present.fit.gold) == 2


def test_changes_that_are_not_possible_are_refused(bench):
    everybody = tuple(bench.reading.annotations.annotators.tolist())
    for changes, words in (
        (Changes(everybody), "keep at least one"),
        (Changes(("nobody",)), "no annotator"),
        (Changes((), {"cow": "deer"}), "no class"),
    ):
        with pytest.raises((DataError, OptionError), match=words):
            bench.keep("ann", changes)
    assert bench.journal.entries() == []


def test_filters_and_searches_find_what_a_loop_over_the_rows_finds(bench):
    bench.decide("ann", bench.next_item("ann").item, "label", "fox")
    catalogue, present = Catalogue(bench.present.fit), bench.present
    everything = [catalogue.row(present, code) for code in range(present.fit.annotations.n_items)]
    for wanted, keep in (
        (Filter(label="deer"), lambda row: row.label == "deer"),
        (Filter(status="decided"), lambda row: row.status == "decided"),
        (Filter(q="IMG_00"), lambda row: "img_00" in row.item.lower()),
        (Filter(votes="split"), lambda row: ", " in row.votes),
        (Filter(votes="unanimous"), lambda row: ", " not in row.votes),
        (Filter(cause=everything[0].cause), lambda row: row.cause == everything[0].cause),
    ):
        found = catalogue.find(present, wanted)
        assert found.n_items == sum(map(keep, everything)), wanted
        assert all(map(keep, found.rows))
    down = catalogue.find(present, Filter(down=True)).rows
    assert [row.certainty for row in down] == sorted((row.certainty for row in down), reverse=True)


def test_labels_that_arrive_are_taken_up(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text(
        "item,annotator,label\n"
        + "".join(f"i{k},a{j},{k % 2}\n" for k in range(9) for j in range(3))
    )
    bench = Workbench(
        lambda: examine(path), Journal(tmp_path / "s"), name="x", source=path, method="majority"
    )
    with path.open("a") as file:
        file.write("new,a0,1\nnew,a1,1\n")
    bench._look_at_file()
    assert "+2 labels" in bench.messages[-1]
    bench.settle()
    assert "new" in bench.present.fit.codes
    path.write_text("item,annotator\n1,2\n")
    bench._look_at_file()
    assert "cannot be read" in bench.messages[-1]
    assert "new" in bench.present.fit.codes
    bench.close()


def test_the_background_thread_fits_what_was_decided(bench):
    bench.start()
    bench.decide("ann", bench.next_item("ann").item, "label", "fox")
    assert bench.settle(60)
    assert len(bench.present.fit.gold) == 1


def test_a_fit_comes_also_while_decisions_never_pause(bench, monkeypatch):
    monkeypatch.setattr("dissensus.app.workbench._QUIET", 1e9)
    monkeypatch.setattr("dissensus.app.workbench._LONGEST", 0.2)
    bench._wanted.wait = lambda timeout=None: Condition.wait(bench._wanted, 0.02)
    bench.start()
    bench.decide("ann", bench.next_item("ann").item, "label", "fox")
    with bench._wanted:
        assert bench._wanted.wait_for(lambda: len(bench.present.fit.gold) == 1, 60)


def test_everything_taken_home_repeats_the_labels(bench, tmp_path):
    for value in ("fox", "deer", "fox"):
        bench.decide("ann", bench.next_item("ann").item, "label", value, comment='=1+1, "x"')
    bench.decide("bob", bench.next_item("bob").item, "unclear")
    bench.keep("ann", Changes(("Zoe",), {"empty": "nothing"}))
    bench.settle()
    entries, command = bench.journal.entries(), aggregate_command
    taken = exports.everything(bench.present.fit, bench.decisions, entries, command)
    with zipfile.ZipFile(io.BytesIO(taken.body)) as archive:
        archive.extractall(tmp_path / "home")
    home = tmp_path / "home"
    line = (
        (home / "reproduce.sh")
        .read_text()
        .splitlines()[-1]
        .replace("dissensus", f"{sys.executable} -m dissensus", 1)
    )
    subprocess.run(["sh", "-c", line], cwd=home, check=True, capture_output=True)
    with (home / "labels.csv").open() as one, (home / "labels-again.csv").open() as two:
        first, second = (
            {row["item"]: row["label"] for row in csv.DictReader(each)} for each in (one, two)
        )
    assert first == second
    reviews = read(home / "reviews.csv")
    assert sorted(reviews.annotators.tolist()) == ["ann", "bob"]
    assert "(unclear)" in reviews.classes.tolist()
    assert json.loads((home / "reproduce.ipynb").read_text())["nbformat"] == 4
    assert len((home / "journal.csv").read_text().splitlines()) == 6
    assert "<html" in (home / "report.html").read_text()


@pytest.mark.parametrize("name", exports.formats())
def test_labels_are_written_in_every_format_of_results(bench, name):
    assert exports.labels(bench.present.fit, name).body


def test_files_of_items_come_from_their_folder_only(tmp_path):
    folder = tmp_path / "images"
    folder.mkdir()
    (folder / "a.png").write_bytes(b"\x89PNG")
    (folder / "b.svg").write_text("<svg onload='x()'/>")
    (tmp_path / "secret.png").write_bytes(b"\x89PNG")
    (folder / "link.png").symlink_to(tmp_path / "secret.png")
    assert media_of("a.png", folder).kind == "image/png"
    for bad in (
        "../secret.png",
        str(tmp_path / "secret.png"),
        "link.png",
        "b.svg",
        "a.png\0",
        "x" * 500 + ".png",
        "none.png",
    ):
        assert media_of(bad, folder) is None, bad


def test_the_state_after_many_random_decisions_is_that_of_a_fresh_start(bench):
    rng = np.random.default_rng(0)
    classes = bench.present.fit.annotations.classes.tolist()
    for _ in range(60):
        who = str(rng.choice(_REVIEWERS))
        if rng.random() < 0.3 and bench.decisions.last(who) is not None:
            bench.undo(who)
        else:
            item = str(rng.choice(bench.present.fit.annotations.items.tolist()))
            kind = str(rng.choice(["label", "label", "split"]))
            bench.decide(who, item, kind, str(rng.choice(classes)) if kind == "label" else "")
    fresh = Present.of(bench.present.fit, Decisions(bench.journal.entries()))
    for name in ("label", "certainty", "status", "provisional", "accuracy"):
        np.testing.assert_allclose(getattr(bench.present, name), getattr(fresh, name), atol=1e-9)


def of_rows(folder, *rows: str, state: str = "state") -> Workbench:
    """Return a workbench on rows such as "i1 ann cat", in a file that others may replace."""
    path = folder / "answers.csv"
    path.write_text(
        "item,annotator,label\n" + "".join(f"{row.replace(' ', ',')}\n" for row in rows)
    )
    return Workbench(
        lambda: examine(path),
        Journal(folder / state),
        name="answers.csv",
        source=path,
        method="majority",
    )


def table(taken: exports.Taken) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(taken.body.decode())))


def gold_of(bench: Workbench) -> dict[str, str]:
    """Return what decisions.csv has after a fit."""
    bench.settle()
    return {row["item"]: row["label"] for row in table(exports.decisions_table(bench.present.fit))}


ANIMALS = [
    f"i{k} {who} {label}"
    for k in range(8)
    for who, label in zip("abcd", ("cat", "dog", "cow", "cats"), strict=True)
]


@pytest.mark.parametrize(
    "other",
    [
        {"reviewer": "bob"},
        {"item": "b"},
        {"value": "dog"},
        {"comment": "sure"},
        {"kind": "split", "value": ""},
    ],
)
def test_an_id_with_another_content_is_refused_and_the_first_is_kept(tmp_path, other):
    journal = Journal(tmp_path / "state")
    fields = {"reviewer": "ann", "kind": "label", "item": "a", "value": "cat", "request": "r"}
    first, _ = journal.add(**fields)
    with pytest.raises(RequestError, match="sent before"):
        journal.add(**{**fields, **other})
    assert journal.add(**fields) == (first, False)
    assert journal.entries() == [first]
    journal.close()


def test_the_same_undo_takes_back_one_decision_and_another_undo_another(bench):
    for _ in range(3):
        bench.decide("ann", bench.next_item("ann").item, "label", "fox")
    first, second, _ = bench.decisions.all
    taken = bench.undo("ann", request="u1")
    assert bench.undo("ann", request="u1").number == taken.number
    assert bench.decisions.all == [first, second]
    bench.undo("ann", request="u2")
    assert bench.decisions.all == [first]
    for who in ("bob", "ann"):
        with pytest.raises(RequestError):
            bench.undo(who, first.number, request="u2")
    assert bench.decisions.all == [first]


def test_undos_at_the_same_moment_take_back_one_decision_each(bench):
    items = bench.present.fit.annotations.items.tolist()
    for attempt in range(10):
        for item in items[:5]:
            bench.decide("ann", item, "label", "fox")
        start = Barrier(3)

        def undo(k: int, start: Barrier = start, attempt: int = attempt) -> int:
            start.wait()
            return bench.undo("ann", request=f"{attempt}-{k}").number

        with ThreadPoolExecutor(3) as pool:
            numbers = list(pool.map(undo, range(3)))
        assert len(set(numbers)) == 3
        assert set(bench.decisions.gold()) == set(items[:2])
        for _ in range(2):
            bench.undo("ann")


def test_changes_are_taken_back_once_by_the_same_request(bench):
    bench.keep("ann", Changes((), {"fox": "red fox"}))
    bench.keep("ann", Changes((), {"deer": "roe deer"}))
    for _ in range(2):
        bench.take_back("bob", request="t1")
    assert bench.decisions.changes == Changes((), {"fox": "red fox"})
    bench.take_back("bob", request="t2")
    assert bench.decisions.changes == Changes()
    assert bench.take_back("bob", request="t3") is None


def test_a_decision_that_comes_later_to_the_journal_comes_later_to_the_memory(bench):
    item = bench.present.fit.annotations.items.tolist()[0]
    add, second_is_in = bench.journal.add, Event()

    def slow(*args, **fields):
        entry = add(*args, **fields)
        if fields["value"] == "fox":
            second_is_in.wait(0.3)  # the first is in the journal, and the second may overtake it
        return entry

    bench.journal.add = slow
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(bench.decide, "ann", item, "label", "fox")
        while not bench.journal.entries():
            pass
        pool.submit(bench.decide, "ann", item, "label", "deer").result()
        second_is_in.set()
        first.result()
    assert bench.journal.entries()[-1].value == "deer"
    assert bench.decisions.gold() == Decisions(bench.journal.entries()).gold() == {item: "deer"}
    code = bench.present.fit.codes[item]
    assert bench.present.fit.annotations.classes[bench.present.label[code]] == "deer"


def test_after_posts_at_once_everything_is_as_it_was_shown(tmp_path):
    annotations = small(40)
    bench = Workbench(
        lambda: examine(annotations), Journal(tmp_path / "state"), name="s", method="majority"
    )
    items, start = annotations.items.tolist(), Barrier(4)

    def post(k: int) -> None:
        start.wait()
        for item in items:
            bench.decide("ann", item, "label", ("fox", "deer", "boar", "empty")[k])
            if k == 3:
                bench.undo("ann")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(post, range(4)))
    assert len(bench.journal.entries()) == 5 * 40
    again = Decisions(bench.journal.entries())
    assert bench.decisions.gold() == again.gold()
    assert bench.decisions.last("ann") == again.last("ann")
    fresh = Present.of(bench.present.fit, again)
    np.testing.assert_array_equal(bench.present.label, fresh.label)
    bench.close()


@pytest.mark.parametrize(
    ("renamed", "button", "of_file"),
    [
        ({"cat": "dog", "dog": "fox"}, "dog", "cat"),
        ({"cat": "dog", "dog": "fox"}, "fox", "dog"),
        ({"cat": "dog", "dog": "cat"}, "cat", "dog"),
        ({"cat": "dog", "dog": "cow", "cow": "cat"}, "cow", "dog"),
        ({"cat": "lion"}, "lion", "cat"),
        ({"cats": "cat"}, "cat", "cat"),
        ({"cats": "cat", "cat": "dog", "dog": "cats"}, "cat", "cats"),
    ],
)
def test_a_button_exports_its_name_and_the_class_of_the_file_when_taken_back(
    tmp_path, renamed, button, of_file
):
    bench = of_rows(tmp_path, *ANIMALS)
    entry = bench.keep("ann", Changes((), renamed))
    bench.settle()
    bench.decide("ann", "i1", "label", button)
    assert bench.present.fit.classes[button] == bench.present.label[bench.present.fit.codes["i1"]]
    for _ in range(2):
        assert gold_of(bench) == {"i1": button}
        (review,) = table(exports.reviews_table(bench.decisions))
        assert review["label"] == button
        assert table(exports.journal_table(bench.entries()))[1]["value"] == of_file
        bench.close()
        bench = of_rows(tmp_path, *ANIMALS)
    bench.undo("bob", entry.number)
    assert gold_of(bench) == {"i1": of_file}
    bench.close()


def test_a_choice_of_merged_classes_is_open_again_when_they_are_apart(tmp_path):
    bench = of_rows(tmp_path, *ANIMALS)
    entry = bench.keep("ann", Changes((), {"cat": "pet", "dog": "pet"}))
    bench.settle()
    bench.decide("ann", "i1", "label", "pet")
    bench.decide("bob", "i1", "label", "pet")
    assert gold_of(bench) == {"i1": "pet"}
    bench.undo("ann", entry.number)
    assert gold_of(bench) == {}
    assert len(bench.decisions.apart) == 2
    assert not bench.present.status[bench.present.fit.codes["i1"]]
    bench.keep("ann", Changes((), {"cat": "beast", "dog": "beast"}))
    assert gold_of(bench) == {"i1": "beast"}
    bench.close()


def test_reviewers_agree_whose_classes_are_merged(tmp_path):
    bench = of_rows(tmp_path, *ANIMALS)
    bench.decide("ann", "i1", "label", "cat")
    bench.decide("bob", "i1", "label", "cats")
    assert gold_of(bench) == {}
    bench.keep("ann", Changes((), {"cats": "cat"}))
    assert gold_of(bench) == {"i1": "cat"}
    bench.close()


def test_a_page_from_before_a_change_decides_by_the_names_that_it_showed(tmp_path):
    bench = of_rows(tmp_path, *ANIMALS)
    before = bench.present.fit.changes_number
    entry = bench.keep("ann", Changes((), {"cat": "dog", "dog": "cat"}))
    bench.settle()
    bench.decide("bob", "i1", "label", "dog", changes=before)
    bench.decide("bob", "i2", "label", "dog", changes=entry.number)
    assert gold_of(bench) == {"i1": "cat", "i2": "dog"}
    assert [one.value for one in bench.decisions.all] == ["dog", "cat"]
    bench.close()


def test_what_if_compares_names_of_the_file_once(tmp_path):
    bench = of_rows(tmp_path, *[f"i{k} {who} cat" for k in range(3) for who in "ab"], "i3 a dog")
    swapped = Changes((), {"cat": "dog", "dog": "cat"})
    bench.decide("ann", "i3", "label", "cat")
    bench.keep("ann", swapped)
    bench.settle()
    assert not len(bench.what_if(swapped).changed)
    assert not len(bench.what_if(Changes()).changed)
    assert bench.what_if(Changes((), {"cat": "dog"})).after == []
    bench.close()


def test_a_journal_of_version_1_is_read_as_it_was_meant(tmp_path):
    for name in ("renamed.csv", "renamed.csv.workbench"):
        copy(OLD / name, tmp_path / name)
    meant = dict.fromkeys(("i1", "i2", "i5", "i7", "i10"), "cat")
    meant |= {"i3": "dog", "i6": "dog", "i4": "bird", "i8": "bird", "i9": "bird"}
    swapped = {"cat": "dog", "dog": "cat"}
    path = tmp_path / "renamed.csv"
    for attempt in range(2):
        bench = Workbench(
            lambda: examine(path), Journal(f"{path}.workbench"), name="x", method="majority"
        )
        assert bench.decisions.gold() == meant
        assert gold_of(bench) == {item: swapped.get(label, label) for item, label in meant.items()}
        assert bench.decisions.outdated == []
        rows = table(exports.journal_table(bench.entries()))
        stated = {row["item"]: row["value"] for row in rows if row["kind"] == "label"}
        assert stated == {"i12": "bird", **meant}
        if not attempt:
            bench.decide("ann", "i12", "label", "cat")
            meant["i12"] = "dog"
        bench.close()


STUDY = [f"i{k} {who} {label}" for k in range(6) for who, label in zip("abc", "xxy", strict=True)]
OTHER = [f"i{k} {who} y" for k in range(6) for who in "def"]


def decided(folder) -> None:
    """Keep six decisions on a study."""
    bench = of_rows(folder, *STUDY)
    for k in range(6):
        bench.decide("ann" if k < 4 else "bob", f"i{k}", "label", "x")
    assert len(gold_of(bench)) == 6
    bench.close()


@pytest.mark.parametrize("other", [OTHER, [row.replace(" x", " z") for row in STUDY if "x" in row]])
def test_decisions_on_labels_that_are_gone_are_gold_only_when_confirmed(tmp_path, other):
    decided(tmp_path)
    bench = of_rows(tmp_path, *other, "i0 g x")  # x is a class in both
    assert "6 decisions" in bench.outdated_words
    assert gold_of(bench) == {}
    assert table(exports.reviews_table(bench.decisions)) == []
    assert len(bench.entries()) == 6
    assert not bench.present.status.any()
    with pytest.raises(DataError, match="changed"):
        bench.confirm("owner", "a mark of another page")
    mark = bench.outdated_mark
    for _ in range(2):
        bench.confirm("owner", mark, request="r")
    assert len(bench.entries()) == 7
    for _ in range(2):
        assert bench.outdated_words == ""
        assert gold_of(bench) == {f"i{k}": "x" for k in range(6)}
        bench.close()
        bench = of_rows(tmp_path, *other, "i0 g x")
    bench.close()
    bench = of_rows(tmp_path, *[f"i{k} h x" for k in range(6)], "i0 h y")
    assert "6 decisions" in bench.outdated_words
    assert gold_of(bench) == {}
    bench.close()
    bench = of_rows(tmp_path, *STUDY)
    assert bench.outdated_words == ""
    bench.close()


def test_a_new_decision_on_labels_of_now_counts_beside_those_on_labels_that_are_gone(tmp_path):
    decided(tmp_path)
    bench = of_rows(tmp_path, *OTHER, "i0 g x")
    bench.decide("ann", "i0", "label", "y")
    bench.decide("eve", "i5", "label", "y")
    assert "4 decisions" not in bench.outdated_words
    assert "5 decisions" in bench.outdated_words  # i1 to i5
    assert gold_of(bench) == {"i0": "y", "i5": "y"}
    bench.undo("ann")
    assert "6 decisions" in bench.outdated_words
    bench.close()


@pytest.mark.parametrize(
    "rows",
    [
        [*STUDY, *OTHER],  # grew
        [row.replace(" a x", " a y") for row in STUDY],  # some labels changed
        STUDY[::-1],
        [row for row in STUDY if " c " not in row],
        [row for row in STUDY if not row.startswith("i3")],
    ],
)
def test_a_file_that_grew_or_changed_in_part_is_not_accused(tmp_path, rows):
    decided(tmp_path)
    bench = of_rows(tmp_path, *rows)
    assert bench.decisions.outdated == []
    assert bench.outdated_words == ""
    assert len(gold_of(bench)) == len({row.split()[0] for row in rows})
    bench.close()


def test_labels_that_a_decision_saw_are_those_of_the_file_whatever_is_kept(tmp_path):
    bench = of_rows(tmp_path, *STUDY)
    bench.keep("ann", Changes(("a", "b"), {"x": "y", "y": "x"}))
    bench.settle()
    bench.decide("ann", "i0", "label", "x")
    bench.close()
    bench = of_rows(tmp_path, *STUDY)
    assert bench.outdated_words == ""
    assert gold_of(bench) == {"i0": "x"}
    bench.close()


def test_a_file_that_is_replaced_while_the_workbench_is_open_is_noticed(tmp_path):
    decided(tmp_path)
    bench = of_rows(tmp_path, *STUDY)
    page = bench.decide("ann", "i0", "label", "x").labels
    sentences: list[str] = []
    bench.say = sentences.append
    (tmp_path / "answers.csv").write_text(
        "item,annotator,label\n"
        + "".join(f"{row.replace(' ', ',')}\n" for row in [*OTHER, "i0 g x"])
    )
    bench._look_at_file()
    assert "6 decisions" in bench.messages[-1]
    assert sentences == [bench.outdated_words]
    bench.decide("ann", "i1", "label", "x", labels=page)  # from a page of before
    bench.settle()
    bench.decide("ann", "i2", "label", "x")
    assert gold_of(bench) == {"i2": "x"}
    bench.close()
