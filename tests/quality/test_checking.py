import json
import re
from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from dissensus import Annotations, Numbers, check, demo, read, simulate
from dissensus.formats import Reading, examine
from dissensus.formats.spellings import like_one, loosely
from dissensus.quality.check_annotators import Streams, _with_most
from dissensus.quality.check_times import seconds
from dissensus.quality.checks import CODES, Check

from ..support import (
    annotation_rows,
    relation,
    rows_of,
    run,
    shared,
    shared_files,
    shared_path,
    shared_truth,
)


def found(what, code, **options):
    """Return the finding of that name, or nothing."""
    summary = check(what, **options)
    assert all(one.code in CODES for one in summary.findings)
    return next((one for one in summary.findings if one.code == code), None)


def crowd(n_items=60, n_annotators=6, n_classes=3, seed=0, accuracy=0.8):
    """Return rows of a crowd in which everybody labels everything."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n_items)
    annotations = np.where(
        rng.random((n_items, n_annotators)) < accuracy,
        truth[:, None],
        rng.integers(0, n_classes, (n_items, n_annotators)),
    )
    return annotations, truth


def test_a_good_crowd_has_nothing_against_it():
    annotations, truth = crowd(300, 8)
    summary = check(Annotations.from_matrix(annotations), gold=dict(enumerate(truth.tolist())))
    assert summary.findings == ()
    assert summary.n_labels == 2400
    assert summary.labels_per_item == (8, 8.0, 8.0, 8)
    assert summary.labels_per_annotator == (300, 300.0, 300.0, 300)
    assert sum(summary.classes.values()) == 2400


@settings(max_examples=60)
@given(rows=annotation_rows(most=40))
def test_repeats_and_contradictions_are_those_of_a_plain_count(rows):
    pairs = defaultdict(list)
    for item, annotator, label in rows:
        pairs[item, annotator].append(label)
    repeats = sum(len(labels) - len(set(labels)) for labels in pairs.values())
    contradictions = sum(len(set(labels)) > 1 for labels in pairs.values())
    annotations = relation(rows)
    assert getattr(found(annotations, "repeats"), "count", 0) == repeats
    assert getattr(found(annotations, "contradictions"), "count", 0) == contradictions
    values = Numbers.from_columns(*zip(*[(i, a, float(v)) for i, a, v in rows], strict=True))
    assert getattr(found(values, "repeats"), "count", 0) == repeats
    assert getattr(found(values, "contradictions"), "count", 0) == contradictions


def test_several_labels_at_once_are_serious_and_asking_again_is_not():
    twice = [(str(i), "x", label) for i in range(50) for label in ("0", "1")]
    others = [(str(i), who, "0") for i in range(50) for who in "yz"]
    assert found(relation(twice + others), "contradictions").severity == "serious"
    again = [(str(i), "x", "0") for i in range(50)] * 3 + [(str(i), "x", "1") for i in range(9)]
    assert found(relation(again + others), "contradictions").severity == "worth knowing"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Cat", "cat"),
        ("cat", "cat "),
        ("yes", "Yes."),
        ("1", "1.0"),
        ("caf\u00e9", "cafe\u0301"),
        ("\uff39es", "yes"),
        ("not_related", "Not related"),
        ("no\u200b", "no"),
    ],
)
def test_spellings_of_one_class_are_found(one, other):
    annotations = relation(
        [("a", "x", one), ("a", "y", other), ("b", "x", "fox"), ("b", "y", "fox")]
    )
    finding = found(annotations, "spellings", scale="nominal")
    assert finding.severity == "serious"
    assert finding.count == 1
    assert repr(one) in finding.examples[0]
    assert repr(other) in finding.examples[0]


@pytest.mark.parametrize("pair", [("-1", "1"), ("C", "C++"), ("a", "b"), ("+", "-"), ("?", "!")])
def test_different_classes_are_not_spellings_of_one(pair):
    assert loosely(pair[0]) != loosely(pair[1])


def test_annotators_and_items_are_compared_more_carefully():
    annotations = relation(
        [("A", "Ann", "x"), ("a", "ann ", "y"), ("a ", "bob", "x"), ("A", "bob", "y")]
    )
    assert found(annotations, "annotator-spellings").examples == ("'Ann' (1), 'ann ' (1)",)
    assert found(annotations, "item-spellings").examples == ("'a' (1), 'a ' (1)",)
    assert like_one(annotations.items.tolist(), str.casefold) == [[0, 1]]


def test_labels_that_look_missing_are_reported():
    rows = [(str(i), who, "0") for i in range(3) for who in "xyz"]
    assert found(relation([*rows, ("9", "x", "1"), ("9", "y", "-1")]), "missing-like").count == 1
    assert found(relation([*rows, ("9", "x", "n/a")]), "missing-like").examples == ("'n/a' (1)",)
    scale = relation([*rows, ("9", "x", "-1"), ("9", "y", "-2"), ("9", "z", "1")])
    assert found(scale, "missing-like") is None


def test_free_text_is_reported_and_checks_of_classes_are_skipped():
    rows = [(str(i % 30), str(i % 7), f"text {i}") for i in range(120)]
    annotations = relation(rows)
    assert found(annotations, "free-text").severity == "serious"
    for code in ("spellings", "sparse-confusion", "copies", "gold-classes", "rare-classes"):
        assert found(annotations, code, gold={"0": "something else"}) is None


def test_unused_rare_and_single_classes_are_reported():
    annotations, _ = crowd(100, 4)
    annotations[0, 0] = 4
    summary = Annotations.from_matrix(annotations, classes=[0, 1, 2, 3, 4])
    assert found(summary, "unused-classes").examples == ("3",)
    assert found(summary, "rare-classes").examples == ("4 (1)",)
    assert found(relation([("a", "x", "0"), ("b", "y", "0")]), "one-class").severity == "serious"


def test_too_few_labels_are_reported():
    one_each = relation([("a", "x", "0"), ("b", "y", "1"), ("c", "z", "0")])
    assert found(one_each, "no-overlap").severity == "serious"
    two = relation(
        [("a", "x", "0"), ("a", "y", "1"), ("b", "z", "1"), ("b", "x", "1")], items="abc"
    )
    assert found(two, "two-labels").severity == "serious"
    assert found(two, "unlabelled-items").examples == ("c",)
    assert found(relation([("a", "x", "0"), ("a", "y", "1")]), "few-annotators").count == 2
    many = relation([("a", who, "0") for who in "xyz"] + [("b", "x", "1")])
    assert found(many, "single-labels").examples == ("b",)
    assert found(many, "light-annotators").count == 3
    mostly = [(str(i), "x", "01"[i % 2]) for i in range(20)]
    mostly += [("0", who, "0") for who in "yz"]
    assert found(relation(mostly), "dominant-annotator").count == 20
    assert found(relation(mostly), "single-labels").severity == "serious"


def test_groups_without_shared_items_are_named_with_their_sizes():
    rows = [(f"a{i}", who, "01"[i % 2]) for i in range(10) for who in ("x", "y", "z")]
    rows += [(f"b{i}", who, "01"[i % 2]) for i in range(5) for who in ("u", "v")]
    finding = found(relation(rows), "groups")
    assert finding.count == 2
    assert finding.severity == "serious"
    assert finding.examples == (
        "3 annotators, 30 labels (x, y, …)",
        "2 annotators, 10 labels (u, v)",
    )
    assert found(relation([*rows, ("b0", "x", "1")]), "groups") is None
    few = [(f"a{i}", who, "01"[i % 2]) for i in range(20) for who in ("x", "y", "z")]
    assert found(relation([*few, ("b", "u", "1")]), "groups").severity == "worth knowing"


def test_who_always_says_one_class_is_found_unless_others_would_too():
    annotations, _ = crowd(60, 6)
    annotations[:, 2] = 1
    finding = found(Annotations.from_matrix(annotations), "always-the-same")
    assert finding.examples == ("2: 60 × 1",)
    rng = np.random.default_rng(0)
    rare = (rng.random((60, 5)) < 0.02).astype(int)  # nearly everything is 0, for everybody
    rare[:, 0] = 0
    assert found(Annotations.from_matrix(rare), "always-the-same") is None


@settings(max_examples=40)
@given(rows=annotation_rows(most=40))
def test_agreement_with_most_others_is_that_of_a_plain_count(rows):
    annotations = relation(rows)
    hits, total = Counter(), Counter()
    for item, annotator, label in rows_of(annotations):
        votes = Counter(given for other, _, given in rows_of(annotations) if other == item)
        votes[label] -= 1
        rival = max((n for name, n in votes.items() if name != label), default=0)
        hits[annotator] += votes[label] >= rival
        total[annotator] += 1
    expected = [(hits[who] + 0.5) / (total[who] + 1) for who in annotations.annotators.tolist()]
    np.testing.assert_allclose(_with_most(Streams(annotations)), expected)


def test_copies_are_found_and_good_annotators_are_not_taken_for_them():
    annotations, _ = crowd(80, 7, accuracy=0.6)
    assert found(Annotations.from_matrix(annotations), "copies") is None
    annotations[:, 6] = annotations[:, 3]
    annotations[:20, 6] = -1  # fewer items, but the same labels
    finding = found(Annotations.from_matrix(annotations), "copies")
    assert finding.count == 2
    assert finding.examples == ("3, 6: the same on 60 items",)
    annotations[:, 5] = annotations[:, 3]
    assert found(Annotations.from_matrix(annotations), "copies").severity == "serious"
    mixed, truth = crowd(80, 7, accuracy=0.6)
    mixed[:, 0] = mixed[:, 1] = truth  # two who know
    assert found(Annotations.from_matrix(mixed), "copies") is None
    easy, _ = crowd(80, 7, accuracy=1.0)
    assert found(Annotations.from_matrix(easy), "copies") is None


@pytest.mark.parametrize("seed", range(5))
def test_honest_crowds_have_no_copies(seed):
    for strategy in ("hammer-spammer", "independent-confusion", "one-coin", "glad"):
        made = simulate(
            strategy, n_items=150, n_annotators=30, n_classes=3, feedback=12, seed=seed, fast=True
        )
        assert found(made.annotations, "copies") is None


def timed(times=None, durations=None, n=40):
    """Return three annotators who label n items; times and durations by annotator."""
    rows = [(str(i), who, "01"[i % 2]) for who in range(3) for i in range(n)]
    item, annotator, label = zip(*rows, strict=True)
    columns = {}
    if times is not None:
        columns["time"] = np.concatenate([np.asarray(times[who]) for who in range(3)])
    if durations is not None:
        columns["duration"] = np.repeat(np.asarray(durations, dtype=float), n)
    return Annotations.from_columns(item, annotator, label, **columns)


def test_speed_that_nobody_has_is_found():
    steady = 1.7e9 + 10.0 * np.arange(40)
    assert check(timed(times=[steady, steady, steady])).findings == ()
    rushed = 1.7e9 + np.r_[0.2 * np.arange(30), 1000 + 10.0 * np.arange(10)]
    finding = found(timed(times=[steady, rushed, steady]), "bursts")
    assert finding.count == 30
    assert finding.examples == ("1 (30 labels)",)
    pages = 1.7e9 + 60.0 * (np.arange(40) // 10)
    assert found(timed(times=[pages, pages, steady]), "same-time").severity == "worth knowing"
    assert found(timed(times=[pages, pages, steady]), "bursts") is None
    assert found(timed(durations=[12, 10, 1]), "fast-annotators").examples == ("2: 1 s",)
    assert found(timed(durations=[12, 10, 11]), "fast-annotators") is None
    assert found(timed(durations=[12, 10, -1]), "impossible-durations").count == 40
    texts = [np.array(["noon"] * 40)] * 3
    assert found(timed(times=texts), "unreadable-times").examples == ("noon",)


def test_times_are_seconds_whatever_counts_them():
    moments = np.array(["2026-01-01T00:00:00", "2026-01-01T00:00:10", "NaT"], dtype="M8[ms]")
    expected = seconds(moments)
    assert expected[1] - expected[0] == 10
    assert np.isnan(expected[2])
    for parts in (1, 1e3, 1e6, 1e9):
        np.testing.assert_allclose(seconds((expected[:2] * parts).astype(np.int64)), expected[:2])


def test_gold_is_looked_at():
    annotations, truth = crowd(100, 5)
    summary = Annotations.from_matrix(annotations)
    gold = {str(item): str(label) for item, label in enumerate(truth.tolist())}
    assert check(summary, gold=gold).findings == ()
    assert found(summary, "gold-elsewhere", gold={"x": "0"}).severity == "serious"
    assert found(summary, "gold-elsewhere", gold={**gold, "x": "0"}).examples == ("x",)
    assert found(summary, "gold-classes", gold={"0": "cat"}).examples == ("cat",)
    moved = {item: str((int(label) + 1) % 3) for item, label in gold.items()}
    assert found(summary, "gold-moved", gold=moved).severity == "serious"
    agreed = next(i for i in range(100) if len(set(annotations[i])) == 1)
    wrong = {**gold, str(agreed): str((annotations[agreed, 0] + 1) % 3)}
    finding = found(summary, "gold-alone", gold=wrong)
    assert finding.count == 1
    assert "5 of 5 say" in finding.examples[0]


def test_numbers_have_outliers_and_constant_annotators():
    rng = np.random.default_rng(0)
    value = rng.normal(50, 5, (40, 5))
    value[3, 2] = 900.0
    value[:, 4] = 7.0
    item, who = np.divmod(np.arange(200), 5)
    annotations = Numbers.from_columns(item, who, value.ravel())
    assert "2 on 3: 900" in found(annotations, "outliers").examples[0]
    assert found(annotations, "constant-numbers").examples == ("4: 40 × 7",)
    assert check(annotations).kind == "numbers"
    assert check(annotations).classes == {}
    same = Numbers.from_columns([0, 0, 0, 0, 1, 1, 1], [0, 1, 2, 3, 0, 1, 2], [1] * 6 + [2])
    assert found(same, "outliers") is None


def test_labels_are_checked_on_the_scale_they_are_read_with():
    rows = [(str(i), who, f"{i}.5") for i in range(4) for who in "xyz"]
    columns = dict(zip(("item", "annotator", "label"), zip(*rows, strict=True), strict=True))
    read = check(columns)
    assert (read.kind, read.scale) == ("numbers", "interval")
    assert "not a whole one" in read.reason
    assert check(columns, scale="nominal").kind == "classes"
    assert check(relation(rows)).kind == "classes"
    assert check(relation(rows).with_scale("ratio")).kind == "numbers"


def test_a_reading_brings_its_gold_and_notes(tmp_path):
    (tmp_path / "a.csv").write_text("item,annotator,label\na,x,0\na,y,0\na,z,1\n")
    assert check(tmp_path / "a.csv").n_labels == 3
    reading = examine(tmp_path / "a.csv")
    of_reading, of_answers = check(reading), check(reading.annotations)
    assert (of_reading.format, of_answers.format) == ("csv", "annotations")
    assert replace(of_reading, reason="", format="") == replace(of_answers, reason="", format="")


def test_counts_of_votes_are_reported_as_anonymous():
    annotations = relation([("a", who, "0") for who in "xyz"])
    assert found(Reading(annotations, "votes"), "anonymous").severity == "serious"
    assert found(Reading(annotations, "csv"), "anonymous") is None


@settings(max_examples=40)
@given(rows=annotation_rows(most=25))
def test_any_relation_can_be_checked_and_written_as_json(rows):
    summary = check(relation(rows, classes="0123"), gold={"a": "1", "q": "9"})
    assert isinstance(summary, Check)
    again = json.loads(json.dumps(summary.as_dict(), allow_nan=False))
    assert again["n_labels"] == len(rows)
    for one in summary.findings:
        assert one.count > 0
        assert one.severity in ("serious", "worth knowing")
        assert one.sentence.endswith(".")


def test_nothing_at_all_can_be_checked():
    empty = Annotations.from_codes(*[np.zeros(0, np.int64)] * 3, items=0, annotators=0, classes=0)
    assert check(empty).findings == ()
    assert check(Numbers.from_columns([], [], [])).findings == ()


def test_the_order_of_rows_and_the_names_do_not_matter():
    annotations = demo()[0]
    rows = rows_of(annotations)
    order = np.random.default_rng(0).permutation(len(rows))
    assert check(relation([rows[position] for position in order])) == check(annotations)


# Shared sets whose answers are not one class per item, by kind; all others are classes.
TEXTS = {"alt_kilogram", "crowdspeech_dev_clean", "crowdwsa", "vldb2021_speech"}
SETS_IN_ROWS = {"jobs_q3", "lewidi_varierrnli"}  # several labels at once, one row for each
TWO_ANNOTATORS = {"cje_arena"}
OTHER_KINDS = {
    "boxes_people": "boxes",
    "masks_cells": "masks",
    "ner_conll": "spans",
    "rank_dots": "rankings",
    "relations_sets": "sets",
}
SETS = {path.parent.name for path in shared_files("*/answers.csv.gz")}


@pytest.mark.parametrize("name", sorted(SETS - OTHER_KINDS.keys()))
def test_every_shared_set_is_checked_without_surprise(name):
    annotations = shared(name)
    gold = shared_truth(name) if (shared_path(name) / "truth.csv.gz").exists() else None
    summary = check(annotations, gold=gold)
    codes = {one.code for one in summary.findings}
    serious = {one.code for one in summary.serious}
    assert not serious & {"one-class", "no-overlap", "gold-moved", "gold-alone"}
    assert ("few-annotators" in serious) == (name in TWO_ANNOTATORS)
    assert ("free-text" in codes) == (name in TEXTS)
    assert ("contradictions" in serious) == (name in SETS_IN_ROWS)


@pytest.mark.parametrize("name", OTHER_KINDS)
def test_answers_of_other_kinds_are_recognised_and_checked(name):
    tasks = shared_path(name) / "tasks.csv.gz"
    answers = read(shared_path(name) / "answers.csv.gz", inputs=tasks if tasks.exists() else None)
    summary = check(answers)
    assert summary.kind == OTHER_KINDS[name]
    serious = {one.code for one in summary.serious}
    assert serious == ({"groups"} if name == "rank_dots" else set())  # everybody votes once


def test_the_command_lists_the_findings(tmp_path):
    rows = [f"{i},{who},{'Cat' if who == 'z' else 'cat'}" for i in range(3) for who in "xyz"]
    (tmp_path / "a.csv").write_text("\n".join(["item,annotator,label", *rows, "0,x,dog\n"]))
    (tmp_path / "gold.csv").write_text("item,label\n0,cat\n9,dog\n")
    done = run("check", "a.csv", "--gold", "gold.csv", cwd=tmp_path)
    summary = done.stdout.decode()
    assert done.returncode == 0
    assert "10 labels by 3 annotators on 3 items, gold for 2." in " ".join(summary.split())
    for word in ("spellings", "serious", "contradictions", "gold-elsewhere", "→ write them alike"):
        assert word in summary
    assert max(map(len, summary.splitlines())) <= 80
    assert run("check", "a.csv", "--strict", cwd=tmp_path).returncode == 1
    machine = json.loads(run("check", "a.csv", "--json", cwd=tmp_path).stdout)
    assert machine["format"] == "csv"
    assert machine["findings"][0]["code"] == "spellings"
    assert run("check", "nothing.csv", cwd=tmp_path).returncode == 2
    (tmp_path / "b.csv").write_text(
        "item,annotator,label\n"
        + "".join(f"{i},{who},{i % 2}\n" for i in range(50) for who in "uvwxyz")
    )
    done = run("check", "b.csv", "--strict", cwd=tmp_path)
    assert done.returncode == 0
    assert b"Nothing was found" in done.stdout


def test_repeated_answers_of_other_kinds_are_counted():
    from dissensus.answers import Sets

    answers = Sets.from_values([*"abba"], [*"xxyx"], [["p"], ["q"], ["p"], ["q"]])
    repeats = next(one for one in check(answers).findings if one.code == "repeats")
    assert (repeats.count, repeats.examples) == (1, ("a",))


def test_the_page_lists_every_finding():
    from ..test_docs import ROOT

    page = (ROOT / "docs" / "commands" / "check.md").read_text("utf-8")
    for code, summary in CODES.items():
        assert re.search(rf"^\| `{code}` \| {re.escape(summary)} \|", page, re.MULTILINE), code


def test_few_equal_answers_are_no_copies_and_many_are():
    from dissensus.answers import Sets

    rng = np.random.default_rng(0)

    def crowd(n_items, copying):
        truth = rng.random((n_items, 6)) < 0.4
        given = truth[:, None] ^ (rng.random((n_items, 5, 6)) < 0.03)  # (item, annotator, option)
        if copying:
            given[:, 4] = given[:, 3]
        cells = [(i, a) for i in range(n_items) for a in range(5)]
        item, who = zip(*cells, strict=True)
        return Sets.from_values(item, who, [np.flatnonzero(given[cell]).tolist() for cell in cells])

    assert not any(one.code == "copies" for one in check(crowd(6, True)).findings)
    assert not any(one.code == "copies" for one in check(crowd(60, False)).findings)
    assert any(one.code == "copies" for one in check(crowd(60, True)).findings)
