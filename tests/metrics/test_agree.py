"""Intervals, breakdowns, pairs and groups of annotators, and the command `agree`."""

import csv
import json
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings

from dissensus import Annotations, DataError, MethodError, Numbers, OptionError, agree
from dissensus.metrics import (
    cohen_kappa,
    conger_kappa,
    find_measure,
    fleiss_kappa,
    gwet_ac,
    krippendorff_alpha,
    measures,
    pairwise,
    split_options,
)
from dissensus.metrics.joint import JointMeasures, blocks, draws, interval_of
from dissensus.metrics.statistics import count_votes, create_difference

from ..support import annotation_rows, rows_of, run, shared
from ..support import relation as from_rows
from .test_agreement import TEXTBOOK, crowd, relation, textbook, two_by_two, weight_matrix


@pytest.mark.parametrize("scale", ["nominal", "ordinal", "interval", "ratio"])
@given(rows=annotation_rows(classes="1249"))
@settings(max_examples=25)
def test_a_draw_is_the_measure_of_the_items_drawn(scale, rows):
    annotations = from_rows(rows, classes="1249")
    rng = np.random.default_rng(len(rows))
    which = rng.integers(annotations.n_items, size=annotations.n_items)
    weights = np.bincount(which, minlength=annotations.n_items)[None].astype(float)
    chosen = [one for one in measures.values() if not one.by_pairs]
    joint = JointMeasures(annotations, chosen, scale=scale, by_item=True)
    again = JointMeasures(annotations.take(which), chosen, scale=scale, by_item=True)
    np.testing.assert_allclose(joint.weighted(weights)[:, 0], again.values, atol=1e-9)


def test_a_draw_of_pairs_is_the_measure_of_the_items_drawn():
    annotations = Annotations.from_matrix(crowd(3))
    which = np.random.default_rng(0).integers(annotations.n_items, size=annotations.n_items)
    weights = np.bincount(which, minlength=annotations.n_items)[None].astype(float)
    chosen = [measures["cohen"], measures["scott"]]
    found = JointMeasures(annotations, chosen).weighted(weights)[:, 0]
    np.testing.assert_allclose(
        found, JointMeasures(annotations.take(which), chosen).values, atol=1e-9
    )


@given(rows=annotation_rows())
def test_items_with_equal_counts_are_merged(rows):
    annotations = from_rows(rows)
    whole, once = count_votes(annotations), count_votes(annotations).distinct()
    looks = Counter(map(tuple, whole.table.toarray().tolist()))
    kept = dict(zip(map(tuple, once.table.toarray().tolist()), once.times.tolist(), strict=True))
    assert kept == looks


@pytest.mark.parametrize("times", [np.ones(50, int), np.array([3, 1, 2]), np.array([900, 100])])
def test_draws_have_as_many_items_and_their_frequencies(times):
    drawn = np.concatenate(list(draws(times, 2000, seed=0)))
    assert drawn.shape == (2000, len(times))
    assert (drawn.sum(axis=1) == times.sum()).all()
    spread = np.sqrt(times * (1 - times / times.sum()))
    np.testing.assert_allclose(drawn.mean(axis=0), times, atol=5 * spread.max() / np.sqrt(2000))
    np.testing.assert_allclose(drawn.std(axis=0), spread, rtol=0.15)


def test_blocks_leave_out_every_item_once():
    times = np.array([3, 1, 2])
    left = blocks(times, seed=0)
    assert left.shape == (6, 3)
    np.testing.assert_array_equal((times - left).sum(axis=0), times)
    np.testing.assert_array_equal((times - left).sum(axis=1), 1)


@pytest.mark.parametrize("scale", ["nominal", "ordinal", "interval"])
@given(rows=annotation_rows(classes="1249", annotators="wxyz"))
@settings(max_examples=15)
def test_without_an_annotator_is_what_the_others_have(scale, rows):
    annotations = from_rows(rows, classes="1249")
    chosen = list(measures.values())
    found = JointMeasures(annotations, chosen, scale=scale).without_each()
    for who in range(annotations.n_annotators):
        rest = annotations.keep(annotations.annotator != who)
        expected = JointMeasures(rest, chosen, scale=scale).values
        np.testing.assert_allclose(found[:, who], expected, atol=1e-9)


@given(rows=annotation_rows(annotators="wxy"))
def test_agreement_with_others_counts_every_pair_with_somebody_else(rows):
    annotations = from_rows(rows)
    found = {
        one.name: one.with_others for one in agree(annotations, by="annotator", resamples=0).parts
    }
    summary = rows_of(annotations)
    for who in annotations.annotators.tolist():
        same = [
            label == other
            for item, name, label in summary
            for where, whose, other in summary
            if name == who and whose != who and where == item
        ]
        assert found[who] == pytest.approx(np.mean(same) if same else math.nan, nan_ok=True)


def test_a_class_against_the_rest_is_a_binary_question():
    annotations = textbook()
    found = agree(annotations, by="class", resamples=50)
    assert [part.name for part in found.parts] == list("12345")
    for part in found.parts:
        matrix = np.where(int(part.name) == TEXTBOOK, 2, np.minimum(TEXTBOOK, 1))
        alone = Annotations.from_matrix(matrix.T, missing=0)
        values = {one.measure: one.value for one in part.estimates}
        assert values["alpha"] == pytest.approx(krippendorff_alpha(alone))
        assert values["fleiss"] == pytest.approx(fleiss_kappa(alone))
        assert part.n_labels == (int(part.name) == TEXTBOOK).sum()


def test_items_with_least_agreement_stand_first():
    found = agree(textbook(), by="item", resamples=0)
    assert [part.agreement for part in found.parts][:2] == [0, 0.5]
    assert math.isnan(found.parts[-1].agreement)
    assert found.parts[0].name == "5"


def test_intervals_depend_on_the_seed_and_not_on_the_order_of_items():
    table = crowd(0)
    one = agree(Annotations.from_matrix(table), seed=3, resamples=100)
    assert one == agree(Annotations.from_matrix(table), seed=3, resamples=100)
    assert one != agree(Annotations.from_matrix(table), seed=4, resamples=100)
    other = agree(Annotations.from_matrix(table[::-1]), seed=3, resamples=100)
    for here, there in zip(one.estimates, other.estimates, strict=True):
        assert here[1:4] == pytest.approx(there[1:4], abs=1e-12)


@pytest.mark.parametrize("interval", ["percentile", "bca"])
def test_intervals_hold_the_value_and_widen_with_confidence(interval):
    annotations = Annotations.from_matrix(crowd(1))
    names = [name for name in measures if name not in ("cohen", "scott")]
    narrow = agree(annotations, names, interval=interval, confidence=0.5, resamples=300)
    wide = agree(annotations, names, interval=interval, confidence=0.99, resamples=300)
    for inner, outer in zip(narrow.estimates, wide.estimates, strict=True):
        assert outer.low < inner.low < inner.value < inner.high < outer.high <= 1
        assert 2 * inner.error < outer.high - outer.low < 9 * inner.error


def test_bca_of_a_mean_is_that_of_scipy():
    from scipy.stats import bootstrap

    rng = np.random.default_rng(0)
    data = rng.exponential(size=60)
    theirs = bootstrap((data,), np.mean, n_resamples=20_000, rng=1, method="BCa")
    weights = np.concatenate(list(draws(np.ones(60, int), 20_000, seed=0)))
    left = blocks(np.ones(60, int), seed=0)
    low, high, _ = interval_of(data.mean(), weights @ data / 60, 0.95, left @ data / 59)
    assert (low, high) == pytest.approx(tuple(theirs.confidence_interval), abs=0.01)


def test_draws_without_a_value_are_left_out_and_counted():
    annotations = relation([[0, 0], [0, 0], [0, 1]])
    found = agree(annotations, ["alpha", "percent"], resamples=200)
    dropped = found["alpha"].dropped
    assert 30 < dropped < 90  # (2/3)^3 of the draws have one class only
    assert found["percent"].dropped == 0
    assert f"{dropped} resamples gave no alpha and were left out" in found.notes


def test_jackknife_error_of_alpha_is_close_to_its_spread_over_samples():
    annotations = [Annotations.from_matrix(crowd(seed, n_items=60)) for seed in range(60)]
    found = [agree(one, "alpha", resamples=0)["alpha"] for one in annotations]
    spread = np.std([one.value for one in found])
    assert np.mean([one.error for one in found]) == pytest.approx(spread, rel=0.25)


def test_a_skewed_class_is_named():
    annotations = two_by_two([[95, 2], [3, 0]])
    found = agree(annotations, resamples=0)
    assert found["alpha"].value < 0 < 0.9 < found["ac1"].value
    assert any("95% of pairs agree" in note and "compare ac1" in note for note in found.notes)
    assert not any("pairs agree" in note for note in agree(textbook(), resamples=0).notes)


def test_classes_that_are_no_numbers_count_by_position_with_a_note():
    names = np.array(["", "bad", "fair", "good", "great", "superb"])
    annotations = Annotations.from_matrix(names[TEXTBOOK.T])
    found = agree(annotations, scale="interval", resamples=0)
    assert found["alpha"].value == pytest.approx(0.8491, abs=5e-5)
    assert any("positions are used" in note for note in found.notes)
    order = agree(annotations, scale="ordinal", resamples=0).notes
    assert any("bad, fair, good, great, superb" in note for note in order)


def test_a_matrix_of_weights_or_differences_does_what_its_name_does():
    annotations = textbook()
    table = weight_matrix("linear", np.arange(5))
    for one in (gwet_ac, fleiss_kappa, conger_kappa, cohen_kappa):
        assert one(annotations, weights=table) == pytest.approx(one(annotations, weights="linear"))
    square = np.subtract.outer(np.arange(5), np.arange(5)) ** 2
    assert krippendorff_alpha(annotations, scale=square) == pytest.approx(0.8491, abs=5e-5)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (np.eye(3), "3 × 3 for 5 classes"),
        (np.triu(np.ones((5, 5))), "symmetric"),
        (np.zeros((5, 5)), "but the diagonal does not"),
    ],
)
def test_impossible_weights_are_refused(table, message):
    with pytest.raises(OptionError, match=message):
        fleiss_kappa(textbook(), weights=table)


def test_squares_far_from_zero_lose_no_digits():
    table = np.where(TEXTBOOK > 0, TEXTBOOK + 10**9, 0)
    annotations = Annotations.from_matrix(table.T, missing=0)
    assert krippendorff_alpha(annotations, scale="interval") == pytest.approx(
        krippendorff_alpha(textbook(), scale="interval"), abs=1e-9
    )


def test_negative_numbers_have_no_ratio():
    numbers = Numbers.from_columns("aabb", "xyxy", [-1, 2, 3, 4])
    with pytest.raises(OptionError, match="at least 0, not -1"):
        krippendorff_alpha(numbers, scale="ratio")


def test_numbers_agree_on_the_interval_scale_by_default():
    numbers = Numbers.from_columns("aabbcc", "xyxyxy", [1, 1.5, 3, 3.25, 7, 6])
    found = agree(numbers, resamples=100)
    assert [one.measure for one in found.estimates] == ["percent", "alpha", "fleiss", "ac1"]
    assert found.scale == "interval"
    assert found["alpha"].value == pytest.approx(krippendorff_alpha(numbers))


def test_options_are_separate_questions_with_their_mean():
    rows = [
        ("a", "x", "cat|dog"),
        ("a", "y", "dog"),
        ("b", "x", "cat"),
        ("b", "y", "cat"),
        ("c", "x", "bird | dog"),
        ("c", "y", "dog|bird"),
    ]
    annotations = from_rows(rows)
    options = split_options(annotations)
    assert list(options) == ["bird", "cat", "dog"]
    assert rows_of(options["bird"])[-2:] == [("c", "x", "yes"), ("c", "y", "yes")]
    found = agree(annotations, "percent", multiple=True, resamples=50)
    shares = [part.estimates[0].value for part in found.parts]
    assert shares == pytest.approx([1, 2 / 3, 1])
    assert found["percent"].value == pytest.approx(np.mean(shares))
    assert [part.n_labels for part in found.parts] == [2, 3, 4]


def test_an_empty_choice_is_no_to_every_option():
    annotations = Annotations.from_codes(
        np.array([0, 0]), np.array([0, 1]), np.array([0, 1]), items=1, annotators=2,
        classes=["", "cat"],
    )  # fmt: skip
    assert rows_of(split_options(annotations)["cat"]) == [("0", "0", "no"), ("0", "1", "yes")]


def test_pairs_with_few_common_items_have_no_value_and_shrink():
    annotations = Annotations.from_matrix(crowd(0, missing=0.5))
    few, many = pairwise(annotations, min_overlap=1), pairwise(annotations, min_overlap=12)
    assert (few.overlap == many.overlap).all()
    np.testing.assert_array_equal(np.isnan(many.value), many.overlap < 12)
    drawn = pairwise(annotations, min_overlap=1, shrinkage=10)
    np.testing.assert_allclose(drawn.value, few.value * few.overlap / (few.overlap + 10))
    assert pairwise(annotations).min_overlap == 5
    assert pairwise(annotations.recode("12345")).min_overlap == 10


def test_annotators_who_agree_stand_next_to_each_other():
    rng = np.random.default_rng(0)
    shown = rng.integers(3, size=(200, 2))  # (item, group)
    group = np.array([0, 1] * 5 + [0, 0])
    labels = np.where(rng.random((200, 12)) < 0.8, shown[:, group], rng.integers(3, size=(200, 12)))
    labels[rng.random(labels.shape) < 0.6] = -1
    order = pairwise(Annotations.from_matrix(labels)).order()
    assert sorted(order.tolist()) == list(range(12))
    assert np.abs(np.diff(group[order])).sum() == 1


def test_annotators_who_share_no_item_are_not_in_the_order():
    table = crowd(0, n_items=300, n_annotators=7, missing=0)
    table[:, 6] = np.nan
    table[0, 6] = 1
    order = pairwise(Annotations.from_matrix(table)).order()
    assert sorted(order.tolist()) == [0, 1, 2, 3, 4, 5]


def test_many_pairs_are_refused_before_memory_is_full():
    index = np.array([0, 40_000])
    annotations = Annotations(
        index=index,
        annotator=np.arange(40_000, dtype=np.uint16),
        label=np.zeros(40_000, np.uint8),
        items=np.array(["a"], np.dtypes.StringDType()),
        annotators=np.arange(40_000).astype(np.dtypes.StringDType()),
        classes=np.array(["0", "1"], np.dtypes.StringDType()),
    )
    with pytest.raises(OptionError, match="too many to compare"):
        cohen_kappa(annotations)
    assert conger_kappa(annotations) == fleiss_kappa(annotations) == 1


def test_pairs_are_the_same_whether_looked_up_or_searched(monkeypatch):
    from dissensus.metrics import pairs as co_annotation

    annotations = Annotations.from_matrix(crowd(0))
    before = pairwise(annotations, min_overlap=1)
    monkeypatch.setattr(co_annotation, "_DENSE", 0)
    monkeypatch.setattr(co_annotation, "_PIECE", 7)
    after = pairwise(annotations, min_overlap=1)
    np.testing.assert_allclose(before.value, after.value)
    assert (before.one == after.one).all()


def test_every_measure_has_a_summary_and_a_name_of_its_own():
    names = [name for one in measures.values() for name in (one.name, *one.aliases)]
    assert len(names) == len(set(names))
    for one in measures.values():
        assert one.summary.endswith(".")
        assert all(find_measure(name) is one for name in (one.name, *one.aliases))
    assert find_measure("Krippendorff alpha").name == "alpha"
    with pytest.raises(MethodError, match="did you mean fleiss"):
        find_measure("fleis")
    with pytest.raises(MethodError, match="there are percent, alpha"):
        find_measure("xyz")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"resamples": 1}, "resamples = 1"),
        ({"confidence": 1.5}, "confidence = 1.5"),
        ({"interval": "normal"}, "no interval 'normal'"),
        ({"scale": "metric"}, "no scale 'metric'"),
        ({"weights": "cubic"}, "no scale or weights 'cubic'"),
        ({"by": "day"}, "by = 'day'"),
        ({"by": "item", "multiple": True}, "leave out `by`"),
    ],
)
def test_impossible_options_are_refused(options, message):
    with pytest.raises(OptionError, match=message):
        agree(textbook(), **options)


def test_without_labels_there_is_nothing_to_agree_on():
    with pytest.raises(DataError, match="no labels"):
        agree(from_rows([], classes="ab"))


def test_a_result_is_plain_for_json_with_none_for_nan():
    found = agree(relation([[1, 1], [1, 1]]), by="item", resamples=10)
    summary = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    assert summary["estimates"][1]["measure"] == "alpha"
    assert summary["estimates"][1]["value"] is None
    assert found["krippendorff"].measure == "alpha"
    with pytest.raises(KeyError):
        found["cohen"]


@pytest.mark.parametrize("name", ["bluebirds", "rte"])
def test_alpha_of_real_data_is_that_of_the_package_krippendorff(name):
    krippendorff = pytest.importorskip("krippendorff")
    annotations = shared(name)
    expected = krippendorff.alpha(value_counts=annotations.votes(), level_of_measurement="nominal")
    assert krippendorff_alpha(annotations) == pytest.approx(expected, abs=1e-9)


@pytest.fixture
def answers(tmp_path):
    table = crowd(0, n_items=60)
    rows = [f"{i},{a},{table[i, a]:.0f}" for i, a in np.argwhere(~np.isnan(table))]
    (tmp_path / "answers.csv").write_text("item,annotator,label\n" + "\n".join(rows) + "\n")
    return tmp_path


def test_the_command_gives_the_numbers_of_the_library(answers):
    done = run("agree", "answers.csv", "--json", "--per", "annotator", "-m", "kappa", "-m", "alpha",
               "--scale", "ordinal", "--repeats", 50, "--seed", 2, cwd=answers)  # fmt: skip
    summary = json.loads(done.stdout)
    annotations = Annotations.from_matrix(crowd(0, n_items=60))
    found = agree(
        annotations, ["cohen", "alpha"], scale="ordinal", by="annotator", resamples=50, seed=2
    )
    assert summary == json.loads(json.dumps(found.as_dict()))


@pytest.mark.parametrize("more", [[], ["--per", "item"], ["--per", "class"], ["--pairs"]])
def test_tables_are_written_whole(answers, more):
    done = run("agree", "answers.csv", *more, "--repeats", 20, "-o", "t.csv", cwd=answers)
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader((answers / "t.csv").read_text("utf-8").splitlines()))
    expected = {"": 4, "item": 60, "class": 16, "pairs": 10}
    assert len(rows) == expected[more[-1].strip("-") if more else ""]
    run("agree", "answers.csv", *more, "--repeats", 20, "-o", "t.json", cwd=answers)
    assert len(json.loads((answers / "t.json").read_text())) == len(rows)
    assert b"alpha is " in done.stdout
    assert max(map(len, done.stdout.decode().splitlines())) <= 80


def test_the_command_takes_several_options(tmp_path):
    (tmp_path / "a.csv").write_text("item,annotator,label\n1,x,a|b\n1,y,b\n2,x,a\n2,y,a\n")
    done = run("agree", "a.csv", "--multiple", "--json", cwd=tmp_path)
    summary = json.loads(done.stdout)
    assert [part["name"] for part in summary["parts"]] == ["a", "b"]
    assert summary["by"] == "option"


@pytest.mark.parametrize(
    ("ending", "begin"), [("svg", b"<svg"), ("png", b"\x89PNG"), ("html", b"<")]
)
def test_a_chart_is_drawn_and_needs_no_network(answers, ending, begin):
    done = run("agree", "answers.csv", "--chart", f"c.{ending}", "--repeats", 0, cwd=answers)
    assert done.returncode == 0, done.stderr
    body = (answers / f"c.{ending}").read_bytes()
    assert body.lstrip().startswith(begin)
    assert b"<script src" not in body


def test_a_chart_has_a_cell_for_every_pair_with_a_value():
    from dissensus.metrics.sections import pairs_chart

    annotations = Annotations.from_matrix(
        crowd(0, n_annotators=4), annotators=["</script>", "b" * 40, "c", "d"]
    )
    pairs = pairwise(annotations, min_overlap=1)
    cells = pairs_chart(pairs)["data"]["values"]
    assert len(cells) == 2 * pairs.known.sum()
    assert {cell["one"] for cell in cells} == {"</script>", "b" * 23 + "…", "c", "d"}


def test_a_name_cannot_end_the_script_of_a_page(tmp_path):
    from dissensus.metrics.sections import pairs_chart
    from dissensus.pages.charts import save_chart

    names = ["</script><b>x", "<!--", "c<d", "d"]
    annotations = Annotations.from_matrix(crowd(0, n_annotators=4), annotators=names)
    pairs = pairwise(annotations, min_overlap=1)
    save_chart(pairs_chart(pairs), tmp_path / "c.html")
    page = (tmp_path / "c.html").read_text("utf-8")
    assert "</script><b>x" not in page
    assert r"\u003c/script\u003e\u003cb\u003ex" in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--chart", "c.gif"], "a chart ends in .svg, .png, .html"),
        (["-o", "t.txt"], "written as .csv or .json"),
        (["-m", "nothing"], "no measure 'nothing'"),
        (["--pairs", "--per", "item"], "one at a time"),
        (["--multiple", "--pairs"], "pairs need one question"),
        (["--confidence", "2"], "2.0 is not in the range"),
    ],
)
def test_errors_of_the_command_are_one_line(answers, arguments, message):
    done = run("agree", "answers.csv", *arguments, cwd=answers)
    assert done.returncode == 2
    assert message in done.stderr.decode()
    assert len(done.stderr.decode().splitlines()) == 1
    assert sorted(path.name for path in answers.iterdir()) == ["answers.csv"]


def test_differences_within_one_class_are_zero():
    for name in ("nominal", "ordinal", "interval", "ratio", "linear", "circular", "bipolar"):
        assert create_difference(name, np.array(["3"])).total == 0
