"""CROWDLAB and ActiveLab: equal to cleanlab, and to plain loops over the formulas."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dissensus import Annotations, DataError, OptionError, aggregate, simulate, write
from dissensus.formats.predictions import read_probabilities
from dissensus.quality.crowdlab import activelab, crowdlab
from dissensus.quality.label_scores import agreement_with_others, majority, worst_class


def drawn(seed, *, n_items=60, n_annotators=8, n_classes=4, sharp=3.0, gaps=0.6, models=1):
    """Return annotations, the matrix cleanlab wants, and probabilities (model, item, class)."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_classes, size=n_items)
    right = rng.uniform(0.3, 1, size=n_annotators)
    matrix = np.where(
        rng.random((n_items, n_annotators)) < right,
        truth[:, None],
        rng.integers(n_classes, size=(n_items, n_annotators)),
    ).astype(float)
    matrix[rng.random(matrix.shape) < gaps] = np.nan
    kept = ~np.isnan(matrix).all(axis=1)
    matrix, truth = matrix[kept], truth[kept]
    for annotator in np.flatnonzero(np.isnan(matrix).all(axis=0)):
        matrix[0, annotator] = 0
    logits = rng.normal(size=(models, len(truth), n_classes))
    logits += sharp * rng.random((models, 1, 1)) * np.eye(n_classes)[truth]
    probabilities = np.exp(logits)
    probabilities /= probabilities.sum(axis=2, keepdims=True)
    annotations = Annotations.from_matrix(
        matrix, annotators=range(matrix.shape[1]), classes=range(n_classes)
    )
    return annotations, matrix, probabilities


def cleanlab_scores(matrix, probabilities, **given_options):
    multiannotator = pytest.importorskip("cleanlab.multiannotator")
    kind = "_ensemble" if probabilities.ndim == 3 else ""
    function = getattr(multiannotator, f"get_label_quality_multiannotator{kind}")
    found = function(
        matrix, probabilities.copy(), return_weights=True, verbose=False, **given_options
    )
    found["annotator_stats"] = found["annotator_stats"].sort_index()
    return found


def assert_equal_to_cleanlab(annotations, matrix, found, expected):
    quality = expected["label_quality"]
    np.testing.assert_array_equal(found.label, quality["consensus_label"])
    close = {"rtol": 0, "atol": 1e-9}
    np.testing.assert_allclose(
        found.consensus_quality, quality["consensus_quality_score"].to_numpy(), **close
    )
    np.testing.assert_allclose(
        found.consensus_agreement, quality["annotator_agreement"].to_numpy(), **close
    )
    detailed = expected["detailed_label_quality"].to_numpy()
    np.testing.assert_allclose(
        found.label_quality, detailed[annotations.item, annotations.annotator], **close
    )
    stats = expected["annotator_stats"]
    np.testing.assert_allclose(
        found.annotator_quality, stats["annotator_quality"].to_numpy(), **close
    )
    np.testing.assert_allclose(
        found.annotator_agreement, stats["agreement_with_consensus"].to_numpy(), **close
    )
    np.testing.assert_array_equal(found.worst_class, stats["worst_class"])
    np.testing.assert_allclose(found.annotator_weight, expected["annotator_weight"], **close)
    np.testing.assert_allclose(
        found.model_weight, np.atleast_1d(expected["model_weight"]), rtol=1e-9
    )


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(
    "shape",
    [
        {},
        {"n_classes": 2, "sharp": 0.5},
        {"n_classes": 7, "gaps": 0.8, "n_annotators": 12},
        {"n_items": 15, "gaps": 0.7, "sharp": 0},
        {"n_items": 200, "n_annotators": 40, "gaps": 0.95},
    ],
    ids=str,
)
def test_scores_equal_those_of_cleanlab(seed, shape):
    annotations, matrix, probabilities = drawn(seed, **shape)
    found = crowdlab(annotations, probabilities[0])
    assert_equal_to_cleanlab(annotations, matrix, found, cleanlab_scores(matrix, probabilities[0]))


def repair(monkeypatch):
    """Let cleanlab count labels by their class; as floats, they are moved to the first columns."""
    utils = pytest.importorskip("cleanlab.internal.multiannotator_utils")

    def counts(labels, num_classes):
        return np.bincount(labels.astype(int), minlength=num_classes)

    monkeypatch.setattr(utils, "value_counts", counts)


@pytest.mark.parametrize("seed", range(6))
def test_calibrated_scores_equal_those_of_cleanlab_once_it_counts_right(seed, monkeypatch):
    repair(monkeypatch)
    annotations, matrix, probabilities = drawn(seed)
    found = crowdlab(annotations, probabilities[0], calibrate=True)
    expected = cleanlab_scores(matrix, probabilities[0], calibrate_probs=True)
    assert_equal_to_cleanlab(annotations, matrix, found, expected)


@pytest.mark.parametrize("seed", range(4))
def test_several_models_weigh_as_in_cleanlab(seed):
    annotations, matrix, probabilities = drawn(seed, models=3)
    found = crowdlab(annotations, probabilities)
    assert_equal_to_cleanlab(annotations, matrix, found, cleanlab_scores(matrix, probabilities))
    one = crowdlab(annotations, probabilities[:1])
    np.testing.assert_array_equal(one.posterior, crowdlab(annotations, probabilities[0]).posterior)
    np.testing.assert_array_equal(
        crowdlab(annotations, list(probabilities)).posterior, found.posterior
    )


@pytest.mark.parametrize("models", [1, 2, 3])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("as_cleanlab", [True, False])
def test_active_scores_equal_those_of_cleanlab_with_labels_and_without(
    seed, models, as_cleanlab, monkeypatch
):
    multiannotator = pytest.importorskip("cleanlab.multiannotator")
    if not as_cleanlab:
        repair(monkeypatch)
    annotations, matrix, probabilities = drawn(seed, models=models)
    _, _, more = drawn(100 + seed, models=models, n_items=30, gaps=0)
    kind = "_ensemble" if models > 1 else ""
    function = getattr(multiannotator, f"get_active_learning_scores{kind}")
    shape = slice(None) if models > 1 else 0
    labelled, unlabelled = function(matrix, probabilities[shape].copy(), more[shape].copy())
    wider = Annotations.from_codes(
        annotations.item,
        annotations.annotator,
        annotations.label,
        items=annotations.n_items + more.shape[1],
        annotators=annotations.annotators,
        classes=annotations.classes,
    )
    together = np.concatenate([probabilities, more], axis=1)
    found = activelab(wider, together, as_cleanlab=as_cleanlab)
    expected = np.concatenate([labelled, unlabelled])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
    if not as_cleanlab:
        np.testing.assert_allclose(
            crowdlab(annotations, probabilities).active, labelled, rtol=0, atol=1e-9
        )


@pytest.mark.parametrize("models", [1, 2])
def test_active_scores_of_single_labels_equal_those_of_cleanlab(models):
    multiannotator = pytest.importorskip("cleanlab.multiannotator")
    _, _, probabilities = drawn(3, models=models, gaps=0)
    rng = np.random.default_rng(0)
    matrix = np.full((probabilities.shape[1], 5), np.nan)
    matrix[np.arange(len(matrix)), np.arange(len(matrix)) % 5] = rng.integers(4, size=len(matrix))
    annotations = Annotations.from_matrix(matrix, classes=range(4))
    kind = "_ensemble" if models > 1 else ""
    function = getattr(multiannotator, f"get_active_learning_scores{kind}")
    expected, _ = function(matrix, probabilities[slice(None) if models > 1 else 0].copy())
    np.testing.assert_allclose(activelab(annotations, probabilities), expected, rtol=0, atol=1e-12)


def loops(matrix, probabilities):
    """Return consensus, posterior, annotators' weights and the model's, by the formulas alone."""
    n_items, n_annotators = matrix.shape
    n_classes = probabilities.shape[1]
    answers = [
        {a: int(matrix[i, a]) for a in range(n_annotators) if not np.isnan(matrix[i, a])}
        for i in range(n_items)
    ]
    several = [i for i in range(n_items) if len(answers[i]) > 1]
    label = []
    for i in range(n_items):
        counts = [list(answers[i].values()).count(k) for k in range(n_classes)]
        label.append(max(range(n_classes), key=lambda k: (counts[k], probabilities[i, k])))
    agreement = []
    for a in range(n_annotators):
        pairs = [
            answers[i][a] == answers[i][b]
            for i in range(n_items)
            if a in answers[i]
            for b in answers[i]
            if b != a
        ]
        agreement.append(np.mean(pairs) if pairs else np.nan)
    agreement = np.where(np.isnan(agreement), np.nanmean(agreement), agreement)
    for _ in range(2):
        right = np.mean([np.mean([g == label[i] for g in answers[i].values()]) for i in several])
        consensus = [label[i] for i in several]
        common = max(consensus.count(k) for k in range(n_classes))
        doubt = max(1 - common / len(several), 1e-6)
        weight = [max(1e-6, 1 - (1 - g) / doubt) for g in agreement]
        error = np.mean([probabilities[i].argmax() != label[i] for i in several])
        model = max(1e-6, 1 - error / doubt) * np.sqrt(np.mean([len(one) for one in answers]))
        posterior = np.zeros((n_items, n_classes))
        for i in range(n_items):
            for k in range(n_classes):
                posterior[i, k] = model * probabilities[i, k]
                for a, g in answers[i].items():
                    posterior[i, k] += weight[a] * (
                        right if g == k else (1 - right) / (n_classes - 1)
                    )
            posterior[i] /= model + sum(weight[a] for a in answers[i])
        final = label
        label = posterior.argmax(axis=1).tolist()
    return final, posterior, weight, model


@pytest.mark.parametrize("seed", range(6))
def test_scores_equal_plain_loops_over_the_formulas(seed):
    annotations, matrix, probabilities = drawn(seed, n_items=25, n_classes=3)
    label, posterior, weight, model = loops(matrix, probabilities[0])
    found = crowdlab(annotations, probabilities[0])
    assert found.label.tolist() == label
    np.testing.assert_allclose(found.posterior, posterior, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.annotator_weight, weight, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.model_weight, [model], rtol=1e-12)
    np.testing.assert_allclose(found.posterior.sum(axis=1), 1)


def test_even_votes_go_to_the_likelier_then_to_the_rarer_class():
    matrix = np.array([[0, 1, np.nan], [1, 2, np.nan], [2, 2, np.nan], [1, 1, 0]])
    annotations = Annotations.from_matrix(matrix, classes=range(3))
    flat = np.full((4, 3), 1 / 3)
    assert majority(annotations, flat).tolist() == [0, 2, 2, 1]
    likely = flat + np.array([[0, 0.1, -0.1], [0, 0, 0], [0, 0, 0], [0, 0, 0]])
    assert majority(annotations, likely)[0] == 1
    multiannotator = pytest.importorskip("cleanlab.multiannotator")
    for probabilities in (flat, likely):
        expected = multiannotator.get_majority_vote_label(matrix, probabilities, verbose=False)
        np.testing.assert_array_equal(majority(annotations, probabilities), expected)


def test_even_votes_on_common_classes_go_to_better_company():
    """x is always with the others where that is clear, y never."""
    rows = [[0, 1, np.nan, np.nan], [0, 2, 0, 0], [1, 2, 1, 1], [1, 0, 1, np.nan]]
    matrix = np.array([*rows, [1, 0, np.nan, np.nan]])
    matrix = np.vstack([matrix, [[np.nan, np.nan, 0, np.nan]]])
    annotations = Annotations.from_matrix(matrix, classes=range(3))
    counts = annotations.votes().sum(axis=0)
    assert counts[0] == counts[1]
    flat = np.full((6, 3), 1 / 3)
    assert majority(annotations, flat)[[0, 4]].tolist() == [0, 1]
    multiannotator = pytest.importorskip("cleanlab.multiannotator")
    expected = multiannotator.get_majority_vote_label(matrix, flat, verbose=False)
    np.testing.assert_array_equal(majority(annotations, flat), expected)


def test_whoever_shares_no_item_weighs_as_the_mean_of_the_others():
    annotations, matrix, probabilities = drawn(5)
    matrix[0] = np.nan
    matrix = np.column_stack([matrix, np.full(len(matrix), np.nan)])
    matrix[0, -1] = 1
    annotations = Annotations.from_matrix(matrix, classes=range(4))
    found = crowdlab(annotations, probabilities[0])
    assert_equal_to_cleanlab(annotations, matrix, found, cleanlab_scores(matrix, probabilities[0]))
    assert np.isnan(agreement_with_others(annotations)).tolist() == [False] * 8 + [True]
    assert found.annotator_weight[-1] == pytest.approx(found.annotator_weight[:-1].mean())
    assert np.isnan(found.annotator_quality[-1])


@pytest.mark.parametrize("as_cleanlab", [True, False])
def test_impossible_labels_are_almost_impossible(as_cleanlab, monkeypatch):
    multiannotator = pytest.importorskip("cleanlab.multiannotator")
    if not as_cleanlab:
        repair(monkeypatch)
    annotations, matrix, probabilities = drawn(6, sharp=6)
    hard = np.where(probabilities[0] < 0.05, 0, probabilities[0])
    hard[:5] = np.eye(4)[hard[:5].argmin(axis=1)]
    hard /= hard.sum(axis=1, keepdims=True)
    expected, _ = multiannotator.get_active_learning_scores(matrix, hard.copy())
    found = activelab(annotations, hard, as_cleanlab=as_cleanlab)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


def test_the_worst_class_is_the_least_right_then_the_most_given_then_the_surest():
    label = np.array([0, 0, 1, 1, 1, 2, 2, 2])
    annotations = Annotations.from_codes(
        np.arange(8), np.zeros(8, int), label, items=8, annotators=1, classes=3
    )
    same = np.array([True, True, False, True, False, True, False, False])
    quality = np.array([0.5, 0.5, 0.6, 0.6, 0.6, 0.7, 0.7, 0.7])
    assert worst_class(annotations, same, quality).tolist() == [2]
    assert worst_class(annotations, same, quality[::-1]).tolist() == [1]
    same[:2], same[4] = False, True
    assert worst_class(annotations, same, quality).tolist() == [0]
    assert worst_class(annotations, np.zeros(8, bool), quality).tolist() == [2]
    assert worst_class(
        annotations.keep(np.arange(8) > 2), np.zeros(5, bool), quality[3:]
    ).tolist() == [2]


def test_perfect_annotators_weigh_one_and_a_useless_model_nothing():
    truth = np.arange(30) % 3
    annotations = Annotations.from_matrix(np.repeat(truth[:, None], 4, axis=1))
    model = np.eye(3)[(truth + 1) % 3]
    found = crowdlab(annotations, model)
    np.testing.assert_allclose(found.annotator_weight, 1)
    np.testing.assert_allclose(found.model_weight, 2e-6)
    np.testing.assert_allclose(found.consensus_quality, 1, atol=1e-5)


def test_without_shared_items_the_classifier_speaks_alone_and_says_so():
    annotations = Annotations.from_columns("abc", "xyx", "010")
    probabilities = np.array([[0.9, 0.1], [0.6, 0.4], [0.3, 0.7]])
    found = crowdlab(annotations, probabilities)
    np.testing.assert_array_equal(found.posterior, probabilities)
    assert found.label.tolist() == [0, 1, 0]
    np.testing.assert_allclose(found.consensus_quality, [0.9, 0.4, 0.3])
    assert np.isnan(found.annotator_quality).all()
    assert "No item has two labels" in found.notes[0]


def test_the_silent_stay_silent():
    annotations = Annotations.from_columns(
        "aabb", "xyxy", "0110", items="abc", annotators="xyz", classes="012"
    )
    probabilities = np.array([[0.5, 0.3, 0.2], [0.2, 0.7, 0.1], [0.1, 0.1, 0.8]])
    found = crowdlab(annotations, probabilities)
    assert found.label[2] == -1
    assert found.labels.tolist()[2] is None
    assert np.isnan(found.consensus_quality[2])
    np.testing.assert_allclose(found.posterior[2], probabilities[2])
    assert found.worst_class[2] == -1
    assert np.isnan([found.annotator_quality[2], found.annotator_weight[2]]).all()
    none = Annotations.from_columns([], [], [], items="ab", classes="01")
    unlabelled = crowdlab(
        none, probabilities[:2, :2] / probabilities[:2, :2].sum(axis=1, keepdims=True)
    )
    assert unlabelled.label.tolist() == [-1, -1]
    np.testing.assert_allclose(activelab(none, np.full((2, 2), 0.5)), 0.5)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.permutations(range(6)), st.permutations(range(3)))
def test_names_and_order_do_not_matter(seed, annotators, classes):
    annotations, matrix, probabilities = drawn(seed, n_items=12, n_annotators=6, n_classes=3)
    found = crowdlab(annotations, probabilities[0])
    place = np.argsort(classes)
    other = np.where(np.isnan(matrix), np.nan, place[np.nan_to_num(matrix).astype(int)])
    again = crowdlab(
        Annotations.from_matrix(other[:, annotators], classes=range(3)),
        probabilities[0][:, classes],
    )
    np.testing.assert_allclose(again.posterior, found.posterior[:, classes], atol=1e-9)
    np.testing.assert_allclose(
        again.annotator_weight, found.annotator_weight[list(annotators)], atol=1e-9
    )


def test_what_somebody_repeats_is_not_agreement():
    rows = [("a", "x", "0")] * 5 + [("a", "y", "1"), ("b", "x", "0"), ("b", "y", "0")]
    item, annotator, label = zip(*rows, strict=True)
    annotations = Annotations.from_columns(item, annotator, label)
    np.testing.assert_allclose(agreement_with_others(annotations), [1 / 6, 1 / 6])


def test_probabilities_that_do_not_fit_are_refused():
    annotations = Annotations.from_columns("aabb", "xyxy", "0110")
    with pytest.raises(DataError, match=r"here \(2, 2\).*these are \(2, 3\)"):
        crowdlab(annotations, np.full((2, 3), 1 / 3))
    with pytest.raises(DataError, match="item 'b' are not from 0 to 1 with sum 1; 1 items"):
        crowdlab(annotations, [[0.5, 0.5], [0.9, 0.9]])
    with pytest.raises(DataError, match="item 'a'"):
        crowdlab(annotations, [[np.nan, 0.5], [0.5, 0.5]])


def test_tables_and_dictionaries_hold_names():
    annotations = Annotations.from_columns("aabb", "xyxy", ["cat", "cat", "dog", "cat"])
    found = crowdlab(annotations, [[0.9, 0.1], [0.2, 0.8]])
    assert found.items["label"].tolist() == ["cat", "dog"]
    plain = found.as_dict()
    assert plain["annotators"]["worst_class"] == ["cat", "cat"]
    assert len(plain["model_weight"]) == 1
    assert repr(found) == "<Crowdlab: 2 items, 2 annotators, 1 model>"


def test_probabilities_are_read_as_aggregate_writes_them(tmp_path):
    annotations = simulate(
        "one-coin", n_items=30, n_annotators=5, n_classes=3, feedback=3
    ).annotations
    result = aggregate(annotations, "dawid-skene")
    write(result, tmp_path / "labels.csv")
    np.testing.assert_allclose(
        read_probabilities(tmp_path / "labels.csv", annotations), result.probabilities, atol=1e-12
    )
    order = np.argsort(annotations.items.tolist())[::-1]
    lines = ["p:2,item,p:0,p:1"]
    for place in order:
        p = result.posterior[place]
        lines.append(
            f"{p[2]!r},{annotations.items[place]},{p[0]!r},{p[1]!r}".replace("np.float64", "")
        )
    lines.append("1,nobody,0,0")
    (tmp_path / "mixed.csv").write_text("\n".join(lines).replace("(", "").replace(")", ""))
    np.testing.assert_allclose(
        read_probabilities(tmp_path / "mixed.csv", annotations), result.posterior
    )


def test_probabilities_are_read_from_arrays(tmp_path):
    annotations = Annotations.from_columns("aabb", "xyxy", ["cat", "cat", "dog", "cat"])
    probabilities = np.array([[0.9, 0.1], [0.2, 0.8]])
    np.save(tmp_path / "p.npy", probabilities)
    np.testing.assert_array_equal(
        read_probabilities(tmp_path / "p.npy", annotations), probabilities
    )
    np.save(tmp_path / "many.npy", np.stack([probabilities, probabilities]))
    assert read_probabilities(tmp_path / "many.npy", annotations).shape == (2, 2, 2)
    np.savez(tmp_path / "p.npz", probabilities)
    np.testing.assert_array_equal(
        read_probabilities(tmp_path / "p.npz", annotations), probabilities
    )
    turned = {"items": ["b", "c", "a"], "classes": ["dog", "cat"]}
    rows = np.array([[0.8, 0.2], [0.5, 0.5], [0.1, 0.9]])
    np.savez(tmp_path / "named.npz", probabilities=rows, **turned)
    np.testing.assert_array_equal(
        read_probabilities(tmp_path / "named.npz", annotations), probabilities
    )


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("p.csv", "item,p:cat\na,1\nb,1\n", "no probability of class 'dog'"),
        ("p.csv", "item,p:cat,p:dog,p:fox\na,1,0,0\nb,1,0,0\n", "class 'fox' is not among"),
        ("p.csv", "item,p:cat,p:dog\na,1,0\n", "no probabilities of item 'b'; 1 items"),
        ("p.csv", "item,p:cat,p:dog\na,1,0\na,1,0\nb,1,0\n", "item 'a' appears twice"),
        ("p.csv", "item,p:cat,p:dog\na,1,x\nb,1,0\n", "a probability for every row"),
        ("p.csv", "item,cat,dog\na,1,0\nb,1,0\n", "no column p:"),
        ("p.csv", "item,p:cat,p:dog\na,1,1\nb,1,0\n", "item 'a' are not from 0 to 1"),
        ("p.npy", np.ones((3, 2)), r"here \(2, 2\)"),
        ("p.npy", np.array(["a", "b"]), "not numbers"),
        ("p.npz", {"a": np.ones(2), "b": np.ones(2)}, "named probabilities"),
        ("p.npz", {"probabilities": np.ones((2, 2)), "items": ["a"]}, "1 items for 2 rows"),
        ("p.npz", b"PK\x03\x04nothing", "not an array"),
    ],
)
def test_probabilities_that_cannot_be_read_are_explained(tmp_path, name, content, message):
    annotations = Annotations.from_columns("aabb", "xyxy", ["cat", "cat", "dog", "cat"])
    path = tmp_path / name
    if isinstance(content, str):
        path.write_text(content)
    elif isinstance(content, bytes):
        path.write_bytes(content)
    elif isinstance(content, dict):
        np.savez(path, **content)
    else:
        np.save(path, content)
    with pytest.raises(DataError, match=message) as problem:
        read_probabilities(path, annotations)
    assert str(path) in str(problem.value)
    assert "\n" not in str(problem.value)


def plain_cleanlab(matrix, probabilities, **options):
    """Return cleanlab's scores, where it has no weights to return."""
    multiannotator = pytest.importorskip("cleanlab.multiannotator")
    found = multiannotator.get_label_quality_multiannotator(
        matrix, probabilities.copy(), verbose=False, **options
    )
    found["annotator_stats"] = found["annotator_stats"].sort_index()
    return found


def assert_same_scores(annotations, found, expected):
    """Compare every column of cleanlab to 1e-12."""
    close = {"rtol": 0, "atol": 1e-12}
    quality, stats = expected["label_quality"], expected["annotator_stats"]
    np.testing.assert_array_equal(found.label, quality["consensus_label"])
    detailed = expected["detailed_label_quality"].to_numpy()
    for ours, theirs in (
        (found.consensus_quality, quality["consensus_quality_score"]),
        (found.consensus_agreement, quality["annotator_agreement"]),
        (found.label_quality, detailed[annotations.item, annotations.annotator]),
        (found.annotator_quality, stats["annotator_quality"]),
        (found.annotator_agreement, stats["agreement_with_consensus"]),
    ):
        np.testing.assert_allclose(ours, np.asarray(theirs), **close)
    np.testing.assert_array_equal(found.worst_class, stats["worst_class"])


LABEL_SCORES = [
    {},
    {"method": "normalized_margin"},
    {"method": "confidence_weighted_entropy"},
    {"adjust_pred_probs": True},
    {"method": "normalized_margin", "adjust_pred_probs": True},
]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("quality", ["crowdlab", "agreement"])
@pytest.mark.parametrize("consensus", ["best_quality", "majority_vote"])
@pytest.mark.parametrize("score", LABEL_SCORES, ids=str)
@pytest.mark.parametrize("calibrate", [False, True])
def test_every_option_gives_the_scores_of_cleanlab(seed, quality, consensus, score, calibrate):
    annotations, matrix, probabilities = drawn(seed, gaps=[0.6, 0.3, 0.75][seed])
    options = {"quality_method": quality, "consensus_method": consensus}
    options["label_quality_score_kwargs"] = score
    found = crowdlab(
        annotations, probabilities[0], **options, calibrate=calibrate, as_cleanlab=True
    )
    expected = plain_cleanlab(matrix, probabilities[0], **options, calibrate_probs=calibrate)
    assert_same_scores(annotations, found, expected)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("consensus", ["best_quality", "majority_vote"])
def test_agreement_counts_labels_by_class_and_cleanlab_does_once_repaired(
    seed, consensus, monkeypatch
):
    multiannotator = pytest.importorskip("cleanlab.multiannotator")
    annotations, matrix, probabilities = drawn(seed)
    options = {"quality_method": "agreement", "consensus_method": consensus}
    as_is = plain_cleanlab(matrix, probabilities[0], **options)
    monkeypatch.setattr(
        multiannotator,
        "value_counts",
        lambda labels, num_classes: np.bincount(labels.astype(int), minlength=num_classes),
    )
    found = crowdlab(annotations, probabilities[0], **options)
    assert_same_scores(annotations, found, plain_cleanlab(matrix, probabilities[0], **options))
    wrong = as_is["detailed_label_quality"].to_numpy()[annotations.item, annotations.annotator]
    assert np.abs(found.label_quality - wrong).max() > 0.5  # the fault is not a small one


@pytest.mark.parametrize("order", [("best_quality",), ("majority_vote",)])
def test_several_answer_methods_are_columns_as_in_cleanlab(order):
    annotations, matrix, probabilities = drawn(5)
    both = [*order, *({"best_quality", "majority_vote"} - set(order))]
    found = crowdlab(annotations, probabilities[0], consensus_method=both)
    expected = plain_cleanlab(matrix, probabilities[0], consensus_method=both)
    assert_same_scores(annotations, found, expected)
    other, table = both[1], expected["label_quality"]
    items = found.items
    label = np.array([int(name) for name in items[f"label_{other}"]])
    np.testing.assert_array_equal(label, table[f"consensus_label_{other}"])
    for ours, theirs in (
        ("consensus_quality", "consensus_quality_score"),
        ("consensus_agreement", "annotator_agreement"),
    ):
        np.testing.assert_allclose(
            items[f"{ours}_{other}"], table[f"{theirs}_{other}"], rtol=0, atol=1e-12
        )


def test_unknown_options_of_crowdlab_are_refused():
    annotations = Annotations.from_columns("aab", "xyx", "010")
    model = [[0.5, 0.5], [0.5, 0.5]]
    for wrong, words in (
        ({"quality_method": "lof"}, "quality_method = 'lof', but it must be one of crowdlab"),
        ({"consensus_method": ["mean"]}, "consensus_method = 'mean'"),
        ({"consensus_method": []}, "consensus_method is empty"),
        ({"label_quality_score_kwargs": {"metod": 1}}, "no 'metod'; there are method"),
        ({"label_quality_score_kwargs": {"method": "x"}}, "method = 'x'"),
        (
            {
                "label_quality_score_kwargs": {
                    "method": "confidence_weighted_entropy",
                    "adjust_pred_probs": True,
                }
            },
            "takes no adjusted probabilities",
        ),
    ):
        with pytest.raises(OptionError, match=words):
            crowdlab(annotations, model, **wrong)
