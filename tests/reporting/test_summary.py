import json
import math
from dataclasses import fields
from itertools import permutations

import numpy as np
import pytest

from dissensus import Annotations, DataError, aggregate, demo, evaluate, summarise
from dissensus.aggregation.aggregation import ClassAggregation
from dissensus.metrics import krippendorff_alpha, percent_agreement


@pytest.fixture(scope="module")
def photos():
    return demo()


def small():
    """Five items: one disputed, one split, one agreed on, one with one label, one with none."""
    answers = {
        "a": {"x": "cat", "y": "dog", "z": "owl"},
        "b": {"x": "cat", "y": "dog"},
        "c": {"x": "cat", "y": "cat", "z": "cat"},
        "d": {"z": "dog"},
        "e": {},
    }
    return Annotations.from_dict(answers)


def ranking(quality, n_labels):
    """A result in which only the annotators matter, and the annotations it belongs to."""
    n_annotators = len(quality)
    annotator = np.repeat(np.arange(n_annotators), n_labels)
    item = np.concatenate([np.arange(count) for count in n_labels])
    annotations = Annotations.from_codes(
        item, annotator, item * 0, items=10, annotators=n_annotators, classes=2
    )
    plain = aggregate(annotations, "majority")
    changed = {field.name: getattr(plain, field.name) for field in fields(plain)}
    return annotations, ClassAggregation(**changed | {"quality": np.array(quality)})


def test_counts_are_those_of_the_annotations():
    summary = summarise(small(), aggregate(small(), "majority"))
    assert (summary.n_items, summary.n_annotators, summary.n_labels, summary.n_classes) == (
        5,
        3,
        9,
        3,
    )
    assert summary.labels_per_item == (0, 9 / 5, 3)
    assert summary.items_without_labels == 1
    assert (summary.method, summary.rounds, summary.converged) == ("majority", 0, True)
    assert summary.evaluation is None


def test_agreement_comes_with_its_word():
    annotations = small()
    summary = summarise(annotations, aggregate(annotations, "majority"))
    assert summary.percent == percent_agreement(annotations) == pytest.approx(1 / 3)
    assert summary.alpha == krippendorff_alpha(annotations)
    assert summary.alpha_word == "poor"


def test_shares_of_classes_are_among_labels_and_among_decided_items():
    summary = summarise(small(), aggregate(small(), "majority[ties=first]"))
    assert [share.name for share in summary.classes] == ["cat", "dog", "owl"]
    assert [share.given for share in summary.classes] == pytest.approx([5 / 9, 3 / 9, 1 / 9])
    assert [share.inferred for share in summary.classes] == pytest.approx([3 / 4, 1 / 4, 0])


def test_the_most_disputed_items_come_first_without_unlabelled_ones():
    summary = summarise(small(), aggregate(small(), "majority[ties=abstain]"))
    assert [item.name for item in summary.disputed] == ["a", "b"]
    assert summary.disputed[0].votes == {"cat": 1, "dog": 1, "owl": 1}
    assert summary.disputed[0].label is None
    assert summary.disputed[0].entropy == pytest.approx(math.log(3))
    assert summary.disputed[1].votes == {"cat": 1, "dog": 1}
    assert summary.disputed[1].confidence == 0.5


def test_equally_disputed_items_stand_in_the_order_of_names():
    # The same shares in another order have the same entropy, but for the last bit.
    shares = list(permutations([1, 2, 3, 5]))
    names = [f"{position:02}" for position in range(len(shares))]
    matrix = [np.repeat(np.arange(4), share) for share in shares]  # (item, annotator)
    annotations = Annotations.from_matrix(matrix, items=names)
    summary = summarise(annotations, aggregate(annotations, "majority"), most=10)
    assert len({item.entropy for item in summary.disputed}) > 1
    assert [item.name for item in summary.disputed] == names[:10]


def test_confidence_counts_every_item():
    summary = summarise(small(), aggregate(small(), "majority"))
    assert summary.mean_confidence == pytest.approx((1 / 3 + 1 / 2 + 1 + 1 + 1 / 3) / 5)
    assert summary.unsure == pytest.approx(3 / 5)


def test_best_and_worst_are_ranked_from_the_ends_and_never_overlap():
    annotations, result = ranking([0.5, 0.9, 0.1, 0.7, 0.3], [5, 6, 7, 8, 9])
    summary = summarise(annotations, result, most=5)
    assert [one.name for one in summary.best] == ["1", "3", "0"]
    assert [one.name for one in summary.worst] == ["2", "4"]
    assert summary.best[0] == ("1", 6, 0.9, 1.0)
    few = summarise(annotations, result, most=1)
    assert ([one.name for one in few.best], [one.name for one in few.worst]) == (["1"], ["2"])


def test_annotators_with_few_labels_or_no_quality_are_left_out_and_counted():
    annotations, result = ranking([0.5, 0.9, 0.1, np.nan, 0.3], [5, 4, 7, 8, 0])
    summary = summarise(annotations, result)
    assert [one.name for one in summary.best + summary.worst] == ["0", "2"]
    assert summary.n_unranked == 3


def test_where_everybody_has_few_labels_all_with_one_are_ranked():
    annotations, result = ranking([0.5, 0.9, np.nan, 0.3], [4, 1, 4, 0])
    summary = summarise(annotations, result)
    assert [one.name for one in summary.best + summary.worst] == ["1", "0"]
    assert summary.n_unranked == 2


def test_truth_brings_the_scores(photos):
    annotations, truth = photos
    result = aggregate(annotations)
    assert summarise(annotations, result, truth=truth).evaluation == evaluate(result, truth)


def test_it_is_ready_for_json_also_where_numbers_are_missing(photos):
    silent = Annotations.from_columns([], [], [], items=["a"], annotators=["x"], classes=["0"])
    summary = summarise(silent, aggregate(silent, "majority")).as_dict()
    summary = json.loads(json.dumps(summary, allow_nan=False))
    assert (summary["alpha"], summary["percent"], summary["alpha_word"]) == (
        None,
        None,
        "undefined",
    )
    assert summary["classes"] == [{"name": "0", "given": None, "inferred": None}]
    annotations, truth = photos
    summary = summarise(annotations, aggregate(annotations), truth=truth).as_dict()
    summary = json.loads(json.dumps(summary, allow_nan=False))
    assert summary["labels_per_item"]["least"] == 3
    assert summary["best"][0].keys() == {"name", "n_labels", "quality", "agreement"}
    assert summary["evaluation"]["scores"]["accuracy"].keys() == {"value", "low", "high"}


def test_a_result_about_something_else_is_an_error(photos):
    with pytest.raises(DataError, match="other items"):
        summarise(small(), aggregate(photos[0], "majority"))


def test_the_demo_is_always_the_same_and_looks_like_photos(photos):
    annotations, truth = photos
    again, truth_again = demo()
    assert annotations == again
    assert truth == truth_again
    assert (annotations.n_items, annotations.n_annotators, annotations.n_classes) == (500, 40, 5)
    assert set(truth) == set(annotations.items.tolist())
    assert all(name.split("/")[1].startswith("IMG_") for name in truth)
    assert 4.5 < len(annotations) / annotations.n_items < 5.5
    pairs = annotations.item.astype(int) * annotations.n_annotators + annotations.annotator
    assert len(np.unique(pairs)) == len(annotations)


def test_on_the_demo_the_default_beats_the_vote_by_points(photos):
    annotations, truth = photos
    vote, skilled = (
        evaluate(aggregate(annotations, method), truth, resamples=0).scores["accuracy"].value
        for method in ("majority", "auto")
    )
    assert 0.75 < vote < 0.8
    assert skilled > vote + 0.02


def test_on_the_demo_those_who_do_not_look_are_the_worst(photos):
    annotations, _ = photos
    result = aggregate(annotations, "dawid-skene")
    summary = summarise(annotations, result, most=4)
    assert {one.name for one in summary.worst} == {"Dario", "Rufus", "Tilda", "Zoe"}
    badger, boar = 0, 1
    swapper = result.params.confusion[annotations.annotators.tolist().index("Ingo")]
    assert swapper[badger].argmax() == boar
    assert swapper[boar].argmax() == badger
