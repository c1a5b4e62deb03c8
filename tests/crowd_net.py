"""A small network that learns from annotators, and a run of it in a process of its own.

python -m tests.crowd_net FOLDER [--kill-at STEP] [--kill-in-save N] [--out FILE] [--wait S]
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn

from dissensus import Annotations
from dissensus.deep.nn import Examples, Learner, Table, Training, train

SETTINGS = Training(epochs=4, batch=16, lr=1e-2, clip=1.0, save_every=3, seed=5)


class CrowdNet(Learner):
    """A classifier with a confusion matrix per annotator, and a count kept per item."""

    def __init__(self, n_features, annotations, dropout=0.3):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(n_features, 16),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(16, annotations.n_classes),
        )
        self.table = Table(
            2 * torch.eye(annotations.n_classes).repeat(annotations.n_annotators, 1, 1)
        )
        self.register_buffer("seen", torch.zeros(annotations.n_items))
        self.register_buffer("begun", torch.tensor(0.0))

    def begin(self, examples, epoch):
        self.begun += torch.rand(())  # random, so that only a restored run gets it right

    def log_truth(self, x):
        return self.body(x).log_softmax(dim=-1)

    def log_probability(self, batch):
        truth = self.log_truth(batch.x)[batch.row]
        given = self.table(batch.annotator).log_softmax(dim=-1)
        log = torch.logsumexp(truth[:, :, None] + given, dim=1)
        return log.gather(1, batch.label[:, None])[:, 0]

    def loss(self, batch):
        if self.training:
            self.seen[batch.item] += 1
        return -self.log_probability(batch).mean()


def crowd(n_items=120, n_annotators=9, n_classes=3, seed=0):
    """Return inputs, annotations and truth."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_classes, size=n_items)
    x = rng.normal(size=(n_items, 5)).astype(np.float32)
    x[np.arange(n_items), truth] += 2
    item = np.repeat(np.arange(n_items), 3)
    right = rng.random(len(item)) < 0.7
    label = np.where(right, truth[item], rng.integers(n_classes, size=len(item)))
    annotator = rng.integers(n_annotators, size=len(item))
    annotations = Annotations.from_codes(
        item, annotator, label, items=n_items, annotators=n_annotators, classes=n_classes
    )
    return torch.from_numpy(x), annotations, truth


def fresh(annotations, dropout=0.3):
    torch.manual_seed(1)
    return CrowdNet(5, annotations, dropout)


def die_in_save(number):
    """Kill this process when checkpoint number so and so is half written."""
    from dissensus.deep.nn import runs as checkpoints

    whole, done = checkpoints.save_file, []

    def half(tensors, path, metadata):
        whole(tensors, path, metadata=metadata)
        done.append(path)
        if len(done) == number:
            os.truncate(path, path.stat().st_size // 2)
            os.kill(os.getpid(), signal.SIGKILL)

    checkpoints.save_file = half


def run(folder, *, kill="", out=None, wait=0.0, dropout=0.3):
    """Train in a folder, resume it, and end as requested."""
    x, annotations, _ = crowd()
    net = fresh(annotations, dropout)
    where, _, number = kill.partition("=")
    if where == "in-save":
        die_in_save(int(number))

    def progress(done, total, words):
        time.sleep(wait)
        if where == "at" and done == int(number):
            os.kill(os.getpid(), signal.SIGKILL)

    history = train(
        net, Examples(x, annotations), SETTINGS, folder=folder, resume=True, progress=progress
    )
    if out and os.environ.get("RANK", "0") == "0":
        weights = {name: value.tolist() for name, value in net.state_dict().items()}
        Path(out).write_text(json.dumps({"loss": history.loss, "weights": weights}))


def together(out):
    """Train with two processes in the environment of torchrun, which share this one's imports."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    children = []
    for rank in range(2):
        children.append(os.fork())
        if not children[-1]:
            summary = {"RANK": rank, "LOCAL_RANK": rank, "GROUP_RANK": 0, "WORLD_SIZE": 2}
            summary |= {"LOCAL_WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
            summary |= {"TORCHELASTIC_RUN_ID": "test"}
            os.environ.update({name: str(value) for name, value in summary.items()})
            run(f"{out}.folder", out=out, dropout=0.0)
            os._exit(0)
    for child in children:
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--kill", nargs="*", help="at=STEP or in-save=NUMBER, one after the other")
    parser.add_argument("--two", help="train with two processes, and write the result here")
    parser.add_argument("--out")
    parser.add_argument("--wait", type=float, default=0)
    parser.add_argument("--dropout", type=float, default=0.3)
    summary = parser.parse_args()
    torch.set_num_threads(1)
    if not summary.kill and not summary.two:
        run(summary.folder, out=summary.out, wait=summary.wait, dropout=summary.dropout)
        os._exit(0)  # what torch does at the end aborts if another process has left before
    if summary.two:
        together(summary.two)
    for kill in summary.kill or []:  # each in a child, which saves it the imports
        child = os.fork()
        if not child:
            run(summary.folder, kill=kill)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)  # noqa: T201


if __name__ == "__main__":
    import lightning_fabric  # noqa: F401

    main()
