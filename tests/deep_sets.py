"""Folders, tables and commands that the tests of `train` and `aggregate-deep` share."""
# ruff: noqa: E402

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner

torch = pytest.importorskip("torch", reason="networks need torch: pip install '.[deep]'")
pytest.importorskip("sklearn", reason="CrowdClassifier needs scikit-learn")

from PIL import Image, ImageDraw

import dissensus
from dissensus.cli.training import network_options

from .support import run

SHAPES = ("circle", "square", "triangle")
N_ANNOTATORS = 6


@pytest.fixture(autouse=True, scope="module")
def _alone(tmp_path_factory):
    """One thread, and a cache of vectors of our own."""
    before = torch.get_num_threads(), os.environ.get("XDG_CACHE_HOME")
    torch.set_num_threads(1)
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))
    yield
    torch.set_num_threads(before[0])
    if before[1] is None:
        del os.environ["XDG_CACHE_HOME"]
    else:
        os.environ["XDG_CACHE_HOME"] = before[1]


def surroundings():
    """Return what another process needs to find the same package, and one core."""
    source = str(Path(dissensus.__file__).parents[1])
    path = os.pathsep.join([source, os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}


def ok(*arguments, cwd):
    done = run(*arguments, cwd=cwd)
    assert done.returncode == 0, done.stderr.decode()
    return done


def refused(*arguments, cwd):
    done = run(*arguments, cwd=cwd)
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1
    return done.stderr.decode()


def rows_in(path):
    with Path(path).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def draw(shape, file, rng):
    """Draw a shape of any colour anywhere."""
    image = Image.new("RGB", (64, 64), tuple(rng.integers(150, 256, 3).tolist()))
    size, left, upper = rng.integers(26, 40), *rng.integers(4, 20, 2)
    box = [int(left), int(upper), int(left + size), int(upper + size)]
    colour = tuple(rng.integers(0, 100, 3).tolist())
    pen = ImageDraw.Draw(image)
    if shape == "circle":
        pen.ellipse(box, colour)
    elif shape == "square":
        pen.rectangle(box, colour)
    else:
        pen.polygon([(box[0], box[3]), (box[2], box[3]), ((box[0] + box[2]) / 2, box[1])], colour)
    file.parent.mkdir(parents=True, exist_ok=True)
    image.save(file)


def crowd_answers(truth, n_classes, rng):
    """Return {item: {annotator: label}} of annotators who are right four times in five."""
    answers = {}
    for item, true in enumerate(truth):
        who = rng.choice(N_ANNOTATORS, 3, replace=False)
        annotations = np.where(rng.random(3) < 0.8, true, rng.integers(n_classes, size=3))
        answers[str(item)] = {str(w): int(label) for w, label in zip(who, annotations, strict=True)}
    return answers


@pytest.fixture(scope="module")
def shapes(tmp_path_factory):
    """A folder as peerannot has them: shapes, three of its training items without an answer."""
    folder = tmp_path_factory.mktemp("shapes")
    rng = np.random.default_rng(0)
    for part, count in (("train", 33), ("val", 9), ("test", 9)):
        for number in range(count):
            shape = SHAPES[number % 3]
            draw(shape, folder / part / shape / f"picture-{number}.png", rng)
    answers = crowd_answers([number % 3 for number in range(30)], 3, rng)
    (folder / "answers.json").write_text(json.dumps(answers))
    notes = {"name": "shapes", "n_classes": 3, "n_workers": N_ANNOTATORS}
    (folder / "metadata.json").write_text(json.dumps(notes))
    return folder


@pytest.fixture(scope="module")
def features(tmp_path_factory):
    """Features of eight classes: annotated items, valid and test items, and one more."""
    folder = tmp_path_factory.mktemp("features")
    rng = np.random.default_rng(1)
    truth = np.arange(161) % 8
    x = 2.0 * np.eye(8)[truth] + rng.normal(size=(161, 8))
    np.savez(folder / "x.npz", x=x, items=[f"i{item}" for item in range(161)])
    rows = [
        (f"i{item}", f"a{who}", f"c{label}")
        for item, given in crowd_answers(truth[:80], 8, rng).items()
        for who, label in given.items()
    ]
    write_table(folder / "answers.csv", ("item", "annotator", "label"), rows)
    for name, part in (("valid", range(80, 120)), ("test", range(120, 160))):
        known = [(f"i{item}", f"c{truth[item]}") for item in part]
        write_table(folder / f"{name}.csv", ("item", "label"), known)
    return folder


def write_table(path, header, rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])


SMALL = ("--inputs", "x.npz", "--hidden", 16, "--lr", 0.01, "--n-epochs", 12)


def asked_network(*options):
    """Return the network that options ask for."""
    got = []

    @click.command()
    @network_options(epochs=7)
    def verb(network):
        got.append(network)

    words = [str(option) for option in options]
    CliRunner().invoke(verb, words, standalone_mode=False, catch_exceptions=False)
    return got[0]
