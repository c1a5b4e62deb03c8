"""Answers that are marks or masks: what every kind and every method for it promises."""

from itertools import combinations, pairwise, permutations, product

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dissensus as ds
from dissensus import Annotations, DataError, MethodError
from dissensus.aggregation import Objects
from dissensus.aggregation.aggregation import AnswerAggregation
from dissensus.aggregation.masks import soft_mask
from dissensus.aggregation.scheduling import schedule
from dissensus.aggregation.sequence import Chain, span_posterior, spans_of, tags_of
from dissensus.answers import KINDS, Boxes, Masks, Points, Spans, kind_class
from dissensus.base.engine import Local
from dissensus.metrics.answer_scores import found_marks, mask_overlaps
from dissensus.registry import aggregators, methods

from ..answer_sets import drawn, made, span_rows
from ..support import shared_path

MINE = ("spans", "boxes", "points", "masks")
METHODS = [(kind, name) for kind in MINE for name in methods[kind]]


def table_rows(result, rename=lambda name: name):
    """Return the rows of the items table, sorted, with their item renamed."""
    table = dict(result.items)
    table["item"] = np.array([rename(name) for name in table["item"].tolist()], object)
    columns = [
        [round(value, 7) if isinstance(value, float) else value for value in column.tolist()]
        for column in table.values()
    ]
    return sorted(zip(*columns, strict=True))


@pytest.mark.parametrize(("kind", "name"), METHODS)
def test_order_and_names_of_items_and_annotators_do_not_matter(kind, name):
    rows = drawn(kind)
    result = ds.aggregate(made(kind, rows), name)
    rng = np.random.default_rng(5)
    items = sorted({row[0] for row in rows})
    people = sorted({row[1] for row in rows})
    new_item = dict(zip(items, rng.permutation(items).tolist(), strict=True))
    new_person = dict(zip(people, rng.permutation(people).tolist(), strict=True))
    shuffled = [rows[i] for i in rng.permutation(len(rows))]
    renamed = [(new_item[row[0]], new_person[row[1]], *row[2:]) for row in shuffled]
    other = ds.aggregate(made(kind, renamed), name)
    assert table_rows(other) == table_rows(result, new_item.get)
    people_first = dict(zip(result.annotators["annotator"].tolist(), range(99), strict=False))
    order = [people_first[old] for old in people]
    back = dict(zip(other.annotators["annotator"].tolist(), range(99), strict=False))
    for column in list(result.annotators)[1:]:
        np.testing.assert_allclose(
            other.annotators[column][[back[new_person[old]] for old in people]],
            result.annotators[column][order],
            atol=1e-7,
        )


@pytest.mark.parametrize(("kind", "name"), METHODS)
def test_two_runs_are_equal_to_the_bit_and_parts_make_no_difference(kind, name):
    answers = made(kind, drawn(kind))
    one, again = ds.aggregate(answers, name), ds.aggregate(answers, name)
    for column in one.items:
        assert np.array_equal(one.items[column], again.items[column])
    parts = ds.aggregate(answers, name, engine=Local(2, parts=4))
    assert table_rows(parts) == table_rows(one)


@pytest.mark.parametrize(("kind", "name"), METHODS)
def test_where_all_agree_the_answer_is_theirs_and_sure(kind, name):
    rows = [row for row in drawn(kind) if row[1] == "w0"]
    everyone = [(row[0], f"a{j}", *row[2:]) for row in rows for j in range(5)]
    answers = made(kind, everyone)
    result = ds.aggregate(answers, name)
    assert (answers.distance(*answers.within_item_pairs()) == 0).all()
    assert (result.confidence > 0.9).all()
    one = made(kind, rows)
    pairs = zip(result.truth.values(), one.values(), strict=True)
    assert all(same_value(kind, found, given_) for found, given_ in pairs)


def same_value(kind, found, expected):
    if kind == "masks":
        return found == expected
    return len(found) == len(expected) and all(
        a.keys() == b.keys() and all(a[k] == pytest.approx(b[k]) for k in a if k != "label")
        for a, b in zip(found, expected, strict=True)
    )


@pytest.mark.parametrize(("kind", "name"), METHODS)
def test_one_annotator_is_the_consensus_with_a_note(kind, name):
    answers = made(kind, [row for row in drawn(kind) if row[1] == "w0"])
    result = ds.aggregate(answers, name)
    assert any("one annotator" in note for note in result.notes)
    pairs = zip(result.truth.values(), answers.values(), strict=True)
    assert all(same_value(kind, found, given_) for found, given_ in pairs)


@pytest.mark.parametrize(("kind", "name"), METHODS)
def test_from_empty_answers_follows_nothing(kind, name):
    if kind == "masks":
        answers = Masks.from_columns("aab", "xyx", ["", "6", []], size={"a": (2, 3), "b": (1, 1)})
    else:
        n = len(kind_class(kind).coordinates)
        answers = kind_class(kind).from_columns("aab", "xyx", *[[None] * 3] * n)
    assert answers.empty.all()
    assert "100 % of answers are empty" in answers.summary
    result = ds.aggregate(answers, name)
    assert result.truth.empty.all()
    assert (answers.distance(*answers.within_item_pairs()) == 0).all()


@pytest.mark.parametrize(("kind", "name"), METHODS)
def test_gold_is_kept(kind, name):
    answers = made(kind, drawn(kind))
    truth = made(kind, [("x", *row[1:]) for row in drawn(kind, 3) if row[1] == "w0"])
    item = answers.items[1]
    gold = truth.values()[0]
    result = ds.aggregate(answers, name, gold={item: gold})
    rows = result.items["item"] == item
    assert (result.confidence[rows] == 1).all()
    kept = result.truth.values()[1]
    assert same_value(kind, kept, gold)
    other = [one for one in answers.items.tolist() if one != item]
    assert set(result.items["item"].tolist()) <= {item, *other}


@pytest.mark.parametrize(("kind", "name"), METHODS)
def test_results_survive_saving(kind, name, tmp_path):
    result = ds.aggregate(made(kind, drawn(kind)), name)
    result.save(tmp_path / "saved")
    loaded = AnswerAggregation.load(tmp_path / "saved")
    assert repr(loaded) == repr(result)
    assert loaded.answers == result.answers
    assert loaded.notes == result.notes
    assert loaded.trace == result.trace
    for table in ("items", "annotators", "params"):
        mine, theirs = getattr(result, table), getattr(loaded, table)
        assert list(mine) == list(theirs)
        for column in mine:
            np.testing.assert_array_equal(mine[column], theirs[column])
    if result.inner is not None:
        np.testing.assert_array_equal(loaded.inner.posterior, result.inner.posterior)
        assert loaded.inner.answers == result.inner.answers


@pytest.mark.parametrize(("kind", "name"), METHODS)
def test_methods_are_written_and_read_the_same(kind, name):
    registry = methods[kind]
    assert registry.describe(registry.create(name)) == name
    assert registry.create(registry.describe(registry.create(name))) == registry.create(name)


def test_every_aggregator_works_on_spans_boxes_and_points():
    for kind in ("spans", "boxes", "points"):
        answers = made(kind, drawn(kind))
        for name in ("majority", "DS", "dawid-skene[smoothing=0.1]", "glad"):
            result = ds.aggregate(answers, name)
            assert result.inner.method == aggregators.describe(aggregators.create(name))
            assert result.method == result.inner.method
    with pytest.raises(MethodError, match="did you mean dawid-skene"):
        ds.aggregate(answers, "dawid-sken")
    with pytest.raises(MethodError, match="no method 'dawid-skene'"):
        ds.aggregate(made("masks", drawn("masks")), "dawid-skene")


@pytest.mark.parametrize("kind", MINE)
def test_rows_are_written_and_read_the_same(kind):
    answers = made(kind, drawn(kind))
    assert answers.to_rows()[0].keys() == {"item", "annotator", answers.value_key}
    assert type(answers).from_rows(answers.to_rows()) == answers
    assert answers.empty.sum() == type(answers).from_rows(answers.to_rows()).empty.sum()
    assert KINDS[kind].endswith(type(answers).__name__)


@pytest.mark.parametrize("kind", MINE)
def test_answers_are_selected_merged_and_cut(kind):
    rows = drawn(kind)
    answers = made(kind, rows)
    first = answers.subset(items=answers.items[:3], annotators=["w0", "w1", "w2"])
    assert first.n_items == 3
    assert first.to_rows() == [
        row
        for row in answers.to_rows()
        if row["item"] in answers.items[:3].tolist() and row["annotator"] in ("w0", "w1", "w2")
    ]
    halves = [made(kind, [row for row in rows if (row[1] < "w3") == low]) for low in (True, False)]
    assert halves[0].merge(halves[1]) == answers
    assert halves[1].merge(halves[0]) == answers
    cut = answers.parts([(0, 2), (2, answers.n_items)])
    assert [row for part in cut for row in part.to_rows()] == answers.to_rows()
    taken = answers.take(np.array([2, 0, 2]))
    assert taken.values() == [
        value
        for item in (2, 0, 2)
        for value in answers.values()[answers.index[item] : answers.index[item + 1]]
    ]
    kept = answers.keep(answers.annotator == 1)
    assert kept.to_rows() == [row for row in answers.to_rows() if row["annotator"] == "w1"]


def brute_distance(answers, a, b):
    """Return the distance by trying every one-to-one match."""
    if answers.kind == "masks":
        one, two = answers.pixels(a), answers.pixels(b)
        union = (one | two).sum()
        return 1 - (one & two).sum() / union if union else 0.0
    spots = [np.arange(answers.starts[k], answers.starts[k + 1]) for k in (a, b)]
    short, long = sorted(spots, key=len)
    if not len(long):
        return 0.0
    corners = answers.corners(answers.place)
    item = np.full(1, answers.item[a])

    def similar(i, j):
        same = answers.label[i] == answers.label[j]
        return same * answers.similarity(corners[[i]], corners[[j]], item)[0]

    best = max(
        sum(similar(i, j) for i, j in zip(short, chosen, strict=True))
        for chosen in permutations(long, len(short))
    )
    return 1 - 2 * best / (len(short) + len(long))


@pytest.mark.parametrize("kind", MINE)
def test_distances_are_those_of_the_best_match(kind):
    answers = made(kind, drawn(kind))
    first, second = answers.within_item_pairs()
    expected = sum(n * (n - 1) // 2 for n in answers.labels_per_item)
    assert len(first) == expected
    distance = answers.distance(first, second)
    assert ((distance >= 0) & (distance <= 1)).all()
    for k in range(0, len(first), 5):
        assert distance[k] == pytest.approx(brute_distance(answers, first[k], second[k]))
    np.testing.assert_allclose(answers.distance(second, first), distance)


def test_several_partners_of_a_mark_are_assigned_best():
    boxes = Boxes.from_columns("aaaa", "xxyy", [0, 4, 2, 5], [0] * 4, [10] * 4, [10] * 4)
    distance = boxes.distance(np.array([0]), np.array([1]))[0]
    assert distance == pytest.approx(brute_distance(boxes, 0, 1))


def test_a_box_equals_itself_and_boxes_without_area_overlap_nothing():
    boxes = Boxes.from_columns("aaa", "xyz", [1, 1, 0], [1, 1, 0], [0, 0, 5], [0, 0, 5])
    corners = boxes.corners(boxes.place)
    item = np.zeros(1, int)
    assert boxes.similarity(corners[[2]], corners[[2]], item) == 1
    assert boxes.similarity(corners[[0]], corners[[1]], item) == 1
    assert boxes.similarity(corners[[0]], corners[[2]], item) == 0


def test_spans_of_length_one_are_yes_or_no_questions():
    rng = np.random.default_rng(0)
    rows, labels = [], []
    for item in range(30):
        true = rng.random(5) < 0.5
        for j in range(5):
            rows.append((f"t{item}", f"w{j}", None, None))
            for token in range(5):
                marked = rng.random() < (0.85 if true[token] else 0.15)
                if marked:
                    rows.append((f"t{item}", f"w{j}", token, token + 1))
                labels.append((item, token, j, "mark" if marked else "none"))
    spans = Spans.from_columns(*[list(column) for column in zip(*rows, strict=True)])
    shown = {(f"t{i}", t) for i, t, _, label in labels if label == "mark"}
    asked = [
        (f"t{i} {t}-{t + 1}", f"w{j}", label) for i, t, j, label in labels if (f"t{i}", t) in shown
    ]
    expected = Annotations.from_columns(*[list(column) for column in zip(*asked, strict=True)])
    for method in ("two-level", "dawid-skene", "majority"):
        inner = ds.aggregate(spans, method).inner
        plain = ds.aggregate(expected, method)
        order = [plain.answers.items.tolist().index(n) for n in inner.answers.items.tolist()]
        np.testing.assert_allclose(inner.posterior, plain.posterior[order], atol=1e-9)


def brute_schedule(place, weight):
    best, chosen = 0.0, ()
    for size in range(len(place) + 1):
        for some in combinations(range(len(place)), size):
            apart = all(
                place[a][1] <= place[b][0] or place[b][1] <= place[a][0]
                for a, b in combinations(some, 2)
            )
            total = sum(weight[k] for k in some)
            if apart and total > best + 1e-12:
                best, chosen = total, some
    return best, chosen


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 12), st.integers(1, 5), st.integers(1, 9)),
        max_size=12,
    )
)
def test_the_spans_that_are_kept_weigh_most(rows):
    item = np.array([row[0] for row in rows], int)
    place = np.array([(row[1], row[1] + row[2]) for row in rows], float).reshape(-1, 2)
    weight = np.array([row[3] / 10 for row in rows], float)
    kept = schedule(item, place, weight)
    for one in range(3):
        mine = item == one
        best, _ = brute_schedule(place[mine].tolist(), weight[mine].tolist())
        assert weight[mine & kept].sum() == pytest.approx(best)
        spans = sorted(place[mine & kept].tolist())
        assert all(a[1] <= b[0] for a, b in pairwise(spans))


def test_spans_are_nested_only_where_somebody_nests():
    outer, inner = (0, 6), (2, 4)
    both = [("a", w, *span) for w in "xyz" for span in (outer, inner)]
    apart = [("b", w, *span) for w, span in zip("xyz", (outer, outer, inner), strict=True)]
    spans = Spans.from_columns(*[list(column) for column in zip(*both, *apart, strict=True)])
    table = ds.aggregate(spans, "candidates[match=exact,threshold=0.01]").items
    assert table["start"][table["item"] == "a"].tolist() == [0, 2]
    assert len(table["start"][table["item"] == "b"]) == 1


def test_long_spans_are_matched_by_overlap():
    rows = span_rows(np.random.default_rng(2), long=True)
    spans = made("spans", rows)
    result = ds.aggregate(spans)
    assert any("overlap" in note for note in result.notes)
    assert result.items["n_marked"].max() == 4
    length = result.items["end"] - result.items["start"]
    assert np.median(length) == pytest.approx(30, abs=2)
    exact = ds.aggregate(spans, "candidates[match=exact]")
    assert not any("overlap" in note for note in exact.notes)


def test_favouring_recall_keeps_more_marks():
    for kind in ("spans", "boxes", "points"):
        answers = made(kind, drawn(kind, 1))
        default = methods[kind].resolve("auto")[0]
        some = ds.aggregate(answers)
        more = ds.aggregate(answers, f"{default}[favour=recall]")
        assert len(more.confidence) >= len(some.confidence)


@pytest.mark.parametrize("levels", [1, 2, 3])
@pytest.mark.parametrize("kind", ["boxes", "points", "spans"])
def test_the_objective_of_objects_never_falls(kind, levels):
    for seed in range(4):
        answers = made(kind, drawn(kind, seed))
        trace = np.array(Objects(levels=levels).fit(answers).trace)
        assert (np.diff(trace) >= -1e-8 * np.abs(trace[1:])).all()


def test_the_objective_of_staple_never_falls():
    trace = np.array(ds.aggregate(made("masks", drawn("masks")), "staple").trace)
    assert (np.diff(trace) >= -1e-8 * np.abs(trace[1:])).all()


def test_the_objective_of_the_sequence_model_never_falls():
    for seed in range(4):
        trace = np.array(ds.aggregate(made("spans", drawn("spans", seed)), "sequence").trace)
        assert (np.diff(trace) >= -1e-8 * np.abs(trace[1:])).all()


def test_forward_backward_is_a_sum_over_all_sequences():
    rng = np.random.default_rng(0)
    n, length = 3, np.array([2, 5, 1])
    emission = rng.normal(size=(8, n))
    start, move = rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(n), n)
    move[0, 2] = 0.0
    chain = Chain(length)
    smoothed = chain.smooth(emission, start, move)
    best = chain.best(emission, start, move)
    evidence, moves = 0.0, np.zeros((n, n))
    for first, size in zip(chain.first, length, strict=True):
        paths = list(product(range(n), repeat=size))
        given_ = emission[first : first + size]
        weight = np.array(
            [
                start[path[0]]
                * np.prod([move[pair] for pair in pairwise(path)])
                * np.exp(sum(given_[at, tag] for at, tag in enumerate(path)))
                for path in paths
            ]
        )
        evidence += np.log(weight.sum())
        share = weight / weight.sum()
        state = np.zeros((size, n))
        for path, part in zip(paths, share, strict=True):
            state[np.arange(size), path] += part
            for pair in pairwise(path):
                moves[pair] += part
        np.testing.assert_allclose(smoothed.state[first : first + size], state, atol=1e-12)
        assert tuple(best[first : first + size]) == paths[int(weight.argmax())]
    assert smoothed.evidence == pytest.approx(evidence)
    np.testing.assert_allclose(smoothed.moves, moves, atol=1e-12)


def test_span_posteriors_are_sums_over_all_legal_sequences():
    rng = np.random.default_rng(1)
    tags = tags_of(Spans.from_columns("a", "x", [4], [5]), None)
    legal, chain = tags.legal, tags.chain
    start = np.where(legal[0], 0.5, 0.0)
    move = np.where(legal, rng.uniform(0.2, 1, legal.shape), 0.0)
    emission = rng.normal(size=(5, 3))
    smoothed = chain.smooth(emission, start, move)
    total: dict[tuple[int, int], float] = {}
    everything = 0.0
    for path in product(range(3), repeat=5):
        weight = start[path[0]] * np.prod([move[pair] for pair in pairwise(path)])
        weight *= np.exp(sum(emission[at, tag] for at, tag in enumerate(path)))
        everything += weight
        if weight:
            for _, first, last, _ in spans_of(chain, np.array(path)).tolist():
                total[first, last] = total.get((first, last), 0.0) + weight
    spans = np.array([(0, first, last, 0) for first, last in total])
    found = span_posterior(chain, smoothed, move, spans)
    np.testing.assert_allclose(found, np.array(list(total.values())) / everything, atol=1e-12)
    best = chain.best(emission, start, move)
    assert all(legal[pair] for pair in pairwise([0, *best.tolist()]))


def test_staple_is_dawid_skene_over_pixels():
    masks = made("masks", drawn("masks"))
    result = ds.aggregate(masks, "staple[max_iter=5]")
    answer = range(masks.index[0], masks.index[1])
    on = np.array([masks.pixels(a).ravel() for a in answer])
    sensitivity = specificity = np.full(len(on), 0.99999)
    prior = on.mean()
    for _ in range(5):
        inside = prior * np.where(on, sensitivity[:, None], 1 - sensitivity[:, None]).prod(axis=0)
        outside = 1 - prior
        outside *= np.where(on, 1 - specificity[:, None], specificity[:, None]).prod(axis=0)
        q = inside / (inside + outside)
        sensitivity, specificity = on @ q / q.sum(), ~on @ (1 - q) / (1 - q).sum()
    np.testing.assert_allclose(result.params["sensitivity"][: len(on)], sensitivity, atol=1e-6)
    np.testing.assert_allclose(result.params["specificity"][: len(on)], specificity, atol=1e-6)
    np.testing.assert_allclose(soft_mask(result, masks.items[0]).ravel(), q, atol=1e-6)


def test_masks_that_are_far_off_hardly_weigh():
    good = ["2 3 7", "2 3 7", "2 4 6"]
    masks = Masks.from_columns("aaaaa", "vwxyz", [*good, "8 4", "9 3"], size={"a": (4, 3)})
    weight = ds.aggregate(masks).params["weight"]
    assert weight[:3].min() > 100 * weight[3:].max()
    table = ds.aggregate(masks).items
    assert table["counts"].tolist() == ["2 3 7"]
    assert table["area"].tolist() == [3]


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ("1 2", "row 1: the counts add up to 3, but the image has 2 × 2 = 4 pixels"),
        ("1 two 1", "row 1: counts are whole numbers"),
        ("5 -1", "row 1: counts are at least 0, but one is -1"),
    ],
)
def test_run_lengths_that_cannot_be_are_reported(counts, message):
    with pytest.raises(DataError, match=message):
        Masks.from_columns("a", "x", [counts], size={"a": (2, 2)})
    with pytest.raises(DataError, match="item 'a' has no size"):
        Masks.from_columns("a", "x", ["4"], size={"b": (2, 2)})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Spans.from_columns("ab", "xx", [0, 4], [2, 3]),
            "row 2: no mark can be at start 4",
        ),
        (
            lambda: Spans.from_columns("a", "x", [-1], [3]),
            "row 1: no mark can be at start -1, end 3",
        ),
        (lambda: Spans.from_columns("a", "x", [1], [None]), "row 1: a mark without end"),
        (lambda: Spans.from_columns("a", "x", ["one"], [2]), "row 1: start is 'one', not a number"),
        (lambda: Boxes.from_columns("a", "x", [1], [1], [-1], [1]), "w and h are at least 0"),
        (lambda: Points.from_columns("a", "x", [np.inf], [1]), "row 1: no mark can be at x inf"),
        (lambda: Spans.from_rows([{"item": "a", "spans": []}]), "row 1: no annotator"),
        (lambda: Spans.from_values("a", "x", [3]), "row 1: spans are a list of marks"),
        (lambda: Spans.from_columns("ab", "x", [1], [2]), "columns of different length"),
    ],
)
def test_marks_that_cannot_be_are_reported(make, message):
    with pytest.raises(DataError, match=message):
        make()


def test_gold_of_another_kind_or_with_other_labels_is_reported():
    spans = made("spans", drawn("spans"))
    boxes = made("boxes", drawn("boxes"))
    with pytest.raises(DataError, match="the answers are spans, but gold is boxes"):
        ds.aggregate(spans, gold=boxes)
    with pytest.raises(DataError, match="gold is given, but for none of the annotated items"):
        ds.aggregate(spans, gold={"nobody": []})
    with pytest.raises(DataError, match="gold has the label 'Z', which is not among"):
        ds.aggregate(spans, gold={"t0": [{"start": 0, "end": 2, "label": "Z"}]})


def test_labels_of_boxes_are_a_second_question():
    rows = [("a", w, 0, 0, 10, 10, label) for w, label in zip("xyz", "ccd", strict=True)]
    rows += [("a", w, 40, 40, 10, 10, "d") for w in "xyz"]
    boxes = Boxes.from_columns(*[list(column) for column in zip(*rows, strict=True)])
    table = ds.aggregate(boxes).items
    assert table["label"].tolist() == ["c", "d"]
    assert table["confidence"][0] < table["confidence"][1]


def test_points_are_as_near_as_their_image_is_small():
    rows = ["aa", "xy", [10, 20], [10, 10]]
    near = Points.from_columns(*rows, size={"a": (1000, 1000)})
    far = Points.from_columns(*rows, size={"a": (50, 50)})
    pair = np.array([0]), np.array([1])
    assert near.distance(*pair) < 0.05
    assert Points.from_rows(near.to_rows()) == near
    assert near.to_rows()[0]["size"] == [1000, 1000]
    assert far.distance(*pair) == 1


def test_objects_finds_what_annotators_find():
    rng = np.random.default_rng(0)
    rate, rows, clutter = np.linspace(0.3, 0.95, 8), [], np.zeros(8)
    for item in range(80):
        for j in range(8):
            rows.append((item, j, None, None, None, None))
            for k in range(5):
                if rng.random() < rate[j]:
                    rows.append((item, j, 100.0 * k, 0.0, 50.0, 50.0))
            if rng.random() < 0.3:
                rows.append((item, j, *rng.uniform(600, 3000, 2), 20.0, 20.0))
                clutter[j] += 1
    boxes = Boxes.from_columns(*[list(column) for column in zip(*rows, strict=True)])
    people = ds.aggregate(boxes).annotators
    np.testing.assert_allclose(people["found"], rate, atol=0.06)
    np.testing.assert_allclose(people["spurious"], clutter / 80, atol=0.06)


def read_shared(name):
    """Return answers and gold of a shared data set."""
    folder = shared_path(name)
    answers, truth = (pl.read_csv(folder / f"{part}.csv.gz") for part in ("answers", "truth"))
    items = sorted({*answers["task"], *truth["task"]})
    rows = [answers["task"].to_list(), answers["worker"].to_list()]
    gold = [truth["task"].to_list(), ["gold"] * len(truth)]
    if name == "masks_cells":
        size = {row[0]: row[1:] for row in pl.read_csv(folder / "tasks.csv.gz").iter_rows()}
        return [
            Masks.from_columns(*who, table["counts"].to_list(), size=size)
            for who, table in ((rows, answers), (gold, truth))
        ]
    kind, fields = (Spans, ["start", "end", "label"]) if name == "ner_conll" else (Boxes, [*"xywh"])
    return [
        kind.from_columns(*who, *(table[field].to_list() for field in fields), items=items)
        for who, table in ((rows, answers), (gold, truth))
    ]


def test_spans_of_named_entities_are_found():
    answers, gold = read_shared("ner_conll")
    assert answers.summary == (
        "spans: 6253 items, 47 annotators, 35879 marks, 4 labels; 37 % of answers are empty"
    )
    assert found_marks(ds.aggregate(answers).truth, gold).f1 >= 0.74


def test_boxes_of_people_are_found():
    answers, gold = read_shared("boxes_people")
    assert found_marks(ds.aggregate(answers).truth, gold, 0.5).f1 >= 0.78


def test_masks_of_cells_are_found():
    answers, gold = read_shared("masks_cells")
    assert mask_overlaps(ds.aggregate(answers).truth, gold).mean() >= 0.87


@pytest.mark.parametrize("name", ["simulated", "boxes_people"])
def test_an_annotator_who_marks_nothing_changes_little(name):
    answers = made("boxes", drawn("boxes", 1)) if name == "simulated" else read_shared(name)[0]
    names = answers.items.tolist()
    silent = Boxes.from_columns(names, ["silent"] * len(names), *[[None] * len(names)] * 4)
    before, after = (ds.aggregate(one) for one in (answers, answers.merge(silent)))
    code = after.annotators["annotator"].tolist().index("silent")
    assert after.annotators["found"][code] < 0.02
    moved = before.inner.probabilities[:, 1] - after.inner.probabilities[:, 1]
    assert np.abs(moved).mean() < 0.03


def test_confidence_of_candidates_is_calibrated():
    answers, gold = read_shared("boxes_people")
    result = ds.aggregate(answers)
    found = found_marks(result.truth, gold, 0.5)
    assert result.confidence.mean() == pytest.approx(found.precision, abs=0.07)
    answers, gold = read_shared("ner_conll")
    result = ds.aggregate(answers)
    found = found_marks(result.truth, gold)
    assert result.confidence.mean() == pytest.approx(found.precision, abs=0.07)
