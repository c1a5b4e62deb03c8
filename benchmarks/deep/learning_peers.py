"""Learning from annotators beside peers: `python benchmarks/run.py deep learning_peers`.

crowd-kit offers layers to put behind a network of one's own (CrowdLayer, CoNAL); here they stand
behind our classifier in our loop, so that the layer alone differs. `alone` trains them as their
documents do: no warm-up, one learning rate for all. `ours beside it` gives them our warm-up and
our learning rate of the crowd. scikit-activeml offers whole estimators (crowd layer, annot-mix,
Raykar's logistic regression), which get the same network, features, epochs, batches and learning
rate; they have no way to choose an epoch without truth, so theirs is the last.

Step time: one network, batches of 64 items with 5 labels each; a step is all that happens between
two updates, including what collects the batch. The libraries take turns.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from statistics import median
from time import process_time
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from torch import Tensor, nn

from dissensus.deep.learning.base import (
    BuildParts,
    Classifier,
    CrowdModel,
    LearningMethod,
    PairBatch,
)
from dissensus.deep.learning.classifier import CrowdClassifier
from dissensus.deep.nn import Examples, Training, hold_out, train
from dissensus.registry import learners
from learning import SETS, STUDENT, Data, scores
from pages import Section, Table
from training import StoppedError, examples_of

_EPOCHS, _BATCH, _LR = 40, 64, 1e-3


class KitModel(CrowdModel):
    """A layer of crowd-kit behind our classifier."""

    def __init__(self, crowd: BuildParts, method: LearningMethod, kind: str) -> None:
        from crowdkit.learning import CoNAL, CrowdLayer

        super().__init__(crowd, method)
        made = {"crowd-layer": CrowdLayer, "conal": CoNAL}[kind]
        self.kind, self.layer = kind, made(self.n_classes, self.n_annotators)
        if kind == "conal":
            with torch.no_grad():  # it finds out the width of its input when first called
                self.log_given(self._sample())

    def _sample(self) -> PairBatch:
        two = torch.zeros(2, dtype=torch.long)
        return PairBatch(torch.zeros(2, self.n_classes), torch.zeros(2, self.classifier.width), two)

    def log_given(self, pairs: PairBatch) -> Tensor:
        if self.kind == "crowd-layer":
            found = self.layer(pairs.log_truth.exp(), pairs.annotator)
        else:
            found = self.layer(pairs.vector, pairs.log_truth, pairs.annotator)
        return found.log_softmax(dim=-1)

    def log_confusion(self, annotator: Tensor, vector: Tensor) -> Tensor:
        raise NotImplementedError("crowd-kit has no word for it")


class KitMethod(LearningMethod):
    """What the loop asks of a method, for a layer of crowd-kit."""

    kind: str = ""

    def build(self, crowd: BuildParts) -> CrowdModel:
        return KitModel(crowd, self, self.kind)


def of_kit(kind: str, **settings: Any) -> KitMethod:
    made = KitMethod(**settings)
    object.__setattr__(made, "kind", kind)
    return made


def by_kit(data: Data, seed: int, kind: str, **settings: Any) -> Any:
    """Return probabilities of the test items by a layer of crowd-kit."""
    x, x_test = (torch.as_tensor(np.asarray(part, np.float32)) for part in (data.x, data.x_test))
    examples, held = hold_out(Examples(x, data.annotations), 0.1, seed)

    def classifier() -> Classifier:
        made = Classifier(nn.Flatten(), x.shape[1], data.annotations.n_classes, 128, 0.5, 0.3)
        made.fit_scale(x)
        return made

    torch.manual_seed(seed)
    model = of_kit(kind, **settings).build(BuildParts(examples.annotations, classifier))
    summary = Training(epochs=_EPOCHS, batch=_BATCH, lr=_LR, held_out=0, seed=seed)
    train(model, examples, summary, valid=held)
    with torch.no_grad():
        return model.log_truth(x_test).double().exp().numpy()


def by_us(data: Data, seed: int, spec: str, **settings: Any) -> Any:
    training = Training(epochs=_EPOCHS, batch=_BATCH, lr=_LR, patience=20)
    made = CrowdClassifier(spec, seed=seed, training=training, **settings)
    return made.fit(data.x, data.annotations).predict_proba(data.x_test)


def matrix_of(data: Data) -> Any:
    """Return the labels as scikit-activeml takes them: (item, annotator), -1 for none."""
    annotations = data.annotations
    made = np.full((annotations.n_items, annotations.n_annotators), -1)
    made[annotations.item, annotations.annotator] = annotations.label
    return made


def by_activeml(data: Data, seed: int, name: str, **settings: Any) -> Any:
    """Return probabilities of the test items by an estimator of scikit-activeml."""
    import skactiveml.classifier.multiannotator as peers

    x, x_test = (
        torch.from_numpy(np.asarray(part, dtype=np.float32)) for part in (data.x, data.x_test)
    )
    n_classes = data.annotations.n_classes

    class Network(Classifier):
        def __init__(self) -> None:
            super().__init__(nn.Flatten(), x.shape[1], n_classes, 128, 0.5, 0.3)
            self.fit_scale(x)

    torch.manual_seed(seed)
    if name == "AnnotatorLogisticRegression":
        scale = Network()
        x, x_test = scale.encode(x), scale.encode(x_test)
        made = getattr(peers, name)(classes=range(n_classes), missing_label=-1, **settings)
    else:
        made = getattr(peers, name)(
            Network,
            classes=list(range(n_classes)),
            missing_label=-1,
            random_state=seed,
            neural_net_param_dict={
                "max_epochs": _EPOCHS,
                "batch_size": _BATCH,
                "lr": _LR,
                "optimizer": torch.optim.Adam,
                "iterator_train__shuffle": True,
                "verbose": 0,
            },
            **settings,
        )
    made.fit(x.numpy(), matrix_of(data))
    return made.predict_proba(x_test.numpy())


Way = tuple[str, str, Callable[[Data, int], Any]]
_THEIRS = {"warm_up": 0, "crowd_lr": _LR}
_OURS = {"warm_up": 5, "crowd_lr": 0.03}
WAYS: list[Way] = [
    ("crowd layer", "dissensus", partial(by_us, spec="crowd-layer")),
    ("crowd layer", "crowd-kit, alone", partial(by_kit, kind="crowd-layer", **_THEIRS)),
    ("crowd layer", "crowd-kit, ours beside it", partial(by_kit, kind="crowd-layer", **_OURS)),
    ("crowd layer", "scikit-activeml", partial(by_activeml, name="CrowdLayerClassifier")),
    ("CoNAL", "dissensus", partial(by_us, spec="conal")),
    ("CoNAL", "crowd-kit, alone", partial(by_kit, kind="conal", **_THEIRS)),
    ("CoNAL", "crowd-kit, ours beside it", partial(by_kit, kind="conal", **_OURS)),
    ("annot-mix", "dissensus", partial(by_us, spec="annot-mix")),
    ("annot-mix", "scikit-activeml", partial(by_activeml, name="AnnotMixClassifier")),
    ("EM, softmax regression", "dissensus", partial(by_us, spec="raykar", hidden=0)),
    (
        "EM, softmax regression",
        "scikit-activeml",
        partial(by_activeml, name="AnnotatorLogisticRegression", solver="L-BFGS-B"),
    ),
]  # fmt: skip


def versions() -> str:
    """Return which peers these are."""
    found = []
    for name in ("crowd-kit", "scikit-activeml", "torch"):
        with suppress(PackageNotFoundError):
            found.append(f"{name} {version(name)}")
    return ", ".join(found)


def accuracy_table(name: str, data: Data, seeds: int) -> Table:
    rows = []
    for kind, library, fit in WAYS:
        runs, began = [], process_time()
        # What does not depend on a seed is fitted once.
        for seed in range(1 if "softmax" in kind and library != "dissensus" else seeds):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    runs.append(scores(data, fit(data, seed)))
            except ImportError as error:
                print(f"{library} is left out: {error}")
                break
        if not runs:
            continue
        found = [run["accuracy"] for run in runs]
        spread = float(np.std(found, ddof=1)) if len(runs) > 1 else float("nan")
        half = STUDENT.get(len(runs), 2) * spread / len(runs) ** 0.5
        taken = (process_time() - began) / len(runs)
        cells = [float(np.mean([run[key] for run in runs])) for key in ("accuracy", "ece")]
        rows.append([kind, library, cells[0], half if len(runs) > 1 else None, cells[1], taken])
        print(f"{name}: {kind}, {library}: {cells[0]:.3f} ± {half:.3f}", flush=True)
    return Table(
        f"Beside peers on {name}",
        ["method", "library", "accuracy", "95 % ±", "ECE", "CPU seconds"],
        rows,
        f"{SETS[name].__doc__} Means of {seeds} seeds, and intervals of these means; one fit where "
        f"nothing is random. {versions()}.",
    )


def steps_of_us(n_annotators: int, spec: str, steps: int) -> list[float]:
    """Return the processor time of every step."""
    torch.manual_seed(0)
    examples = examples_of(n_annotators)
    return _steps(_classifier_model(learners.create(spec), examples), examples, steps)


def steps_of_kit(n_annotators: int, kind: str, steps: int) -> list[float]:
    torch.manual_seed(0)
    examples = examples_of(n_annotators)
    made = of_kit(kind, **_THEIRS)
    return _steps(_classifier_model(made, examples), examples, steps)


def _classifier_model(method: Any, examples: Examples) -> CrowdModel:
    annotations, width = examples.annotations, examples.x.shape[1]  # type: ignore[union-attr]
    return method.build(
        BuildParts(annotations, lambda: Classifier(nn.Flatten(), width, annotations.n_classes))
    )


def _steps(model: CrowdModel, examples: Examples, steps: int) -> list[float]:
    times: list[float] = []
    model.settings = replace(model.settings, warm_up=0)

    def progress(done: int, _total: int, _words: str) -> None:
        times.append(process_time())
        if done == steps:
            raise StoppedError

    with suppress(StoppedError):
        train(model, examples, Training(epochs=100, batch=_BATCH, held_out=0), progress=progress)
    return np.diff(times)[5:].tolist()


def steps_of_loop(n_annotators: int, _kind: str, steps: int) -> list[float]:
    from training import step_seconds

    return step_seconds(n_annotators, "loop", steps)


def steps_of_activeml(n_annotators: int, _kind: str, steps: int) -> list[float]:
    """Return step times of their module under their own way to collect a batch."""
    from skactiveml.classifier.multiannotator._crowd_layer_classifier import _CrowdLayerModule
    from skactiveml.classifier.multiannotator._utils import _MultiAnnotatorCollate

    torch.manual_seed(0)
    examples = examples_of(n_annotators, n_items=640)
    annotations, x = examples.annotations, examples.x
    labels = torch.full((annotations.n_items, n_annotators), -1)
    labels[annotations.item.astype(np.int64), annotations.annotator.astype(np.int64)] = (
        torch.from_numpy(annotations.label.astype(np.int64))
    )
    network = Classifier(nn.Flatten(), x.shape[1], annotations.n_classes)  # type: ignore[union-attr]
    module = _CrowdLayerModule(annotations.n_classes, n_annotators, network, None)
    rule = torch.optim.Adam(module.parameters())
    collate = _MultiAnnotatorCollate(missing_label=-1)

    def taken() -> Iterator[float]:
        for step in range(steps):
            began = process_time()
            at = step * _BATCH % annotations.n_items
            pairs = [(x[i].numpy(), labels[i].numpy()) for i in range(at, at + _BATCH)]
            given, label = collate(pairs)
            rule.zero_grad()
            nn.functional.cross_entropy(module(**given), label).backward()
            rule.step()
            yield process_time() - began

    return list(taken())[5:]


STEPS: list[tuple[str, Callable[[int, str, int], list[float]], str, tuple[int, ...], int]] = [
    ("dissensus, crowd layer", steps_of_us, "crowd-layer", (10, 1000, 10_000), 100),
    ("crowd-kit, crowd layer", steps_of_kit, "crowd-layer", (10, 1000, 10_000), 100),
    ("scikit-activeml, crowd layer", steps_of_activeml, "crowd-layer", (10, 1000, 10_000), 25),
    ("a module for every annotator", steps_of_loop, "loop", (10, 1000), 25),
    ("dissensus, CoNAL", steps_of_us, "conal", (10, 1000, 10_000), 100),
    ("crowd-kit, CoNAL", steps_of_kit, "conal", (10, 1000, 10_000), 25),
]


def step_table(rounds: int) -> Table:
    found: dict[tuple[str, int], list[float]] = {}
    for _ in range(rounds):
        for words, measure, kind, sizes, steps in STEPS:
            for size in sizes:
                with suppress(ImportError), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found.setdefault((words, size), []).extend(measure(size, kind, steps))
    middle = {job: 1e3 * median(times) for job, times in found.items() if times}
    rows = []
    for words, *_ in STEPS:
        if (words, 10) not in middle:
            continue
        own = "dissensus, CoNAL" if words.endswith("CoNAL") else "dissensus, crowd layer"
        times = [middle.get((words, size)) for size in (10, 1000, 10_000)]
        beside = times[1] / middle[own, 1000] if times[1] else None
        rows.append([words, *times, times[2] / times[0] if times[2] else None, beside])
    return Table(
        "Step time",
        ["library", "10 annotators, ms", "1000, ms", "10 000, ms", "10 000 : 10", "1000 : ours"],
        rows,
        "Medians of processor time, one thread. A matrix of 10 × 10 for every annotator.",
    )  # fmt: skip


def main() -> None:
    """Train beside each other, and write the page."""
    summary = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    summary.add_argument("--data", default="labelme,music")
    summary.add_argument("--seeds", type=int, default=5)
    summary.add_argument("--rounds", type=int, default=3)
    given = summary.parse_args()
    torch.set_num_threads(1)
    section = Section("learning beside peers", "learning")
    for name in given.data.split(","):
        section.add(accuracy_table(name, SETS[name](), given.seeds))
    section.add(step_table(given.rounds))
    section.write()


if __name__ == "__main__":
    main()
