"""EM adapters of few-shot learning: limits, symmetries and gradients."""
# ruff: noqa: E402

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="meta needs torch: pip install '.[deep]'")

from dissensus import Annotations
from dissensus.deep.meta.em import Em, EmFull
from dissensus.deep.meta.em_variants import EmItemConfusion, EmKinds, EmOneCoin
from dissensus.deep.meta.episodes import Items
from dissensus.registry import aggregators

ADAPTERS = [EmFull, EmOneCoin, EmKinds, EmItemConfusion]
NONE = 1e-30  # of a prior


@pytest.fixture(autouse=True)
def _double():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)
    yield
    torch.set_default_dtype(torch.float32)
    torch.set_num_threads(before)


def drawn(episodes=3, items=12, annotators=5, classes=3, width=4, seed=0):
    """Return random embeddings and labels, some of them missing."""
    rng = np.random.default_rng(seed)
    u = torch.from_numpy(rng.normal(size=(episodes, items, width)))
    label = torch.from_numpy(rng.integers(-1, classes, size=(episodes, items, annotators)))
    return u, label


def built(adapter, width=4, classes=3, **settings):
    model = adapter(**settings).build(width, classes)
    if adapter is EmItemConfusion:
        with torch.no_grad():
            model.annotators.weight.copy_(torch.linspace(-1, 1, width))
    return model


def number(value):
    return float(value.detach())


def adapted(model, u, label, classes=3):
    return model.adapt(Items.of(u, label, n_classes=classes))


def predicted(task, u, classes=3):
    return task.log_truth(Items.of(u, n_classes=classes)).exp()


# The objective


@torch.no_grad()
def climbed(model, steps):
    """Return the increase of the objective by step: (step, episode)."""
    trace = []
    for model.steps in steps:
        task = adapted(model, *drawn())
        trace.append(model.objective(task.support, task.classes, task.annotators))
    return torch.stack(trace).diff(dim=0)


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_the_objective_never_falls(adapter):
    model = built(adapter, b=0.7, tau=0.3)
    gain = climbed(model, [*range(1, 12), *range(12, 62, 7)])
    assert number(gain.min()) > -1e-9
    assert number(gain.max()) > 1e-3


@pytest.mark.parametrize("adapter", [EmFull, EmOneCoin])
def test_the_objective_never_falls_while_the_spread_of_classes_is_learned(adapter):
    model = built(adapter, b=0.7, tau=0.3, spread=2.0)
    assert number(climbed(model, range(1, 25)).min()) > -1e-9
    assert not torch.allclose(adapted(model, *drawn()).classes.variance, torch.ones(3))


def test_a_learned_spread_is_that_of_the_embeddings():
    rng = np.random.default_rng(0)
    clean = np.repeat(np.arange(2), 200)
    u = 6 * np.eye(2)[clean] @ np.ones((2, 8)) * np.sign(clean[:, None] - 0.5)
    u = torch.from_numpy(u + 1.7 * rng.normal(size=(400, 8)))[None]
    task = adapted(
        built(EmFull, spread=1.0, steps=5), u, torch.from_numpy(clean)[None, :, None], classes=2
    )
    assert number(task.classes.variance[0]) == pytest.approx(1.7**2, rel=0.05)


# Limits


def test_one_perfect_annotator_and_no_prior_is_a_prototypical_network():
    u, _ = drawn(classes=3)
    clean = torch.arange(12).remainder(3)[None, :, None].expand(3, -1, 1)
    model = built(EmFull, steps=1, b=NONE, c=NONE, right=NONE, tau=NONE)
    query, _ = drawn(seed=1)
    result = predicted(adapted(model, u, clean), query)
    means = torch.stack([u[:, k::3].mean(dim=1) for k in range(3)], dim=1)
    expected = (-(query[:, :, None] - means[:, None]).square().sum(dim=3) / 2).softmax(dim=2)
    assert torch.allclose(result, expected, atol=1e-11, rtol=0)


@pytest.mark.parametrize("steps", [1, 2, 7, 40])
def test_equal_embeddings_leave_the_map_fit_of_dawid_and_skene(steps):
    rng = np.random.default_rng(3)
    annotations = rng.integers(-1, 4, size=(30, 6))
    unlabelled = (annotations < 0).all(axis=1)
    annotations[:, 0] = np.where(unlabelled, 2, annotations[:, 0])
    strength, accuracy, prevalence = 4.0, 0.7, 1.3
    expected = aggregators.create(
        f"dawid-skene-map[tol=0,max_iter={steps},strength={strength},accuracy={accuracy},"
        f"prevalence={prevalence}]"
    ).fit(Annotations.from_matrix(annotations, classes=range(4)))
    wrong = strength * (1 - accuracy) / 3
    model = built(
        EmFull,
        5,
        4,
        steps=steps,
        b=prevalence,
        c=wrong,
        right=strength * accuracy - wrong,
        tau=NONE,
    )
    same = torch.ones(1, 30, 5)
    task = adapted(model, same, torch.from_numpy(annotations)[None], classes=4)
    np.testing.assert_allclose(task.posterior[0].detach(), expected.posterior, atol=1e-8)
    np.testing.assert_allclose(task.confusion[0].detach(), expected.params.confusion, atol=1e-8)


def test_without_annotators_it_is_a_gaussian_mixture():
    """One faultless label per class breaks the tie; a plain mixture then takes the same steps."""
    u, _ = drawn(episodes=1, items=20)
    label = torch.full((1, 20, 1), -1)
    label[0, :3, 0] = torch.arange(3)
    model = built(EmFull, steps=6, b=0.5, tau=0.2, c=1e-9, right=1e9, centred=False)
    result = adapted(model, u, label).posterior[0]
    posterior = torch.full((20, 3), 1 / 3)
    posterior[:3] = torch.eye(3)
    for _ in range(6):
        share = (posterior.sum(dim=0) + 0.5) / (20 + 1.5)
        mean = posterior.T @ u[0] / (posterior.sum(dim=0)[:, None] + 0.2)
        posterior = (share.log() - torch.cdist(u[0], mean).square() / 2).softmax(dim=1)
        posterior[:3] = torch.eye(3)
    assert torch.allclose(result, posterior, atol=1e-6)


def test_one_coin_and_equal_embeddings_leave_the_one_coin_aggregator():
    rng = np.random.default_rng(4)
    truth = rng.integers(3, size=40)
    annotations = np.where(rng.random((40, 5)) < 0.7, truth[:, None], rng.integers(3, size=(40, 5)))
    expected = aggregators.create(
        "one-coin[tol=0,max_iter=9,prevalence=uniform,strength=2,accuracy=0.6]"
    ).fit(Annotations.from_matrix(annotations, classes=range(3)))
    # Of two pseudo-counts 1.2 are right: c + right = 1.2 and 2 c = 0.8; b holds the shares even.
    model = built(EmOneCoin, 1, 3, steps=9, b=1e12, c=0.4, right=0.8, tau=NONE)
    task = adapted(model, torch.zeros(1, 40, 1), torch.from_numpy(annotations)[None])
    np.testing.assert_allclose(task.posterior[0].detach(), expected.posterior, atol=1e-8)


def test_items_without_guesses_leave_plain_matrices():
    u, label = drawn()
    model = built(EmItemConfusion, steps=4, guess=1e-12)
    with torch.no_grad():
        model.annotators.weight.zero_()
    plain = adapted(built(EmFull, steps=4), u, label)
    assert torch.allclose(adapted(model, u, label).posterior, plain.posterior, atol=1e-8)


def test_where_all_labels_are_guesses_they_have_no_information():
    u, label = drawn()
    model = built(EmItemConfusion, steps=3, guess=1 - 1e-12)
    with torch.no_grad():
        model.annotators.weight.zero_()
    task = adapted(model, u, label)
    likelihood = model.annotators.log_likelihood(task.annotators, task.support)
    assert number((likelihood - likelihood[:, :, :1]).abs().max()) < 1e-9


# Symmetries


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("starts", ["votes", "everyone"])
def test_the_order_of_annotators_changes_only_the_order_of_their_matrices(adapter, starts):
    u, label = drawn()
    model, order = built(adapter, starts=starts, steps=3), torch.tensor([3, 0, 4, 1, 2])
    one, other = adapted(model, u, label), adapted(model, u, label[:, :, order])
    assert torch.allclose(one.posterior, other.posterior, atol=1e-10)
    assert torch.allclose(one.confusion[:, order], other.confusion, atol=1e-10)
    assert torch.allclose(predicted(one, u), predicted(other, u), atol=1e-10)


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_the_order_of_classes_does_not_matter(adapter):
    u, label = drawn()
    model, name = built(adapter, steps=3), torch.tensor([2, 0, 1])
    renamed = torch.where(label >= 0, name[label.clamp(min=0)], -1)
    one, other = adapted(model, u, label), adapted(model, u, renamed)
    assert torch.allclose(one.posterior, other.posterior[:, :, name], atol=1e-10)


@torch.no_grad()
@pytest.mark.parametrize("adapter", ADAPTERS)
def test_where_embeddings_lie_as_a_whole_does_not_matter(adapter):
    u, label = drawn()
    model, moved = built(adapter, steps=3, tau=5.0), u + 7.0
    one, other = adapted(model, u, label), adapted(model, moved, label)
    assert torch.allclose(one.posterior, other.posterior, atol=1e-9)
    assert torch.allclose(predicted(one, u), predicted(other, moved), atol=1e-9)
    published = built(adapter, steps=3, tau=5.0, centred=False)
    gap = adapted(published, u, label).posterior - adapted(published, moved, label).posterior
    assert float(gap.abs().max()) > 1e-4


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("starts", ["votes", "everyone"])
def test_annotators_without_labels_change_nothing(adapter, starts):
    u, label = drawn(episodes=1)
    model = built(adapter, steps=3, starts=starts)
    plain, wider = adapted(model, u, label), torch.cat([label, torch.full((1, 12, 2), -1)], dim=2)
    padded = adapted(model, u, wider)
    assert torch.allclose(plain.posterior, padded.posterior, atol=1e-12)
    assert torch.allclose(predicted(plain, u), predicted(padded, u), atol=1e-12)


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_episodes_of_a_batch_do_not_see_each_other(adapter):
    u, label = drawn()
    model = built(adapter, steps=3, starts="everyone")
    together = adapted(model, u, label)
    alone = [adapted(model, u[[e]], label[[e]]) for e in range(3)]
    assert torch.allclose(together.posterior, torch.cat([one.posterior for one in alone]))
    result = torch.cat([predicted(one, u[[e]]) for e, one in enumerate(alone)])
    assert torch.allclose(predicted(together, u), result)


def test_an_uninformative_annotator_does_not_change_the_posterior():
    u, label = drawn()
    model = built(EmFull, steps=3)
    task = adapted(model, u, label)
    annotators = task.annotators.clone()
    annotators[:, 2] = -np.log(3)  # every label is equally likely
    likelihood = model.annotators.log_likelihood(annotators, task.support)
    others = [0, 1, 3, 4]
    fewer = Items.of(u, label[:, :, others], n_classes=3)
    without = model.annotators.log_likelihood(annotators[:, others], fewer)
    assert torch.allclose(likelihood.softmax(dim=2), without.softmax(dim=2), atol=1e-12)


def test_labels_on_new_items_count_by_the_accuracy_of_their_annotators():
    rng = np.random.default_rng(1)
    clean = np.tile(np.arange(3), 40)[None]
    annotations = np.stack([clean, clean, rng.integers(3, size=clean.shape)], axis=2)
    u = torch.from_numpy(0.5 * rng.normal(size=(1, 120, 4)))
    task = adapted(built(EmFull, steps=4), u, torch.from_numpy(annotations))
    new = torch.zeros(1, 1, 4)

    def likelihood(*label):
        return task.log_truth(Items.of(new, torch.tensor([[label]]), n_classes=3)).exp()[0, 0]

    assert number(likelihood(1, -1, -1)[1]) > 0.9
    assert number((likelihood(-1, -1, 1) - predicted(task, new)[0, 0]).abs().max()) < 0.15


def test_where_most_annotators_guess_one_right_start_is_enough():
    """Three of five agree on a wrong class; embeddings support the other two."""
    rng = np.random.default_rng(0)
    clean = np.repeat(np.arange(3), 6)[None]
    u = torch.from_numpy(4 * np.eye(3, 5)[clean] + rng.normal(size=(1, 18, 5)))
    wrong = rng.permutation(18)
    lie = clean[:, wrong]
    label = torch.from_numpy(np.stack([clean, clean, lie, lie, lie], axis=2))
    right = {}
    for starts in ("votes", "everyone"):
        result = adapted(built(EmOneCoin, 5, starts=starts), u, label).posterior.argmax(dim=2)
        right[starts] = (result.numpy() == clean).mean()
    assert right["everyone"] == 1.0
    assert right["votes"] < 0.8


# Gradients


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("starts", ["votes", "everyone"])
def test_gradients_pass_through_two_steps(adapter, starts):
    u, label = drawn(episodes=1, items=6, annotators=3)
    query, _ = drawn(episodes=1, items=4, seed=5)
    more = {"c": 0.3} if adapter is EmFull else {}
    model = built(adapter, steps=2, starts=starts, **more)
    truth = torch.tensor([[0, 1, 2, 1]])

    def loss(support, queries, *_):
        log = adapted(model, support, label).log_truth(Items.of(queries, n_classes=3))
        return -log.gather(2, truth[:, :, None]).mean()

    inputs = (u.requires_grad_(), query.requires_grad_(), *model.parameters())
    assert torch.autograd.gradcheck(loss, inputs, eps=1e-6, atol=1e-6)
    loss(*inputs).backward()
    assert number(u.grad.abs().max()) > 1e-4


def test_every_parameter_has_a_gradient():
    u, label = drawn()
    for adapter in ADAPTERS:
        model = built(adapter, steps=3, starts="everyone", spread=3.0)
        assert isinstance(model, Em)
        log = adapted(model, u, label).log_truth(Items.of(u, n_classes=3))
        log[:, :, 0].sum().backward()
        for name, parameter in model.named_parameters():
            assert parameter.grad is not None, f"{adapter.__name__}: {name}"
            assert number(parameter.grad.abs().max()) > 0, f"{adapter.__name__}: {name}"


# Numbers


def test_query_accuracy_on_the_toy_of_half_spammers_by_steps():
    """Five classes, five labelled items of each, five annotators, half of whom guess."""
    rng = np.random.default_rng(1)
    n = 2000  # one standard error is .004
    mean = 0.9 * rng.normal(size=(n, 5, 16))
    clean = np.tile(np.repeat(np.arange(5), 5), (n, 1))
    truth = np.tile(np.repeat(np.arange(5), 6), (n, 1))
    episode = np.arange(n)[:, None]
    u = torch.from_numpy(mean[episode, clean] + rng.normal(size=(n, 25, 16)))
    query = torch.from_numpy(mean[episode, truth] + rng.normal(size=(n, 30, 16)))
    knows = (rng.random((n, 1, 5)) < 0.5) & (rng.random((n, 25, 5)) < 0.9)
    label = np.where(knows, clean[:, :, None], rng.integers(5, size=(n, 25, 5)))
    expected = {1: 0.805, 2: 0.838, 3: 0.843, 5: 0.844, 10: 0.845}
    for steps, accuracy in expected.items():
        model = built(EmFull, 16, 5, steps=steps, b=1.0, c=0.2, right=1.0, tau=1e-3)
        with torch.no_grad():
            result = predicted(adapted(model, u, torch.from_numpy(label), classes=5), query, 5)
        right = (result.argmax(dim=2).numpy() == truth).mean()
        assert right == pytest.approx(accuracy, abs=0.01), steps


# Frequencies of classes


def test_the_weight_of_frequencies_is_their_exponent_in_predictions():
    u, label = drawn()
    (new, _) = drawn(seed=1)
    even, weighted = (built(EmFull, share_weight=weight) for weight in (1e-9, 2.0))
    task = adapted(weighted, u, label)
    frequency = task.classes.log_frequency.exp()
    np.testing.assert_allclose(frequency.sum(dim=1).detach(), 1)
    wanted = predicted(adapted(even, u, label), new) * frequency[:, None] ** 2
    wanted = wanted / wanted.sum(dim=2, keepdim=True)
    np.testing.assert_allclose(predicted(task, new).detach(), wanted.detach(), atol=1e-9)


def test_without_a_weight_predictions_take_the_shares_of_em():
    u, label = drawn()
    (new, _) = drawn(seed=1)
    task = adapted(built(EmFull, share_weight=None, b=1e6), u, label)
    even = adapted(built(EmFull, share_weight=1e-9, b=1e6), u, label)
    np.testing.assert_allclose(
        predicted(task, new).detach(), predicted(even, new).detach(), atol=1e-4
    )
    one = adapted(built(EmFull, share_weight=None), u, label)  # b = 1, as in frequencies
    other = adapted(built(EmFull, share_weight=1.0), u, label)
    np.testing.assert_allclose(
        predicted(one, new).detach(), predicted(other, new).detach(), atol=1e-9
    )


@pytest.mark.parametrize("starts", ["votes", "everyone"])
def test_leaving_one_out_predicts_every_item_from_all_others(starts):
    u, label = drawn(episodes=2, items=7)
    model = built(EmFull, leave_one_out=True, starts=starts, tau=0.7, scale=1.3, temperature=0.8)
    task = adapted(model, u, label)
    posterior = task._joint().softmax(dim=2)
    scaled = task.support.u.repeat(len(task.log_weight), 1, 1)
    density, log_frequency = model.classes.without_each(scaled, posterior, task.classes)
    for item in range(7):
        others = [n for n in range(7) if n != item]
        count = posterior[:, others].sum(dim=1)
        mean = torch.einsum("enk,enm->ekm", posterior[:, others], scaled[:, others])
        mean = mean / (count + 0.7)[:, :, None]
        far = (scaled[:, item, None] - mean).square().sum(dim=2)
        np.testing.assert_allclose(density[:, item].detach(), -far.detach() / 2, atol=1e-9)
        frequency = (count + 1) / (6 + 3)
        np.testing.assert_allclose(log_frequency[:, item].exp().detach(), frequency.detach())
    np.testing.assert_allclose(predicted(task, u).sum(dim=2).detach(), 1)


def test_a_task_with_clear_classes_has_sharper_predictions_when_left_out():
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1], [30, 6])
    for far, sharper in ((3.0, True), (0.0, False)):
        u = torch.from_numpy(far * np.eye(2, 4)[truth] + rng.normal(size=(36, 4)))[None]
        label = torch.from_numpy(np.repeat(truth[None, :, None], 3, axis=2))
        new = torch.from_numpy(far * np.eye(2, 4)[truth] + rng.normal(size=(36, 4)))[None]
        plain, task = (
            adapted(built(EmFull, leave_one_out=each, scale=0.3, share_weight=1e-9), u, label, 2)
            for each in (False, True)
        )
        before, after = (predicted(each, new, 2)[0].detach().numpy() for each in (plain, task))
        loss = [-np.log(p[np.arange(36), truth]).mean() for p in (before, after)]
        assert loss[1] < loss[0]
        if not sharper:  # features without information: the frequent class
            assert (after.argmax(axis=1) == 0).all()
