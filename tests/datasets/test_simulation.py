"""Simulated crowds are what their models say, draw by draw and all at once."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dissensus.answers.annotations import Annotations
from dissensus.answers.numbers import Numbers
from dissensus.datasets import draws as _all_at_once
from dissensus.datasets.simulation import simulate
from dissensus.datasets.strategy import assign_loads, drawn, loads
from dissensus.registry import simulators

STRATEGIES = list(simulators)
WITH_MATRICES = [name for name in STRATEGIES if name not in ("glad", "numeric", "peer-grading")]
T1 = {"n_items": 200, "n_annotators": 30, "n_classes": 5, "feedback": 10, "seed": 0}
T2 = T1 | {"feedback": None, "imbalance": True}
T5 = T1 | {"n_annotators": 100}


def run(name, **options):
    """Simulate any registered strategy; given-matrices gets some."""
    options = {"n_items": 60, "n_annotators": 8, "n_classes": 3} | options
    if name == "given-matrices":
        shape = options["n_annotators"], options["n_classes"]
        rng = np.random.default_rng(99)
        options["matrices"] = rng.dirichlet(np.ones(shape[1]), size=shape)
    return simulate(name, **options)


def answers(annotations):
    return annotations.value if isinstance(annotations, Numbers) else annotations.label


def on_item(annotations, item):
    here = slice(annotations.index[item], annotations.index[item + 1])
    pairs = zip(
        annotations.annotator[here].tolist(), answers(annotations)[here].tolist(), strict=True
    )
    return dict(pairs)


def counted(drawn):
    """How often every annotator gave every class for every truth: (annotator, true, given)."""
    annotations, n_classes = drawn.annotations, drawn.annotations.n_classes
    counts = np.zeros((annotations.n_annotators, n_classes, n_classes))
    np.add.at(counts, (annotations.annotator, drawn.truth[annotations.item], annotations.label), 1)
    return counts


# The numbers that were published


@pytest.mark.parametrize(
    ("strategy", "options", "total", "least", "most"),
    [
        ("independent-confusion", T1, 2000, 58, 81),
        ("independent-confusion", T2, 3110, 95, 115),
        ("student-teacher[ratio=0.8]", T1, 2000, 52, 76),
        ("discrete-difficulty[ratio=0.35,ratio_diff=1]", T5, 2000, 12, 31),
    ],
)
def test_published_commands_give_the_published_data(strategy, options, total, least, most):
    drawn = simulate(strategy, **options)
    load = drawn.annotations.labels_per_annotator
    assert drawn.truth[:8].tolist() == [4, 3, 2, 1, 1, 0, 0, 0]
    assert (len(drawn.annotations), load.min(), load.max()) == (total, least, most)


def test_published_answers_on_the_first_item():
    first = simulate("independent-confusion", **T1)
    assert first.crowd.confusion[0, 0].round(4).tolist() == [0.3902, 0.0576, 0.3646, 0.086, 0.1015]
    assert on_item(first.annotations, 0) == {
        2: 4, 8: 2, 15: 1, 17: 4, 18: 3, 19: 4, 21: 2, 24: 0, 25: 3, 26: 3,
    }  # fmt: skip
    second = simulate("independent-confusion", **T2)
    assert on_item(second.annotations, 0) == {10: 4, 18: 3, 20: 3, 29: 4}


def as_specified(strategy, n, m, K, feedback, workerload, imbalance, seed):
    """The specification's loop, written out with one `choice` per label."""
    rng = np.random.default_rng(seed)
    t = rng.choice(K, size=n, replace=True)
    name, settings = simulators.resolve(strategy)
    difficulty = ["hard"] * n

    def rows(alpha, swap):
        mat = rng.dirichlet([alpha] * K, size=K)
        for k in range(K if swap else 0):
            best = int(np.argmax(mat[k]))
            mat[k, k], mat[k, best] = mat[k, best], mat[k, k]
        return mat

    if name == "hammer-spammer":
        spam = int(settings["ratio"] * m)
        pi = [np.eye(K)] * (m - spam) + [np.full((K, K), 1 / K)] * spam
    elif name == "independent-confusion":
        pi = [rows(1, True) for _ in range(m)]
    elif name == "student-teacher":
        students = int(m * settings["ratio"])
        pi = [rows(1, True) for _ in range(m - students)]
        pi += [pi[f] for f in rng.choice(m - students, replace=True, size=students)]
    else:
        d, p_r = settings["ratio_diff"], settings["random"]
        p_hard = (1 - p_r) / (d + 1)
        difficulty = rng.choice(["easy", "hard", "random"], p=[d * p_hard, p_hard, p_r], size=n)
        good = int(settings["ratio"] * m)
        pi = [rows(0.2, True) for _ in range(good)] + [rows(5, False) for _ in range(m - good)]
    load, out = [0] * m, []
    for i in range(n):
        P = [j for j in range(m) if load[j] < workerload]  # noqa: N806
        h = min(workerload, len(P), feedback)
        if imbalance:
            h = rng.choice(range(h)) + 1
        out.append({})
        for j in (S := rng.choice(P, replace=False, size=h)):  # noqa: N806
            if difficulty[i] == "easy":
                y = t[i]
            elif difficulty[i] == "random":
                y = rng.choice(K)
            else:
                y = rng.choice(K, p=pi[j][t[i]])
            out[-1][int(j)] = int(y)
        for j in S:
            load[j] += 1
    return t, np.array(pi), out


@pytest.mark.parametrize("seed", [0, 1, 17])
@pytest.mark.parametrize("imbalance", [False, True])
@pytest.mark.parametrize(
    "strategy",
    [
        "hammer-spammer[ratio=0.3]",
        "independent-confusion",
        "student-teacher[ratio=0.4]",
        "discrete-difficulty[ratio=0.5,ratio_diff=2,random=0.3]",
    ],
)
def test_draw_by_draw_it_is_the_loop_of_the_specification(strategy, imbalance, seed):
    truth, confusion, annotations = as_specified(strategy, 40, 12, 4, 5, 19, imbalance, seed)
    drawn = simulate(
        strategy, n_items=40, n_annotators=12, n_classes=4,
        feedback=5, workerload=19, imbalance=imbalance, seed=seed,
    )  # fmt: skip
    np.testing.assert_array_equal(drawn.truth, truth)
    np.testing.assert_array_equal(drawn.crowd.confusion, confusion)
    assert [on_item(drawn.annotations, item) for item in range(40)] == annotations


# What holds for every strategy, in both ways


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("name", STRATEGIES)
def test_every_item_gets_its_labels_from_different_annotators_in_order(name, fast):
    annotations = run(name, feedback=5, fast=fast).annotations
    assert (annotations.labels_per_item == 5).all()
    assert all(len(on_item(annotations, item)) == 5 for item in range(annotations.n_items))
    assert all(
        (np.diff(list(on_item(annotations, item))) > 0).all() for item in range(annotations.n_items)
    )


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("name", STRATEGIES)
def test_imbalance_gives_from_one_label_to_all_that_are_allowed(name, fast):
    annotations = run(name, n_items=300, feedback=5, imbalance=True, fast=fast).annotations
    sizes = np.bincount(annotations.labels_per_item, minlength=6)
    assert sizes[0] == 0
    assert len(sizes) == 6
    assert abs(sizes[1:] - 60).max() < 4.5 * np.sqrt(300 * 0.2 * 0.8)
    assert all(len(on_item(annotations, i)) == annotations.labels_per_item[i] for i in range(300))


@pytest.mark.parametrize("imbalance", [False, True])
@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("name", STRATEGIES)
def test_nobody_gives_more_labels_than_the_workerload(name, fast, imbalance):
    annotations = run(name, feedback=4, workerload=30, imbalance=imbalance, fast=fast).annotations
    assert annotations.labels_per_annotator.max() <= 30
    assert all(
        len(on_item(annotations, i)) == annotations.labels_per_item[i]
        for i in range(annotations.n_items)
    )
    if not imbalance:
        assert annotations.labels_per_annotator.sum() <= 240
        assert not fast or (annotations.labels_per_annotator == 30).all()


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("name", STRATEGIES)
def test_the_seed_decides_everything(name, fast):
    one, same, other = (run(name, fast=fast, seed=seed) for seed in (3, 3, 4))
    assert one.annotations == same.annotations
    assert one.annotations != other.annotations
    assert np.array_equal(one.truth, same.truth)
    assert not np.array_equal(one.truth, other.truth)


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("name", STRATEGIES)
def test_names_and_options_are_complete(name, fast):
    drawn = run(name, n_items=3, n_classes=7, fast=fast)
    assert drawn.annotations.items.tolist() == ["0", "1", "2"]
    assert drawn.annotations.annotators.tolist() == list("01234567")
    assert list(drawn.truths) == ["0", "1", "2"]
    if isinstance(drawn.annotations, Annotations):
        assert drawn.annotations.classes.tolist() == list("0123456")
        assert list(drawn.truths.values()) == [str(code) for code in drawn.truth]
    else:
        assert list(drawn.truths.values()) == drawn.truth.tolist()
    options = json.loads(json.dumps(drawn.options))
    assert simulators.describe(simulators.create(options["strategy"])) == name
    assert options["n_classes"] == 7
    assert options["fast"] is fast
    assert set(options) == {
        "strategy", "settings", "n_items", "n_annotators", "n_classes",
        "feedback", "workerload", "imbalance", "seed", "fast",
    }  # fmt: skip


@pytest.mark.parametrize("name", WITH_MATRICES)
def test_matrices_are_distributions_over_the_given_class(name):
    confusion = run(name, n_annotators=50, n_classes=6).crowd.confusion
    assert confusion.shape == (50, 6, 6)
    assert (confusion >= 0).all()
    np.testing.assert_allclose(confusion.sum(axis=2), 1, atol=1e-12)


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("name", [n for n in WITH_MATRICES if n != "discrete-difficulty"])
def test_labels_follow_the_matrices(name, fast):
    size = {"n_items": 60_000, "feedback": 3} if fast else {"n_items": 1500, "feedback": 3}
    drawn = run(name, n_annotators=4, fast=fast, **size)
    counts, probability = counted(drawn), drawn.crowd.confusion
    seen = counts.sum(axis=2, keepdims=True)
    error = np.sqrt(seen * probability * (1 - probability))
    assert (abs(counts - seen * probability) <= 4.2 * error + 2).all()


@pytest.mark.parametrize("name", STRATEGIES)
def test_fast_keeps_truth_and_crowd(name):
    slow, fast = run(name, feedback=4), run(name, feedback=4, fast=True)
    np.testing.assert_array_equal(slow.truth, fast.truth)
    assert slow.extras.keys() == fast.extras.keys()
    for key, values in slow.extras.items():
        np.testing.assert_array_equal(values, fast.extras[key])
    assert slow.annotations != fast.annotations


@pytest.mark.parametrize("imbalance", [False, True])
@pytest.mark.parametrize("workerload", [None, 400])
def test_threads_do_not_change_what_fast_draws(monkeypatch, workerload, imbalance):
    monkeypatch.setattr(_all_at_once, "_CELLS", 2**9)
    results = []
    for threads in (1, 3):
        monkeypatch.setattr(_all_at_once, "_THREADS", threads)
        options = {"n_items": 1000, "feedback": 3, "workerload": workerload, "imbalance": imbalance}
        results.append(
            run("student-teacher[ratio=0.5,copy_prob=0.5]", fast=True, **options).annotations
        )
    assert results[0] == results[1]


@pytest.mark.parametrize("workerload", [None, 2500])
@pytest.mark.parametrize("fast", [False, True])
def test_imbalance_favours_no_annotator(fast, workerload):
    options = {"n_items": 4000, "feedback": 4, "workerload": workerload}
    load = run("mace", imbalance=True, fast=fast, **options).annotations.labels_per_annotator
    # On average 2.5 of 8 annotators label an item.
    assert abs(load - 1250).max() < 4.5 * np.sqrt(1250 * (1 - 2.5 / 8))


def test_chunks_have_streams_of_their_own(monkeypatch):
    monkeypatch.setattr(_all_at_once, "_CELLS", 30 * 3 * 4)  # chunks of thirty items
    annotations = run("mace", feedback=4, fast=True).annotations
    assert annotations.annotator[:120].tolist() != annotations.annotator[120:].tolist()


@pytest.mark.parametrize("fast", [False, True])
def test_one_class_and_one_annotator_are_enough(fast):
    for name in STRATEGIES:
        annotations = run(name, n_items=1, n_annotators=1, n_classes=1, fast=fast).annotations
        assert len(annotations) == 1


@pytest.mark.parametrize("fast", [False, True])
def test_progress_counts_up_to_all_items(fast):
    seen = []
    run("mace", fast=fast, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (60, 60)
    assert seen == sorted(seen)


def test_fast_rows_are_what_annotations_would_make_of_them():
    annotations = run("mace", n_items=500, feedback=3, imbalance=True, fast=True).annotations
    again = Annotations.from_codes(
        annotations.item,
        annotations.annotator,
        annotations.label,
        items=500,
        annotators=8,
        classes=3,
    )
    assert again == annotations
    assert (again.annotator.dtype, again.label.dtype) == (
        annotations.annotator.dtype,
        annotations.label.dtype,
    )


# Who labels what


@pytest.mark.parametrize(("most", "n_annotators"), [(1, 1), (2, 4), (3, 4), (5, 5), (3, 300)])
def test_every_set_of_annotators_is_equally_probable(most, n_annotators):
    rows = drawn(20_000, most, n_annotators, np.random.default_rng(5))
    assert rows.shape == (20_000, most)
    assert (np.diff(rows.astype(int), axis=1) > 0).all()
    share = most / n_annotators
    load = np.bincount(rows.ravel(), minlength=n_annotators)
    assert abs(load - 20_000 * share).max() <= 4.2 * np.sqrt(20_000 * share * (1 - share))
    if n_annotators == 4:
        _, counts = np.unique(rows, axis=0, return_counts=True)
        sets = len(counts)
        assert sets == {2: 6, 3: 4}[most]
        assert abs(counts - 20_000 / sets).max() < 4.2 * np.sqrt(20_000 / sets * (1 - 1 / sets))


@settings(deadline=None)
@given(st.data())
def test_any_deal_that_is_possible_is_found(data):
    n_items = data.draw(st.integers(1, 12))
    n_annotators = data.draw(st.integers(1, 9))
    most = data.draw(st.integers(1, n_annotators))
    cap = data.draw(st.integers(-(-n_items * most // n_annotators), n_items))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    load = loads(n_items * most, cap, n_annotators, rng)
    assert load.max() <= cap
    rows = assign_loads(n_items, load, rng)
    assert rows.shape == (n_items, most)
    assert (np.diff(rows.astype(int), axis=1) > 0).all()
    assert np.array_equal(np.bincount(rows.ravel(), minlength=n_annotators), load)


def test_a_deal_spreads_pairs_of_annotators_evenly():
    rows = assign_loads(20_000, np.full(10, 6000), np.random.default_rng(0))
    together = np.zeros((10, 10))
    for one in range(3):
        for other in range(3):
            np.add.at(together, (rows[:, one], rows[:, other]), one != other)
    pairs = together[~np.eye(10, dtype=bool)]
    expected = 20_000 * 6 / 90
    assert abs(pairs - expected).max() < 4.5 * np.sqrt(expected)
