"""The same methods in other libraries, behind one call: `prepare(library, method, annotations)`.

Data are brought into a library's own form before anything is timed, as ours are coded before. Peers
are imported when they run. The start of peerannot's package wants torch and torchvision for its
networks, which aggregation has no use for: its modules are imported here without that start.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from dissensus import Annotations

__all__ = ["LIBRARIES", "Answer", "Prepared", "mend_crowd_kit", "prepare", "version_of"]

Array = np.ndarray[Any, Any]


class Answer(NamedTuple):
    """The result of a fit: the class of every item, and posteriors where there are any."""

    label: Array  # (item)
    posterior: Array | None  # (item, class)


class Prepared(NamedTuple):
    """A method with its data: a fit with so many rounds, to be timed, and how to read it."""

    fit: Callable[[int | None], Any]
    read: Callable[[Any], Answer]


class Entry(NamedTuple):
    """A method of a peer: its class, and its settings for so many rounds and no early end."""

    name: str
    rounds: Callable[[int], dict[str, Any]] | None = None


CROWD_KIT = {
    "majority": Entry("MajorityVote"),
    "naive-soft": Entry("MajorityVote"),
    "wawa": Entry("Wawa"),
    "zbs": Entry("ZeroBasedSkill", lambda n: {"n_iter": n}),
    "dawid-skene": Entry("DawidSkene", lambda n: {"n_iter": n, "tol": -np.inf}),
    "one-coin": Entry("OneCoinDawidSkene", lambda n: {"n_iter": n, "tol": -np.inf}),
    "glad": Entry("GLAD", lambda n: {"n_iter": n, "tol": -np.inf}),
    "mace": Entry("MACE", lambda n: {"n_iter": n, "n_restarts": 1}),
    "kos": Entry("KOS", lambda n: {"n_iter": n}),
    "m-msr": Entry("MMSR", lambda n: {"n_iter": n, "tol": -np.inf}),
}
PEERANNOT = {
    "majority": Entry("majority_voting:MajorityVoting"),
    "naive-soft": Entry("naive_soft:NaiveSoft"),
    "two-thirds": Entry("twothird:TwoThird"),
    "wawa": Entry("wawa:Wawa"),
    "iwmv": Entry("iwmv:IWMV", lambda n: {"nb_iter": n}),
    "dawid-skene": Entry("dawid_skene:DawidSkene", lambda n: {"epsilon": 0, "maxiter": n}),
    "dswc": Entry("dawid_skene_clust:DawidSkeneClust"),
    "glad": Entry("glad:GLAD", lambda n: {"epsilon": -1, "maxiter": n - 1}),  # makes one more
}
LIBRARIES = {"crowd-kit": CROWD_KIT, "peerannot": PEERANNOT}


def version_of(library: str) -> str | None:
    """Return the version of a library that is installed."""
    try:
        return version(library)
    except PackageNotFoundError:
        return None


def prepare(library: str, method: str, annotations: Annotations) -> Prepared:
    """Return a library's method with these annotations in the form it wants."""
    entry = LIBRARIES[library][method]
    return (_crowd_kit if library == "crowd-kit" else _peerannot)(entry, annotations)


def mend_crowd_kit() -> None:
    """Let crowd-kit's Wawa and ZeroBasedSkill run: a check of scikit-learn fails on them now."""
    for module in ("wawa", "zero_based_skill"):
        found = import_module(f"crowdkit.aggregation.classification.{module}")
        found.check_is_fitted = lambda *_given, **_named: None  # type: ignore[attr-defined]


def _crowd_kit(entry: Entry, annotations: Annotations) -> Prepared:
    import pandas as pd
    from crowdkit.aggregation import classification

    mend_crowd_kit()

    columns = {
        "task": annotations.item,
        "worker": annotations.annotator,
        "label": annotations.label,
    }
    table = pd.DataFrame(columns).astype("int64")

    def fit(rounds: int | None) -> Any:
        settings = entry.rounds(rounds) if entry.rounds and rounds else {}
        model = getattr(classification, entry.name)(**settings)
        return model, model.fit_predict(table)

    def read(found: Any) -> Answer:
        model, labels = found
        posteriors = getattr(model, "probas_", None)
        if posteriors is not None:
            columns = range(annotations.n_classes)
            posteriors = posteriors.sort_index().reindex(columns=columns, fill_value=0.0).to_numpy()
        return Answer(labels.sort_index().to_numpy(), posteriors)

    return Prepared(fit, read)


def _peerannot(entry: Entry, annotations: Annotations) -> Prepared:
    module, _, name = entry.name.partition(":")
    _import_peerannot()
    kind = getattr(import_module(f"peerannot.models.aggregation.{module}"), name)
    coded = annotations.to_dict(coded=True)
    answers = {int(i): {int(a): int(g) for a, g in given.items()} for i, given in coded.items()}
    # GLAD writes files; Dawid-Skene allows no argument that it does not know.
    position = {"dataset": Path(tempfile.mkdtemp())} if name == "GLAD" else {}
    model = kind(
        answers, n_workers=annotations.n_annotators, n_classes=annotations.n_classes, **position
    )

    def fit(rounds: int | None) -> Any:
        if hasattr(model, "run"):
            model.run(**entry.rounds(rounds) if entry.rounds and rounds else {})
        return model.get_probas()

    def read(found: Any) -> Answer:
        summary = np.asarray(found)
        return (
            Answer(summary, None) if summary.ndim == 1 else Answer(summary.argmax(axis=1), summary)
        )

    return Prepared(fit, read)


def _import_peerannot() -> None:
    """Make peerannot's aggregation modules importable without its networks."""
    found = find_spec("peerannot")
    assert found is not None
    assert found.submodule_search_locations is not None
    package = ModuleType("peerannot.models")
    package.__path__ = [f"{found.submodule_search_locations[0]}/models"]
    sys.modules["peerannot.models"] = package
    if find_spec("sparse") is None:  # only a class that we do not run uses it
        sys.modules["sparse"] = ModuleType("sparse")
