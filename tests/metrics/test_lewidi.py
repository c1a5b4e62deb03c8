"""The scores of LeWiDi-2025: by hand, and recomputed on its data."""

import csv
import gzip
import json
from collections import defaultdict

import numpy as np
import pytest
from scipy.stats import wasserstein_distance

from dissensus import Annotations, DataError
from dissensus.metrics import annotator_errors, multilabel_error_rate, multilabel_manhattan

from ..support import run, shared_path


def ordinal(items, annotators, labels, classes):
    return Annotations.from_columns(items, annotators, labels, classes=classes, scale="ordinal")


def test_error_rate_and_distance_by_hand():
    annotations = ordinal("aabbb", "xyxyz", "13552", "12345")
    predicted = np.eye(5)[[0, 3, 4, 2, 2]]  # 1, 4 for 1, 3; 5, 3, 3 for 5, 5, 2
    found = annotator_errors(annotations, predicted)
    assert found["error_rate"] == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert found["anad"] == pytest.approx(((0 + 1) / 2 + (0 + 2 + 1) / 3) / 2 / 5)


def test_ties_count_in_parts():
    annotations = ordinal("a", "x", "1", "123")
    found = annotator_errors(annotations, np.array([[0.5, 0.0, 0.5]]))
    assert found == {"error_rate": 0.5, "anad": pytest.approx(1 / 3)}


def test_classes_that_are_numbers_are_ordered_by_value():
    annotations = ordinal("a", "x", ["-1"], ["0", "-1", "1"])
    assert annotator_errors(annotations, np.eye(3)[[2]])["anad"] == pytest.approx(2 / 3)


def test_sets_of_options_by_hand():
    # x: {A, B}, y: {B} on item a; x: {C} on item b
    annotations = Annotations.from_columns("aaab", "xxyx", "ABBC")
    p = [[0.5, 0.8, 0.1], [0.0, 0.3, 1.0]]
    by_item = (2 * (0 + 0.2 + 0.1) / 3, 2 * 0.3 / 3)
    assert multilabel_manhattan(p, annotations) == pytest.approx(np.mean(by_item))
    # x: {B}, y: {B, C} on a; nothing on b; one more that nobody labelled
    predicted = Annotations.from_columns("aaac", "xyyx", "BBCA")
    # a: A wrong for x; C wrong for y: 2 of 6. b: C is missing: 1 of 3.
    assert multilabel_error_rate(predicted, annotations) == pytest.approx((2 / 6 + 1 / 3) / 2)
    assert multilabel_error_rate(annotations, annotations) == 0


def test_probabilities_of_options_are_checked():
    annotations = Annotations.from_columns("aab", "xyx", "010")
    for wrong in ([[0.5, 0.5]], [[1.5, 0], [0, 0]], [[np.nan, 0], [0, 0]]):
        with pytest.raises(DataError, match="probabilities of options are"):
            multilabel_manhattan(wrong, annotations)


def drawn_sets():
    """Return rows of one to three options each, four annotators per item."""
    random, options = np.random.default_rng(0), ["contradiction", "entailment", "neutral"]
    return [
        (f"i{item}", f"a{who}", str(one))
        for item in range(60)
        for who in range(4)
        for one in random.choice(options, random.integers(1, 4), replace=False)
    ]


def ratings(folder):
    """Write a table of ratings from 1 to 5 near the grades of items; return its path."""
    random = np.random.default_rng(2)
    lines = [
        f"i{item},a{who},{int(np.clip(random.normal(grade, 1), 1, 5))}"
        for item, grade in enumerate(random.uniform(1, 6, 80))
        for who in random.choice(12, 4, replace=False)
    ]
    path = folder / "answers.csv.gz"
    path.write_bytes(gzip.compress(("task,worker,label\n" + "\n".join(lines) + "\n").encode()))
    return path


def rows_of_file(path):
    with gzip.open(path, "rt", newline="") as lines:
        return [(row["task"], row["worker"], row["label"]) for row in csv.DictReader(lines)]


@pytest.mark.parametrize(
    ("name", "scale"),
    [("simulated", range(1, 6)), ("lewidi_csc", range(1, 7)), ("lewidi_paraphrase", range(-5, 6))],
)
def test_the_command_gives_what_scipy_gives_on_the_task_data(name, scale, tmp_path):
    """Soft labels and predictions of single annotators, recomputed item by item."""
    simulated = name == "simulated"
    answers = ratings(tmp_path) if simulated else shared_path(name) / "answers.csv.gz"
    rows, random = rows_of_file(answers), np.random.default_rng(0)
    votes = defaultdict(list)
    for item, annotator, label in rows:
        votes[item].append((annotator, int(label)))
    shuffled = random.permutation(list(scale)).tolist()  # the order of columns does not matter
    manhattan, distance, error, anad = [], [], [], []
    soft, each = (
        [["item", "label", *(f"p:{one}" for one in shuffled)]],
        [["item", "annotator", "label"]],
    )
    for item, labels in votes.items():
        p = random.dirichlet(np.ones(len(scale)))
        soft.append([item, shuffled[p.argmax()], *p.tolist()])
        given = [label for _, label in labels]
        q = [given.count(one) / len(given) for one in shuffled]
        manhattan.append(sum(abs(a - b) for a, b in zip(p, q, strict=True)))
        distance.append(wasserstein_distance(shuffled, shuffled, p, q))
        guess = random.choice(list(scale), len(labels)).tolist()
        each += [[item, who, one] for (who, _), one in zip(labels, guess, strict=True)]
        off = [abs(a - b) for a, b in zip(given, guess, strict=True)]
        error.append(sum(one > 0 for one in off) / len(off))
        anad.append(sum(off) / len(off) / len(scale))
    for file, table in (("soft.csv", soft), ("each.csv", each)):
        lines = [",".join(map(str, row)) for row in table]
        (tmp_path / file).write_text("\n".join(lines) + "\n")
    options = ("--annotations", str(answers), "--scale", "ordinal", "--json", "--repeats", "0")
    done = run("evaluate", "soft.csv", "--soft", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["scores"]["manhattan"]["value"] == pytest.approx(np.mean(manhattan), abs=1e-9)
    assert found["scores"]["wasserstein"]["value"] == pytest.approx(np.mean(distance), abs=1e-9)
    done = run("evaluate", "each.csv", "--dic", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["summary"]["error_rate"] == pytest.approx(np.mean(error), abs=1e-9)
    assert found["summary"]["anad"] == pytest.approx(np.mean(anad), abs=1e-9)


@pytest.mark.parametrize("name", ["simulated", "lewidi_varierrnli"])
def test_options_are_scored_as_recomputed(name):
    simulated = name == "simulated"
    rows = drawn_sets() if simulated else rows_of_file(shared_path(name) / "answers.csv.gz")
    random = np.random.default_rng(1)
    options = ["contradiction", "entailment", "neutral"]
    annotations = Annotations.from_columns(*zip(*rows, strict=True), classes=options)
    sets = defaultdict(lambda: defaultdict(set))
    for item, annotator, label in rows:
        sets[item][annotator].add(label)
    p = random.random((annotations.n_items, 3))
    guess = {
        (item, annotator): {one for one in options if random.random() < 0.4}
        for item, labels in sets.items()
        for annotator in labels
    }
    manhattan, error = [], []
    for row, item in enumerate(annotations.items.tolist()):
        given = sets[item]
        shares = [np.mean([one in chosen for chosen in given.values()]) for one in options]
        manhattan.append(np.mean([2 * abs(a - b) for a, b in zip(p[row], shares, strict=True)]))
        wrong = [
            (one in chosen) != (one in guess[item, annotator])
            for one in options
            for annotator, chosen in given.items()
        ]
        error.append(np.mean(wrong))
    predicted = [(*pair, one) for pair, chosen in guess.items() for one in chosen]
    predicted = Annotations.from_columns(*zip(*predicted, strict=True))
    assert multilabel_manhattan(p, annotations) == pytest.approx(np.mean(manhattan), abs=1e-12)
    assert multilabel_error_rate(predicted, annotations) == pytest.approx(np.mean(error), abs=1e-12)
