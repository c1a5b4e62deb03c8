"""Adapters of few-shot learning, their training and tuning."""
# ruff: noqa: E402

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="meta needs torch: pip install '.[deep]'")
pytest.importorskip("sklearn", reason="FewShotCrowd needs scikit-learn")


from dissensus import Annotations
from dissensus.deep.meta.base import Adapter, ClassLearner, Embedding, EpisodeLearner
from dissensus.deep.meta.baselines import Maml, Prototypes, Ridge
from dissensus.deep.meta.episodes import EpisodeSource, Items, Sizes
from dissensus.deep.meta.pseudo_annotators import PseudoAnnotators
from dissensus.deep.meta.tasks import Tasks, labelled
from dissensus.deep.meta.tuning import Scores, choose, embedded, score, tune
from dissensus.deep.nn import Training, train
from dissensus.errors import OptionError
from dissensus.registry import adapters, aggregators

from ..few_shot_support import FEW, gaussian, source_of

ADAPTERS = list(adapters)


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


# Every adapter


@pytest.mark.parametrize("name", ADAPTERS)
def test_adapters_give_distributions_over_the_classes_of_the_queries(name):
    batch = next(iter(source_of(8).batches(8, 0, 0)))
    adapter = adapters.create(name).build(6, 3)
    assert isinstance(adapter, Adapter)
    log, task = adapter.classify(torch.nn.Identity(), batch)
    assert log.shape == (8, 12, 3)
    assert torch.allclose(log.exp().sum(dim=2), torch.ones(8, 12), atol=1e-5)
    assert task is not None
    assert torch.allclose(task.posterior.sum(dim=2), torch.ones(8, 9), atol=1e-5)


@pytest.mark.parametrize("name", ADAPTERS)
def test_adapters_learn_what_annotators_agree_on(name):
    annotators = PseudoAnnotators(spammers=(0, 0.3))
    source = source_of(64, annotators=annotators)
    adapter, least = adapters.create(name).build(6, 3), 0.85
    if adapters.create(name).joint:
        learner = EpisodeLearner(Embedding(torch.nn.Identity(), 6), adapter, lr=3e-4)
        settings = Training(epochs=1, batch=32, lr=3e-4, held_out=0)
        train(learner, source_of(32 * 200, annotators=annotators), settings)
        least = 0.5
    else:
        tune(adapter, source, steps=15)
    adapter.eval()
    assert score(adapter, source.batches(64, 5, 0)).mean > least


@pytest.mark.parametrize("name", ADAPTERS)
def test_adapters_have_gradients_to_the_embedding(name):
    batch = next(iter(source_of(4).batches(4, 0, 0)))
    batch = batch._replace(x=batch.x.requires_grad_())
    adapter = adapters.create(name).build(6, 3)
    log, _ = adapter.classify(torch.nn.Identity(), batch)
    query_loss(log, batch).backward()
    assert float(batch.x.grad.abs().max()) > 0


def query_loss(log, batch):
    return -log.gather(2, batch.truth[:, :, None]).mean()


def test_prototypes_of_dawid_skene_are_those_of_the_aggregators_labels():
    batch = next(iter(source_of(1, Sizes(shots=(5,), annotators=(5,))).batches(1, 3, 0)))
    adapter = Prototypes(labels="dawid-skene", c=0.4, right=2.4).build(6, 5)
    items = Items.of(batch.x[batch.support], batch.label, n_classes=5)
    # Four pseudo-counts of every class, 2.4 of them right; 1.6 spread over the other four.
    expected = aggregators.create("dawid-skene-map[strength=4.4,accuracy=0.6363636363,tol=0]")
    result = expected.fit(Annotations.from_matrix(batch.label[0].numpy(), classes=range(5)))
    assert adapter.adapt(items).posterior[0].argmax(dim=1).tolist() == result.label.tolist()


def test_tied_majorities_split_their_item_and_unlabelled_items_are_left_out():
    u = torch.tensor([[[0.0], [4.0], [2.0], [100.0]]])
    label = torch.tensor([[[0, 0], [1, 1], [0, 1], [-1, -1]]])
    task = Prototypes().build(1, 2).adapt(Items.of(u, label, n_classes=2))
    means = torch.tensor([1.0 / 1.5, 5.0 / 1.5])
    assert torch.allclose(task.logits(u)[0], -((u[0] - means) ** 2) / 2)


def test_a_ridge_head_is_that_of_the_normal_equations():
    rng = np.random.default_rng(0)
    u, votes = rng.normal(size=(8, 3)), rng.integers(2, size=(8, 3))
    items = Items.of(torch.from_numpy(u)[None], torch.from_numpy(votes)[None], n_classes=2)
    task = Ridge(gamma=0.7).build(3, 2).double().adapt(items)
    wide = np.column_stack([u, np.ones(8)])
    share = np.stack([(votes == k).mean(axis=1) for k in range(2)], axis=1) - 0.5
    expected = np.linalg.solve(wide.T @ wide + 0.7 * np.eye(4), wide.T @ share)
    logits = Ridge().sharpness * wide @ expected
    np.testing.assert_allclose(task.logits(items.u)[0].detach(), logits, atol=1e-9)


@pytest.mark.parametrize("first_order", [False, True])
def test_gradients_of_maml_are_those_of_its_steps(first_order):
    """Differentiated through the steps, unless first-order."""
    torch.manual_seed(0)
    network = Embedding(torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Tanh()), 5).double()
    batch = next(iter(source_of(2).batches(2, 0, 0)))
    batch = batch._replace(x=batch.x.double())
    adapter = Maml(steps=2, lr=0.3, first_order=first_order).build(5, 3).double().train()
    with torch.no_grad():
        adapter.head.weight.normal_()
    weight = network.network[0].weight

    def loss():
        return query_loss(adapter.classify(network, batch)[0], batch)

    loss().backward()
    result, eps = weight.grad[0, 0].item(), 1e-6
    with torch.no_grad():
        weight[0, 0] += eps
    up = loss().item()
    with torch.no_grad():
        weight[0, 0] -= 2 * eps
    down = loss().item()
    exact = (up - down) / (2 * eps)
    assert (abs(result - exact) < 1e-6) is not first_order


def test_adapters_for_a_fixed_number_of_classes_refuse_others():
    batch = next(iter(source_of(2).batches(2, 0, 0)))
    for name in ("cnp", "maml"):
        with pytest.raises(OptionError, match="trained on tasks of 4 classes, not of 3"):
            adapters.create(name).build(6, 4).classify(torch.nn.Identity(), batch)


# Training, tuning, choosing


def test_training_on_episodes_finds_the_features_that_matter():
    rng = np.random.default_rng(0)
    x, y = gaussian(n_classes=40, per_class=10, width=3)
    x = np.concatenate([x, 8 * rng.normal(size=(len(x), 6))], axis=1).astype(np.float32)
    tasks = Tasks(torch.from_numpy(x), y)
    source = EpisodeSource(tasks, FEW, PseudoAnnotators(), 32 * 60)
    adapter = adapters.create("em-full[scale=0.3]").build(9, 3)
    embedding = Embedding(torch.nn.Flatten(), 9, "weights")
    before = score(adapter, source_of_tasks(tasks), embedding).mean
    learner = EpisodeLearner(embedding, adapter, lr=0.02)
    train(learner, source, Training(epochs=1, batch=32, lr=0.02, held_out=0))
    assert score(adapter, source_of_tasks(tasks), embedding).mean > before + 0.1
    weights = embedding.weights.detach().abs()
    assert float(weights[:3].min()) > float(weights[3:].max())


def source_of_tasks(tasks):
    return EpisodeSource(tasks, FEW, PseudoAnnotators(), 64).batches(64, 7, 0)


def test_a_broken_training_on_episodes_ends_with_the_same_weights(tmp_path):
    class BrokenError(Exception):
        pass

    def trained(folder, break_at=None, resume=False):
        torch.manual_seed(0)
        adapter = adapters.create("em-full").build(6, 3)
        learner = EpisodeLearner(Embedding(torch.nn.Flatten(), 6, "linear"), adapter, lr=0.01)

        def progress(done, total, words):
            if done == break_at:
                raise BrokenError

        settings = Training(epochs=2, batch=16, lr=0.01, held_out=0, save_every=1)
        valid = source_of(32)
        train(
            learner, source_of(64), settings,
            valid=valid, folder=folder, resume=resume, progress=progress,
        )  # fmt: skip
        return learner.state_dict()

    whole = trained(tmp_path / "whole")
    with pytest.raises(BrokenError):
        trained(tmp_path / "broken", break_at=6)
    rest = trained(tmp_path / "broken", resume=True)
    assert all(torch.equal(value, rest[name]) for name, value in whole.items())
    summary = json.loads((tmp_path / "whole" / "log.json").read_text())
    assert summary["chosen by"] == "minus the loss of queries in 32 episodes of classes held out"


def test_tuning_lowers_the_loss_and_finds_the_scale():
    source = source_of(64, far=40.0)
    adapter = adapters.create("em-full").build(6, 3)
    before = score(adapter, source.batches(64, 5, 0)).log_loss.mean()
    tune(adapter, source, steps=20)
    assert score(adapter, source.batches(64, 5, 0)).log_loss.mean() < before


def test_tuning_finds_the_prior_of_class_means_for_weak_features():
    sizes = Sizes(ways=(3,), shots=(2, 8), annotators=(4,), queries=4)
    source = source_of(64, sizes, width=100, far=0.3, n_classes=8, per_class=40)
    adapter = adapters.create("em-full").build(100, 3)
    tune(adapter, source, steps=1)
    tau = adapter.classes.log_tau.detach()
    assert float(tau.exp()) > 0.3  # steps alone would stay at a thousandth
    many = list(replace(source, per_epoch=640).batches(16, 5, 0))
    tuned = score(adapter, many).log_loss.mean()
    tau.fill_(np.log(0.001))
    assert score(adapter, many).log_loss.mean() > tuned


def test_uneven_episodes_teach_the_weight_of_frequencies_and_nothing_else():
    sizes = Sizes(ways=(2,), shots=(8,), annotators=(4,), queries=8)
    source = source_of(64, sizes, width=20, far=0.4, n_classes=10, per_class=40)
    uneven = replace(source, sizes=replace(sizes, uneven=1.0))
    one, other = (adapters.create("em-one-coin[steps=2]").build(20, 2) for _ in range(2))
    tune(one, source, steps=5)
    tune(other, uneven, steps=5)
    states = one.state_dict(), other.state_dict()
    weights = [float(state.pop("log_share_weight").exp()) for state in states]
    assert weights[0] < 0.1 < 0.5 <= weights[1]
    assert all(torch.equal(value, states[1][name]) for name, value in states[0].items())
    many = list(replace(uneven, per_epoch=320).batches(16, 5, 0))
    even, weighted = (score(adapter, many) for adapter in (one, other))
    assert weighted.mean > even.mean + 0.03
    assert weighted.log_loss.mean() < even.log_loss.mean()


def test_the_best_adapter_is_chosen_by_accuracy():
    candidates = {name: adapters.create(name).build(6, 3) for name in ("em-one-coin", "ridge")}
    result = choose(candidates, source_of(64), steps=10, episodes=128)
    assert result.best == max(result.scores, key=lambda name: result.scores[name].mean)
    assert all(len(one.accuracy) == 128 for one in result.scores.values())


def test_scores_are_those_of_their_queries():
    result = Scores(
        np.array([1.0, 0.5]), np.zeros(2), np.array([0.9, 0.9, 0.6, 0.6]), np.array([1.0, 1, 1, 0])
    )
    assert result.mean == 0.75
    assert result.half == pytest.approx(1.96 * 0.25 * 2**0.5 / 2**0.5)


def test_a_classifier_of_all_classes_learns_rotations_too():
    x = torch.zeros(20, 1, 6, 6)
    x[:10, :, 0], x[10:, :, :2] = 1.0, 1.0
    tasks = Tasks(x, np.repeat(np.arange(2), 10), None, rotations=4)
    learner = ClassLearner(Embedding(torch.nn.Flatten(), 36), 8)
    train(learner, labelled(tasks), Training(epochs=30, batch=40, lr=0.05, held_out=0))
    result = learner.log_truth(labelled(tasks).x[np.arange(80)]).argmax(dim=1)
    assert (
        result.tolist() == np.repeat([0, 1] * 4, 10).tolist()
        or (result.reshape(8, 10) == torch.arange(8)[:, None]).all()
    )


def test_embedding_a_source_keeps_its_classes():
    x, y = gaussian()
    result = embedded(Embedding(torch.nn.Flatten(), 6), Tasks(torch.from_numpy(x), y))
    assert np.array_equal(result.label, y)
    np.testing.assert_allclose(result.x, x, atol=1e-6)
