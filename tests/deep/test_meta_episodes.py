"""Source tasks, episodes and pseudo-annotators: what a batch holds."""
# ruff: noqa: E402

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="meta needs torch: pip install '.[deep]'")

from dissensus import Annotations
from dissensus.deep.meta.episodes import EpisodeSource, Sizes
from dissensus.deep.meta.pseudo_annotators import PseudoAnnotators, annotate
from dissensus.deep.meta.tasks import Tasks
from dissensus.deep.meta.tuning import split
from dissensus.errors import DataError, MethodError


def tasks_of(n_classes=12, per_class=15, n_tasks=None, seed=0):
    """Return items whose single feature is their class."""
    label = np.random.default_rng(seed).permutation(np.repeat(np.arange(n_classes), per_class))
    task = None if n_tasks is None else np.arange(n_classes) % n_tasks
    return Tasks(torch.from_numpy(label[:, None].astype(np.float32)), label, task)


def drawn(tasks=None, pseudo=None, n=8, seed=0, **sizes):
    source = EpisodeSource(tasks or tasks_of(), Sizes(**sizes), pseudo or PseudoAnnotators(), n)
    return next(iter(source.batches(n, seed, 0)))


# Episodes


def test_an_episode_holds_the_classes_it_names():
    batch = drawn(shots=(3,), annotators=(4,), queries=2)
    assert batch.support.shape == (8, 15)
    assert batch.label.shape == (8, 15, 4)
    assert batch.query.shape == (8, 10)
    episode = torch.arange(8)[:, None]
    for position, code in ((batch.support, batch.clean), (batch.query, batch.truth)):
        named = batch.classes[episode, code]
        assert torch.equal(batch.x[position][:, :, 0].long(), named)
    assert (batch.clean.sort(dim=1).values == torch.arange(5).repeat_interleave(3)).all()


def test_no_item_is_twice_in_an_episode():
    batch = drawn(shots=(5,), queries=5, unlabelled=3, pool_items=15)
    for support, query in zip(batch.support, batch.query, strict=True):
        every = torch.cat([support, query])
        assert len(every.unique()) == len(every)


def test_unlabelled_items_are_in_the_support_without_labels():
    batch = drawn(shots=(2,), unlabelled=3, pool_items=15)
    silent = (batch.label < 0).all(dim=2)
    assert batch.support.shape == (8, 25)
    assert (silent.sum(dim=1) == 15).all()


def test_uneven_classes_have_the_same_sum_and_at_least_one_item_each():
    batch = drawn(shots=(4,), uneven=1.0, pool_items=15, n=50)
    counts = torch.stack([torch.bincount(one, minlength=5) for one in batch.clean])
    assert (counts.sum(dim=1) == 20).all()
    assert int(counts.min()) == 1
    assert int(counts.max()) > 4


def test_queries_are_of_frequent_classes_as_often_as_the_support():
    tasks = tasks_of(per_class=60)
    batch = drawn(tasks, shots=(6,), queries=6, uneven=1.0, n=400)
    both = [
        torch.stack([torch.bincount(one, minlength=5) for one in part]).double()
        for part in (batch.clean, batch.truth)
    ]
    assert (both[1].sum(dim=1) == 30).all()
    together = torch.corrcoef(torch.stack([part.flatten() for part in both]))[0, 1]
    assert together > 0.5
    for support, query in zip(batch.support, batch.query, strict=True):
        every = torch.cat([support, query])
        assert len(every.unique()) == len(every)


def test_episodes_stay_within_a_task():
    tasks = tasks_of(n_tasks=3)
    for seed in range(6):
        batch = drawn(tasks, seed=seed, ways=(4,))
        assert len(np.unique(tasks.task[batch.classes.numpy()])) == 1


def test_a_batch_follows_from_seed_epoch_and_number_alone():
    source = EpisodeSource(tasks_of(), Sizes(), PseudoAnnotators(), 30)
    whole = list(source.batches(10, 3, 2))
    rest = list(source.batches(10, 3, 2, start=1))
    assert len(whole) == 3
    for one, other in zip(whole[1:], rest, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))
    other = next(iter(source.batches(10, 3, 1)))
    assert not torch.equal(whole[0].x, other.x)


def test_processes_share_the_episodes_of_a_batch():
    source = EpisodeSource(tasks_of(), Sizes(), PseudoAnnotators(), 10)
    whole = next(iter(source.batches(10, 0, 0)))
    parts = [next(iter(source.batches(10, 0, 0, rank=rank, ranks=3))) for rank in range(3)]
    result = torch.zeros_like(whole.query)
    for rank, part in enumerate(parts):
        result[rank::3] = part.query
    assert torch.equal(result, whole.query)


def test_rotated_classes_are_new_classes_of_rotated_images():
    label = np.repeat(np.arange(3), 8)
    x = torch.zeros(24, 1, 4, 4)
    x[:, :, 0, :] = 1.0  # a line along the top
    batch = drawn(Tasks(x, label, None, rotations=4), ways=(5,), shots=(1,), n=40)
    sides = torch.stack([torch.rot90(x[0], turn, (-2, -1)) for turn in range(4)])
    episode = torch.arange(40)[:, None]
    turn = batch.classes[episode, batch.truth] // 3
    assert torch.equal(batch.x[batch.query], sides[turn])
    assert len(turn.unique()) == 4


def test_smaller_tasks_have_fewer_ways():
    assert drawn(tasks_of(n_classes=3), ways=(5,)).classes.shape == (8, 3)


def test_a_source_without_two_usable_classes_is_refused():
    with pytest.raises(DataError, match="two classes of 6 items"):
        drawn(tasks_of(per_class=3))


@pytest.mark.parametrize(
    "wrong", [{"ways": (1,)}, {"shots": ()}, {"annotators": (0,)}, {"unlabelled": -1}]
)
def test_sizes_keep_their_limits(wrong):
    with pytest.raises(MethodError, match=next(iter(wrong))):
        Sizes(**wrong)


# What is held out


def test_whole_tasks_are_held_out_where_there_are_several():
    tasks = tasks_of(n_classes=20, n_tasks=5)
    result = split(tasks, 0.2, Sizes(ways=(2,)), 0)
    assert result.description == "1 of 5 tasks"
    assert not set(result.train.task) & set(result.held_out.task)


def test_whole_classes_are_held_out_of_a_single_task():
    result = split(replace(tasks_of(n_classes=30), rotations=4), 0.2, Sizes(), 0)
    assert result.description == "6 of 30 classes"
    assert not set(result.train.x[:, 0].tolist()) & set(result.held_out.x[:, 0].tolist())
    assert (result.train.rotations, result.held_out.rotations) == (4, 1)


def test_items_are_held_out_where_classes_are_few():
    tasks = Tasks(torch.arange(60.0)[:, None], np.repeat(np.arange(2), 30))
    result = split(tasks, 0.2, Sizes(ways=(2,)), 0)
    assert result.description == "12 of 60 items"
    assert not set(result.train.x[:, 0].tolist()) & set(result.held_out.x[:, 0].tolist())
    assert np.bincount(result.held_out.label).tolist() == [6, 6]


# Pseudo-annotators


def test_matrices_are_those_of_their_types():
    rng = np.random.default_rng(0)
    hammers = PseudoAnnotators(spammers=(0, 0), accuracy=(0.8, 1)).draw(rng, 50, 6, 4)
    np.testing.assert_allclose(hammers.sum(axis=3), 1)
    right = hammers.diagonal(axis1=2, axis2=3)
    assert right.min() >= 0.8
    assert np.ptp(right, axis=2).max() < 1e-12
    spammers = PseudoAnnotators(spammers=(1, 1)).draw(rng, 50, 6, 4)
    np.testing.assert_allclose(spammers, 0.25)
    picky = PseudoAnnotators(spammers=(1, 1), class_spammers=1.0).draw(rng, 50, 6, 4)
    np.testing.assert_allclose(np.ptp(picky, axis=2), 0, atol=1e-12)
    assert picky.std() > 0.1
    against = PseudoAnnotators(spammers=(1, 1), adversaries=1.0).draw(rng, 50, 6, 4)
    assert against.diagonal(axis1=2, axis2=3).max() < 0.25
    flippers = PseudoAnnotators(spammers=(0, 0), flippers=1.0, accuracy=(0.7, 0.7)).draw(
        rng, 50, 6, 4
    )
    np.testing.assert_allclose(
        np.sort(flippers, axis=3)[..., -2:], [[[[0.3, 0.7]]]] + 0 * flippers[..., -2:]
    )
    np.testing.assert_allclose(flippers.sum(axis=2), 1)  # no label is the error of two classes


def test_a_fixed_number_of_spammers_leaves_somebody_who_knows():
    annotators = PseudoAnnotators(spammers=(0.5, 1.0), fixed=True)
    matrix = annotators.draw(np.random.default_rng(0), 200, 3, 5)
    guesses = matrix[:, :, 0, 0] < 0.21
    assert set(guesses.sum(axis=1)) == {2}


def test_the_share_of_spammers_is_drawn_for_every_episode():
    matrix = PseudoAnnotators(spammers=(0.0, 1.0)).draw(np.random.default_rng(0), 400, 50, 5)
    share = (matrix[:, :, 0, 0] < 0.21).mean(axis=1)
    assert share.std() > 0.2
    assert share.mean() == pytest.approx(0.5, abs=0.05)


def test_labels_follow_the_matrices():
    rng = np.random.default_rng(0)
    confusion = rng.dirichlet(np.ones(3), size=(1, 2, 3))
    truth = rng.integers(3, size=(1, 60_000))
    annotations = annotate(rng, confusion, truth)
    for annotator in range(2):
        for true in range(3):
            given = np.bincount(annotations[0, truth[0] == true, annotator], minlength=3)
            np.testing.assert_allclose(
                given / given.sum(), confusion[0, annotator, true], atol=0.015
            )


def test_every_item_has_a_label_and_the_given_number_on_average():
    rng = np.random.default_rng(0)
    confusion = PseudoAnnotators().draw(rng, 20, 10, 5)
    annotations = annotate(rng, confusion, rng.integers(5, size=(20, 100)), per_item=4.0)
    per_item = (annotations >= 0).sum(axis=2)
    assert per_item.min() >= 1
    assert per_item.mean() == pytest.approx(4.0, abs=0.1)


@pytest.mark.parametrize(
    "wrong",
    [{"spammers": (0.5, 0.1)}, {"accuracy": (0.5,)}, {"class_spammers": 0.6, "adversaries": 0.6}],
)
def test_crowds_keep_their_limits(wrong):
    with pytest.raises(MethodError, match=next(iter(wrong))):
        PseudoAnnotators(**wrong)


# Annotators of the source


def annotated(n_classes=6, per_class=10, seed=0):
    """Return tasks with annotators of their own, some of whose labels are wrong."""
    rng = np.random.default_rng(seed)
    tasks = tasks_of(n_classes, per_class)
    item, annotator = np.nonzero(rng.random((len(tasks.label), 8)) < 0.4)
    wrong = rng.integers(n_classes, size=len(item))
    label = np.where(rng.random(len(item)) < 0.7, tasks.label[item], wrong)
    annotations = Annotations.from_codes(
        item, annotator, label, items=len(tasks.label), annotators=8, classes=n_classes
    )
    return replace(tasks, annotations=annotations)


def test_labels_of_the_sources_annotators_are_theirs_without_other_classes():
    tasks = annotated()
    items = np.random.default_rng(0).integers(60, size=(4, 12))
    classes = np.array([[0, 2, 4]] * 4)
    result = tasks.labels_in_episodes(items, classes)
    for episode in range(4):
        for position, item in enumerate(items[episode]):
            mine = tasks.annotations.label[tasks.annotations.item == item]
            wanted = sorted(
                np.flatnonzero(classes[0] == label)[0] for label in mine if label % 2 == 0
            )
            given = result[episode, position]
            assert sorted(given[given >= 0].tolist()) == wanted


def test_an_annotator_has_one_index_in_an_episode():
    tasks = annotated()
    items = np.arange(60)[None]
    result = tasks.labels_in_episodes(items, np.arange(6)[None])
    assert result.shape == (1, 60, 8)
    dense = np.full((60, 8), -1)
    dense[tasks.annotations.item, tasks.annotations.annotator] = tasks.annotations.label
    assert np.array_equal(result[0], dense)


def test_episodes_may_be_labelled_by_the_sources_own_annotators():
    tasks = annotated()
    source = EpisodeSource(tasks, Sizes(ways=(3,), shots=(3,)), None, 8)
    batch = next(iter(source.batches(8, 0, 0)))
    labelled = batch.label >= 0
    right = (batch.label == batch.clean[:, :, None])[labelled].float().mean()
    assert batch.label.shape[:2] == (8, 9)
    assert 0.6 < float(right) < 1
    assert torch.isnan(batch.confusion).all()
    with pytest.raises(DataError, match="no annotations of its own"):
        EpisodeSource(tasks_of(), Sizes(), None, 8)


def test_annotations_go_along_when_classes_or_items_are_kept():
    tasks = annotated()
    some = tasks.keep(np.array([1, 3]))
    assert some.annotations.n_items == len(some.label) == 20
    dense = np.full((60, 8), -1)
    dense[tasks.annotations.item, tasks.annotations.annotator] = tasks.annotations.label
    rows = np.flatnonzero(np.isin(tasks.label, [1, 3]))
    wanted = np.select([dense[rows] == 1, dense[rows] == 3], [0, 1], -1)
    result = np.full((20, 8), -1)
    result[some.annotations.item, some.annotations.annotator] = some.annotations.label
    assert np.array_equal(result, wanted)
