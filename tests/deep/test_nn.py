"""The training loop: batches, row-wise optimizers, checkpoints and folders of runs."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="networks need torch: pip install '.[deep]'")

from torch import nn  # noqa: E402

from dissensus.deep.nn import Examples, LabelledInputs, Table, Training, hold_out, train  # noqa: E402
from dissensus.deep.nn import runs as run_folders  # noqa: E402
from dissensus.deep.nn.batches import RowAdam, RowSGD  # noqa: E402
from dissensus.deep.nn.settings import clip, lr_factor  # noqa: E402
from dissensus.errors import DataError, MethodError, OptionError  # noqa: E402

from ..crowd_net import SETTINGS, CrowdNet, crowd, fresh  # noqa: E402
from ..support import annotation_rows, relation  # noqa: E402

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def same(one, other):
    return all(
        torch.equal(value, other.state_dict()[name]) for name, value in one.state_dict().items()
    )


def names(*texts):
    return np.array(texts, dtype=np.dtypes.StringDType())


class StopError(Exception):
    pass


def stopping_at(step):
    def progress(done, total, words):
        if done == step:
            raise StopError

    return progress


# ---------------------------------------------------------------------- batches


@given(
    rows=annotation_rows(), size=st.integers(1, 4), seed=st.integers(0, 3), ranks=st.integers(1, 3)
)
def test_an_epoch_holds_every_annotation_once_beside_the_input_of_its_item(rows, size, seed, ranks):
    annotations = relation(rows, items="abcdef")
    examples = Examples(torch.arange(6.0)[:, None], annotations)
    found = []
    for rank in range(ranks):
        for position, batch in enumerate(examples.batches(size, seed, 1, rank=rank, ranks=ranks)):
            if rank >= min(size, examples.n_labelled - position * size):
                continue  # a process without an item of its own; what it got does not count
            assert batch.x[:, 0].tolist() == batch.item.tolist()
            item = batch.item[batch.row]
            found += zip(item.tolist(), batch.annotator.tolist(), batch.label.tolist(), strict=True)
    summary = zip(
        annotations.item.tolist(),
        annotations.annotator.tolist(),
        annotations.label.tolist(),
        strict=True,
    )
    assert sorted(found) == sorted(summary)


def test_the_order_of_items_follows_from_seed_and_epoch_alone():
    x, annotations, _ = crowd()
    examples = Examples(x, annotations)

    def order(seed, epoch, start=0):
        return [batch.item.tolist() for batch in examples.batches(7, seed, epoch, start=start)]

    assert order(3, 2) == order(3, 2)
    assert order(3, 2) != order(3, 1)
    assert order(3, 2) != order(4, 2)
    assert order(3, 2, start=5) == order(3, 2)[5:]
    assert len(order(3, 2)) == examples.n_batches(7)


def test_batches_of_like_size_hold_every_item_once_and_little_filling():
    x, annotations, _ = crowd()
    sizes = np.random.default_rng(5).integers(1, 100, annotations.n_items)
    plain, sorted_ = Examples(x, annotations), Examples(x, annotations, sizes=sizes)

    def groups(examples, epoch=0, start=0):
        return [batch.item.tolist() for batch in examples.batches(7, 3, epoch, start=start)]

    def filling(some):
        return sum(sizes[group].max() * len(group) - sizes[group].sum() for group in some)

    found = groups(sorted_)
    assert sorted(chain(*found)) == sorted(chain(*groups(plain)))
    assert [len(group) for group in found] == [len(group) for group in groups(plain)]
    assert found != groups(sorted_, epoch=1)
    assert groups(sorted_, start=3) == found[3:]
    assert filling(found) < filling(groups(plain)) / 2
    first = [sizes[groups(sorted_, epoch)[0]].mean() for epoch in range(40)]
    assert abs(np.mean(first) - sizes.mean()) < 12  # neither short nor long ones come first
    with pytest.raises(DataError, match="3 sizes"):
        Examples(x, annotations, sizes=sizes[:3])


def test_loaded_inputs_give_the_same_batches_as_a_tensor():
    x, annotations, _ = crowd()

    class Loaded:
        def __len__(self):
            return len(x)

        def __getitem__(self, items):
            return x[items]

    for one, other in zip(
        Examples(x, annotations).batches(11, 0, 0),
        Examples(Loaded(), annotations).batches(11, 0, 0),
        strict=True,
    ):
        assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def test_inputs_have_to_be_as_many_as_items():
    _, annotations, _ = crowd()
    with pytest.raises(DataError, match="3 inputs, but annotations on 120 items"):
        Examples(torch.zeros(3, 1), annotations)


def test_whole_items_are_held_out():
    x, annotations, _ = crowd()
    kept, held = hold_out(Examples(x, annotations), 0.25, seed=1)
    there, back = kept.annotations.labels_per_item > 0, held.annotations.labels_per_item > 0
    assert not (there & back).any()
    assert (there | back).all()
    assert back.sum() == 30
    np.testing.assert_array_equal(
        kept.annotations.labels_per_item + held.annotations.labels_per_item,
        annotations.labels_per_item,
    )


# ---------------------------------------------------------------------- tables and steps


def test_a_table_gathers_rows_and_its_gradient_is_that_of_indexing():
    start = torch.randn(5, 2, 3)
    table, plain = Table(start), nn.Parameter(start.clone())
    which = torch.tensor([3, 1, 3])
    weight = torch.randn(3, 2, 3)
    (table(which) * weight).sum().backward()
    (plain[which] * weight).sum().backward()
    assert torch.equal(table.all, plain)
    torch.testing.assert_close(table.weight.grad.to_dense().reshape(5, 2, 3), plain.grad)


@pytest.mark.parametrize(
    ("rows", "dense"),
    [
        (lambda p: RowAdam(p, lr=0.1), lambda p: torch.optim.Adam(p, lr=0.1)),
        (
            lambda p: RowAdam(p, lr=0.1, weight_decay=0.1),
            lambda p: torch.optim.Adam(p, lr=0.1, weight_decay=0.1),
        ),
        (
            lambda p: RowSGD(p, lr=0.1, momentum=0.9, weight_decay=0.1),
            lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.1),
        ),
    ],
)
def test_rows_that_are_always_seen_move_as_with_the_dense_rule(rows, dense):
    torch.manual_seed(0)
    start = torch.randn(4, 3)
    table, plain = Table(start), nn.Parameter(start.clone())
    walk, run = rows(table.parameters()), dense([plain])
    seen = torch.tensor([0, 2])  # rows 1 and 3 have no label at all
    for _ in range(6):
        target = torch.randn(2, 3)
        for optimizer, values in ((walk, table(seen)), (run, plain[seen])):
            optimizer.zero_grad()
            (values - target).square().sum().backward()
            optimizer.step()
    torch.testing.assert_close(table.weight[seen], plain[seen])
    assert torch.equal(table.weight[[1, 3]], start[[1, 3]])


def test_a_row_seen_late_takes_a_first_step_no_longer_than_the_learning_rate():
    table = Table(torch.zeros(2, 1))
    optimizer = RowAdam(table.parameters(), lr=0.1)
    for row in [0] * 50 + [1]:
        optimizer.zero_grad()
        table(torch.tensor([row])).sum().backward()
        optimizer.step()
    assert table.weight[1].item() == pytest.approx(-0.1, rel=1e-4)


@pytest.mark.parametrize("sparse", [False, True])
def test_clipping_is_that_of_torch_whether_gradients_are_dense_or_of_rows(sparse):
    torch.manual_seed(0)
    table = Table(torch.randn(4, 3)) if sparse else nn.Embedding(4, 3)
    other = nn.Embedding(4, 3, _weight=table.weight.detach().clone())
    which = torch.tensor([1, 1, 2])
    for module in (table, other):
        (module(which) * torch.arange(9.0).reshape(3, 3)).sum().backward()
    clip([torch.optim.SGD(table.parameters())], 0.5)
    nn.utils.clip_grad_norm_(other.parameters(), 0.5)
    found = table.weight.grad.to_dense() if sparse else table.weight.grad
    torch.testing.assert_close(found, other.weight.grad, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("settings", "theirs"),
    [
        (
            Training(epochs=6, scheduler="multistep", milestones=(2, 4), lr_decay=0.5),
            lambda o: torch.optim.lr_scheduler.MultiStepLR(o, [2, 4], 0.5),
        ),
        (
            Training(epochs=6, scheduler="cosine"),
            lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 6),
        ),
        (Training(epochs=6), lambda o: torch.optim.lr_scheduler.ConstantLR(o, 1.0)),
    ],
)
def test_learning_rates_at_the_start_of_epochs_are_those_of_torch(settings, theirs):
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    scheduler = theirs(optimizer)
    for epoch in range(6):
        assert lr_factor(settings, 10 * epoch, 10) == pytest.approx(scheduler.get_last_lr()[0])
        optimizer.step()
        scheduler.step()


def test_a_warm_up_rises_in_a_line_and_then_falls_to_nothing():
    settings = Training(epochs=10, scheduler="warmup-cosine", warmup=0.2)
    factors = [lr_factor(settings, step, 5) for step in range(50)]
    np.testing.assert_allclose(factors[:10], np.arange(1, 11) / 10)
    assert np.all(np.diff(factors[10:]) < 0)
    assert 0 < factors[-1] < 0.01


# ---------------------------------------------------------------------- training


def test_training_finds_the_truth_behind_noisy_labels_and_leaves_the_best_weights():
    x, annotations, truth = crowd(300)
    net = fresh(annotations)
    settings = Training(epochs=15, batch=32, lr=1e-2)
    history = train(net, Examples(x, annotations), settings)
    scores = [row.score for row in history.rows]
    assert history.best == 1 + int(np.argmax(scores))
    assert history.chosen_by == "log-likelihood of 90 annotations held out, on 30 items"
    _, held = hold_out(Examples(x, annotations), 0.1, 0)
    with torch.no_grad():
        (batch,) = held.batches(1000, 0, 0)
        assert net.log_probability(batch).mean().item() == pytest.approx(max(scores), abs=1e-6)
    assert not net.training
    assert (net.log_truth(x).argmax(1).numpy() == truth).mean() > 0.8


def test_with_known_truth_the_epoch_is_chosen_by_accuracy_and_nothing_is_held_out():
    x, annotations, truth = crowd()
    net = fresh(annotations)
    settings = Training(epochs=6, lr=3e-2)
    history = train(net, Examples(x, annotations), settings, valid=LabelledInputs(x, truth))
    assert history.chosen_by == "accuracy on 120 items of known truth"
    accuracy = (net.log_truth(x).argmax(1).numpy() == truth).mean()
    assert accuracy == pytest.approx(max(row.score for row in history.rows))
    assert (net.seen > 0).all()


def test_without_anything_to_choose_by_the_last_epoch_is_kept():
    x, annotations, _ = crowd()
    history = train(fresh(annotations), Examples(x, annotations), Training(epochs=3, held_out=0))
    assert (history.best, history.chosen_by) == (3, "the last epoch")


def test_a_seed_decides_everything_and_the_callers_random_numbers_are_left_alone():
    x, annotations, _ = crowd()
    nets = []
    for seed in (5, 5, 6):
        torch.manual_seed(99)
        net = fresh(annotations)
        before = torch.get_rng_state()
        train(net, Examples(x, annotations), Training(epochs=2, seed=seed))
        assert torch.equal(torch.get_rng_state(), before)
        nets.append(net)
    assert same(nets[0], nets[1])
    assert not same(nets[0], nets[2])


def test_patience_ends_a_training_that_no_longer_gets_better():
    x, annotations, _ = crowd()
    settings = Training(epochs=200, lr=0.1, patience=3)
    history = train(fresh(annotations), Examples(x, annotations), settings)
    assert len(history.rows) == history.best + 3 < 200


@pytest.mark.parametrize("optimizer", ["adam", "adamw", "radam", "sgd"])
def test_every_optimizer_lowers_the_loss(optimizer):
    x, annotations, _ = crowd()
    settings = Training(epochs=4, lr=2e-2, optimizer=optimizer, held_out=0)
    loss = train(fresh(annotations, 0.0), Examples(x, annotations), settings).loss
    assert loss[-1] < loss[0]


def test_short_floats_train_much_as_long_ones():
    x, annotations, _ = crowd()
    try:
        one, other = (
            train(
                fresh(annotations, 0.0),
                Examples(x, annotations),
                Training(epochs=3, precision=bits),
            ).loss
            for bits in ("32", "bf16")
        )
    except OptionError as problem:
        pytest.skip(str(problem))
    np.testing.assert_allclose(one, other, atol=0.02)
    assert one != other


def test_a_loss_that_is_not_a_number_fails_in_one_line():
    x, annotations, _ = crowd()

    class Broken(CrowdNet):
        def loss(self, batch):
            return super().loss(batch) * torch.nan

    with pytest.raises(MethodError, match="the loss is nan in epoch 1; a smaller lr"):
        train(Broken(5, annotations), Examples(x, annotations), Training(epochs=1))


def test_frozen_parameters_stay_as_they_are():
    x, annotations, _ = crowd()
    net = fresh(annotations)
    net.body[0].requires_grad_(False)
    before = net.body[0].weight.clone()
    train(net, Examples(x, annotations), Training(epochs=1, decay=0.1))
    assert torch.equal(net.body[0].weight, before)


def test_settings_keep_their_limits():
    with pytest.raises(MethodError, match="epochs = 0"):
        Training(epochs=0)
    with pytest.raises(MethodError, match="milestones"):
        Training(milestones=(0,))
    x, annotations, _ = crowd()
    with pytest.raises(OptionError, match="torchrun --nproc-per-node 4"):
        train(fresh(annotations), Examples(x, annotations), Training(devices=4))


# ---------------------------------------------------------------------- folders and checkpoints


@pytest.mark.parametrize("step", [1, 4, 7, 8, 20, 27])
def test_a_run_that_was_broken_off_ends_with_the_same_weights_and_log(tmp_path, step):
    x, annotations, _ = crowd()
    examples = Examples(x, annotations)
    whole = fresh(annotations)
    summary = train(whole, examples, SETTINGS)
    with pytest.raises(StopError):
        train(fresh(annotations), examples, SETTINGS, folder=tmp_path, progress=stopping_at(step))
    again = fresh(annotations)
    history = train(again, examples, SETTINGS, folder=tmp_path, resume=True)
    assert same(whole, again)
    assert history.best == summary.best
    assert [row[:4] for row in history.rows] == [row[:4] for row in summary.rows]


@pytest.fixture(scope="module")
def processes(tmp_path_factory):
    """Return folders in which processes were killed, one after the other, and trained together."""
    killed, two = tmp_path_factory.mktemp("killed"), tmp_path_factory.mktemp("two") / "out.json"
    summary = [str(killed), "--kill", "at=11", "in-save=2", "--two", str(two)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.crowd_net", *summary],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        check=False,
    )
    assert done.stdout.split() == [b"-9", b"-9"], done.stderr.decode()
    return killed, two


def test_a_run_killed_at_a_step_and_then_inside_a_save_ends_with_the_same_weights(processes):
    x, annotations, _ = crowd()
    folder, _ = processes
    whole, again = fresh(annotations), fresh(annotations)
    train(whole, Examples(x, annotations), SETTINGS)
    assert list(folder.glob(".*.part")), "the save was not cut in the middle"
    train(again, Examples(x, annotations), SETTINGS, folder=folder, resume=True)
    assert same(whole, again)
    assert not list(folder.glob(".*.part"))


def test_two_processes_walk_the_way_of_one(processes):
    x, annotations, _ = crowd()
    _, out = processes
    net = fresh(annotations, 0.0)
    history = train(net, Examples(x, annotations), SETTINGS)
    found = json.loads(out.read_text())
    np.testing.assert_allclose(found["loss"], history.loss, atol=1e-6)
    for name, value in net.named_parameters():
        np.testing.assert_allclose(found["weights"][name], value.detach(), atol=1e-5)


def test_a_finished_run_is_taken_up_without_another_step(tmp_path):
    x, annotations, _ = crowd()
    net, again = fresh(annotations), fresh(annotations)
    train(net, Examples(x, annotations), SETTINGS, folder=tmp_path)
    train(
        again,
        Examples(x, annotations),
        SETTINGS,
        folder=tmp_path,
        resume=True,
        progress=stopping_at(1),
    )
    assert same(net, again)


def test_a_longer_run_may_go_on_from_a_shorter_one(tmp_path):
    x, annotations, _ = crowd()
    whole, again = fresh(annotations), fresh(annotations)
    longer = Training(epochs=5, seed=2)
    train(whole, Examples(x, annotations), longer)
    train(fresh(annotations), Examples(x, annotations), Training(epochs=2, seed=2), folder=tmp_path)
    history = train(again, Examples(x, annotations), longer, folder=tmp_path, resume=True)
    assert same(whole, again)
    assert len(history.rows) == 5


def test_the_folder_holds_log_and_curve(tmp_path):
    x, annotations, _ = crowd()
    history = train(fresh(annotations), Examples(x, annotations), SETTINGS, folder=tmp_path)
    with (tmp_path / "log.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["loss"]) for row in rows] == history.loss
    log = json.loads((tmp_path / "log.json").read_text())
    assert log["chosen by"] == history.chosen_by
    assert log["best epoch"] == history.best
    assert log["ended"]
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_two_runs_never_write_one_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(run_folders, "_PATIENCE", 0.2)
    x, annotations, _ = crowd()
    seen = []

    def meanwhile(done, total, words):
        if done == 3:
            with pytest.raises(
                OptionError, match=f"another run writes here .process {os.getpid()}"
            ):
                train(
                    fresh(annotations),
                    Examples(x, annotations),
                    SETTINGS,
                    folder=tmp_path,
                    resume=True,
                )
            seen.append(done)

    train(
        fresh(annotations), Examples(x, annotations), SETTINGS, folder=tmp_path, progress=meanwhile
    )
    assert seen == [3]


def test_a_run_whose_folder_was_taken_writes_nothing_more(tmp_path):
    x, annotations, _ = crowd()
    left = {}

    def taken(done, total, words):
        if done == 4:
            (tmp_path / "run.lock").unlink()
            (tmp_path / "run.lock").write_text('{"run": "another"}')
            left.update(written(tmp_path))

    with pytest.raises(OptionError, match="another run has taken this folder"):
        train(
            fresh(annotations), Examples(x, annotations), SETTINGS, folder=tmp_path, progress=taken
        )
    assert written(tmp_path) == left


def written(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_a_folder_with_a_training_is_not_overwritten_unasked(tmp_path):
    x, annotations, _ = crowd()
    train(fresh(annotations), Examples(x, annotations), SETTINGS, folder=tmp_path)
    before = (tmp_path / "checkpoint.safetensors").read_bytes()
    with pytest.raises(OptionError, match="holds a training; resume it, or name a new folder"):
        train(fresh(annotations), Examples(x, annotations), SETTINGS, folder=tmp_path)
    slower = replace(SETTINGS, lr=1e-3)
    with pytest.raises(OptionError, match=re.escape("began with lr = 0.01, not 0.001")):
        train(fresh(annotations), Examples(x, annotations), slower, folder=tmp_path, resume=True)
    x, other, _ = crowd(seed=1)
    with pytest.raises(OptionError, match="learned from other annotations"):
        train(fresh(other), Examples(x, other), SETTINGS, folder=tmp_path, resume=True)
    assert (tmp_path / "checkpoint.safetensors").read_bytes() == before


@pytest.mark.parametrize(
    "damage", [lambda body: body[: len(body) // 2], lambda _: b"junk", lambda _: b""]
)
def test_a_damaged_checkpoint_fails_in_one_line(tmp_path, damage):
    x, annotations, _ = crowd()
    train(fresh(annotations), Examples(x, annotations), SETTINGS, folder=tmp_path)
    path = tmp_path / "checkpoint.safetensors"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DataError, match="a damaged checkpoint") as summary:
        train(fresh(annotations), Examples(x, annotations), SETTINGS, folder=tmp_path, resume=True)
    assert "\n" not in str(summary.value)


def test_a_checkpoint_of_another_network_fails_in_one_line(tmp_path):
    x, annotations, _ = crowd()
    train(fresh(annotations), Examples(x, annotations), SETTINGS, folder=tmp_path)
    with pytest.raises(DataError, match="of another network") as summary:
        train(
            CrowdNet(7, annotations),
            Examples(x, annotations),
            SETTINGS,
            folder=tmp_path,
            resume=True,
        )
    assert "\n" not in str(summary.value)


def test_a_worker_without_its_launcher_ends(monkeypatch):
    x, annotations, _ = crowd()
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    parents = iter([1234, 1234, 1234, 1])
    monkeypatch.setattr(os, "getppid", lambda: next(parents))
    with pytest.raises(OptionError, match="the launcher of this worker has ended"):
        train(fresh(annotations), Examples(x, annotations), SETTINGS)
