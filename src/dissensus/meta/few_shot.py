"""Few-shot learning from annotators who disagree, as an estimator.

    model = FewShotCrowd().fit(X, y)                    # source tasks, with clean labels
    target = model.adapt(X_support, annotations)        # a new task: few items, shaky annotators
    target.predict_proba(X_new)

`fit` trains an embedding on the source classes, fits the numbers of adapters on classes that it
held out (on all, if the embedding learns nothing), and keeps the adapter that is best there.
`adapt` takes no gradient steps.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator  # type: ignore[import-untyped]
from sklearn.utils.validation import check_is_fitted  # type: ignore[import-untyped]
from torch import Tensor, nn

from ..annotations import Annotations
from ..errors import DataError, OptionError
from ..nn.batches import Source, inputs_of
from ..nn.encoding import chunks, encoding_for
from ..nn.inputs import Arrays, as_inputs
from ..nn.settings import Training
from ..nn.training import History, train
from ..registry import adapters
from .adapter import Adapter
from .embedding import Embedding, Head
from .episodes import EpisodeSource, Sizes
from .evaluation import embedded
from .items import Items
from .learner import ClassLearner, EpisodeLearner
from .pseudo import PseudoCrowd
from .sources import as_tasks, in_memory, labelled
from .splitting import Split, split, whole
from .storing import restore, save_state
from .target import FewShotTask
from .tasks import Tasks
from .tuning import choose

__all__ = ["AUTO", "TRAINING", "FewShotCrowd"]

# What `auto` chooses from.
AUTO = (
    "em-full",
    "em-shrink",
    "em-one-coin[starts=everyone]",
    "em-kinds[starts=everyone]",
)
TRAINING = Training(epochs=40, batch=32, lr=2e-3, scheduler="cosine", held_out=0.0)
_FAULTLESS = PseudoCrowd(spammers=(0.0, 0.0), accuracy=(1.0, 1.0))
_LOOK = 4096  # items by which embeddings are moved and scaled
_JUDGED = 640  # episodes that an epoch is judged by


class FewShotCrowd(BaseEstimator):  # type: ignore[misc]
    """A classifier of new tasks from few items and shaky annotators.

    Parameters
    ----------
    adapter
        How a task is learned, as the registry writes it: `name[setting=value,…]`; several with
        semicolons between, or `auto`: the best of them on the source.
    encoder
        What turns inputs into vectors, by name or as a network; `auto` takes features as they
        are and finds one that fits texts and images.
    head
        What is learned on top of a frozen encoder: nothing, weights of its features, or a linear
        map.
    teach
        What the embedding is trained by: `clean` supports, a classifier of all `classes`, or an
        adapter's specification, on supports labelled by pseudo-annotators.
    sizes
        How large the episodes are.
    crowd
        What pseudo-annotators are like; best as those of the tasks to come are.
    training
        How the embedding is trained; a batch is of episodes.
    episodes
        Episodes in an epoch.
    turns
        With 4, classes of images turned by right angles are classes too.
    held_out
        Share of tasks, classes or items that the embedding does not learn from.
    tuning
        Batches of episodes that the numbers of an adapter are fitted to.
    seed
        Decides what is random.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(np.arange(12), 10)
    >>> x = 3 * rng.normal(size=(12, 8))[y] + rng.normal(size=(120, 8))
    >>> model = FewShotCrowd("em-full", sizes=Sizes(ways=(3,), shots=(3,)), tuning=20).fit(x, y)
    >>> annotations = [[0, 0, 1], [0, 0, 2], [1, 1, 0], [1, 1, 1]]  # (item, annotator)
    >>> new = np.repeat(5 * np.eye(2, 8), 2, axis=0)
    >>> model.adapt(new, annotations).predict(new).tolist()
    ['0', '0', '1', '1']
    """

    def __init__(
        self,
        adapter: str = "auto",
        *,
        encoder: str | nn.Module = "auto",
        head: Head = "none",
        teach: str = "clean",
        sizes: Sizes | None = None,
        crowd: PseudoCrowd | None = None,
        training: Training | None = None,
        episodes: int = 3200,
        turns: int = 1,
        held_out: float = 0.2,
        tuning: int = 300,
        seed: int = 0,
    ) -> None:
        self.adapter = adapter
        self.encoder = encoder
        self.head = head
        self.teach = teach
        self.sizes = sizes
        self.crowd = crowd
        self.training = training
        self.episodes = episodes
        self.turns = turns
        self.held_out = held_out
        self.tuning = tuning
        self.seed = seed

    def fit(
        self,
        X: Any,  # noqa: N803
        y: ArrayLike,
        *,
        task: ArrayLike | None = None,
        annotations: Annotations | None = None,
        folder: str | Path | None = None,
        resume: bool = False,
        progress: Any = None,
    ) -> Self:
        """Learn from source tasks.

        Parameters
        ----------
        X
            Inputs: (item, …).
        y
            Their classes.
        task
            Which task every item is of; episodes stay within one. By default all are of one.
        annotations
            What annotators of the source said of its items, in the same order and with the same
            names of classes: they then label the episodes in the place of pseudo-annotators.
        folder, resume, progress
            Where to keep checkpoints of the training, whether to go on from them, whom to tell.
        """
        inputs = as_inputs(X)
        self.kind_ = inputs.kind
        self.shape_ = tuple(inputs.values.shape[1:]) if isinstance(inputs, Arrays) else ()
        self.encoding_ = encoding_for(self.encoder, inputs, self.seed)
        x = in_memory(self.encoding_.prepare(inputs))
        sizes = self.sizes or Sizes()
        tasks = as_tasks(x, y, task, self.turns, annotations)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            self._build(x)
            names = [each.strip() for each in self.adapter.split(";")]
            names = list(AUTO) if names == ["auto"] else names
            rules = {name: adapters.create(name) for name in names}
            joint = [name for name, rule in rules.items() if rule.joint]
            if joint and len(names) > 1:
                raise OptionError(f"{joint[0]} is trained with the embedding; name no other beside")
            made = {name: self.built(name) for name in names}
            learns = bool(joint) or any(e.requires_grad for e in self.embedding_.parameters())
            parts = split(tasks, self.held_out, sizes, self.seed) if learns else whole(tasks)
            self.split_ = parts.told
            self.history_: History | None = None
            if learns:
                self._teach(parts, made[joint[0]] if joint else None, folder, resume, progress)
            self._choose(parts, made, joint)
        return self

    def _build(self, x: Tensor | Source) -> None:
        network = self.encoding_.network()
        with torch.no_grad():
            width = network.eval()(inputs_of(x, np.arange(1))).shape[1]
        self.embedding_ = Embedding(network, width, self.head)
        if self.encoding_.cached:
            self.embedding_.fit_scale(inputs_of(x, np.arange(len(x))))
        elif isinstance(network, nn.Module):
            network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def built(self, name: str) -> Adapter:
        """Return an adapter for these embeddings, not yet fitted."""
        ways = max((self.sizes or Sizes()).ways)
        return adapters.create(name).build(self.embedding_.width, ways)

    def _source(
        self, tasks: Tasks, crowd: PseudoCrowd | None, per_epoch: int, **sizes: Any
    ) -> EpisodeSource:
        return EpisodeSource(tasks, replace(self.sizes or Sizes(), **sizes), crowd, per_epoch)

    def _labellers(self, tasks: Tasks) -> PseudoCrowd | None:
        """Return who labels the episodes: the source's own annotators, or pseudo-annotators."""
        return (self.crowd or PseudoCrowd()) if tasks.annotations is None else None

    def _teach(
        self,
        parts: Split,
        joint: Adapter | None,
        folder: str | Path | None,
        resume: bool,
        progress: Any,
    ) -> None:
        """Train the embedding."""
        settings = replace(self.training or TRAINING, seed=self.seed)
        learner: Any
        shared = {"folder": folder, "resume": resume, "progress": progress}
        if joint is None and self.teach == "classes":
            source = labelled(parts.learned)
            learner = ClassLearner(self.embedding_, source.annotations.n_classes)
            self.history_ = train(learner, source, settings, **shared)
        else:
            clean = joint is None and self.teach == "clean"
            crowd = _FAULTLESS if clean else self._labellers(parts.learned)
            one = {"annotators": (1,)} if clean else {}
            taught = joint or self.built("em-full[steps=1,scale=0.3]" if clean else self.teach)
            learner = EpisodeLearner(self.embedding_, taught, settings.lr)
            self.history_ = train(
                learner,
                self._source(parts.learned, crowd, self.episodes, **one),
                settings,
                valid=self._source(parts.held, crowd, _JUDGED, **one),
                **shared,
            )
        self.embedding_.eval()
        if joint is None and not self.encoding_.cached:
            some = np.random.default_rng(self.seed).permutation(len(parts.learned.x))[:_LOOK]
            seen = embedded(self.embedding_, parts.learned.items(some)).x
            self.embedding_.fit_scale(inputs_of(seen, np.arange(len(some))))

    def _choose(self, parts: Split, made: dict[str, Adapter], joint: list[str]) -> None:
        """Fit the numbers of adapters on what was held out, and keep the best."""
        self.embedding_.eval()
        if joint:
            self.rule_, self.adapter_ = joint[0], made[joint[0]].eval()
            self.validation_: dict[str, tuple[float, float]] = {}
            return
        held = embedded(self.embedding_, parts.held)
        source = self._source(held, self._labellers(held), _JUDGED)
        found = choose(made, source, steps=self.tuning, seed=self.seed)
        self.rule_, self.adapter_ = found.best, found.adapters[found.best]
        self.validation_ = {name: (one.mean, one.half) for name, one in found.scores.items()}

    @torch.no_grad()
    def adapt(
        self,
        X: Any,  # noqa: N803
        annotations: Annotations | ArrayLike,
        *,
        classes: Any = None,
        unlabelled: Any = None,
    ) -> FewShotTask:
        """Learn a new task from few items and what annotators said of them.

        Parameters
        ----------
        X
            Inputs: (item, …).
        annotations
            Who said what, items in the order of the inputs; or a matrix (item, annotator) with -1
            or NaN where nobody spoke.
        classes
            All classes, in order; by default those of the annotations.
        unlabelled
            More inputs of the task that nobody labelled; they sharpen what classes look like.
        """
        check_is_fitted(self, "adapter_")
        annotations = annotations
        if not isinstance(annotations, Annotations):
            annotations = Annotations.from_matrix(annotations, classes=classes)
        elif classes is not None:
            annotations = annotations.recode(classes)
        if annotations.n_classes < 2:
            raise DataError(
                f"{annotations.n_classes} class in the annotations; a task has two or more, name them all"
            )
        x = self.prepare(X)
        if len(x) != annotations.n_items:
            raise DataError(f"{len(x)} inputs, but annotations on {annotations.n_items} items")
        if unlabelled is not None:
            x = torch.cat([x, self.prepare(unlabelled)])
        task, embed = self.adapter_.learn(
            self.embedding_, x, Items.of_annotations(annotations, len(x))
        )
        return FewShotTask(self, annotations, task, embed)

    def prepare(self, given: Any) -> Tensor:
        """Return what the embedding takes, in memory."""
        x = self.encoding_.prepare(as_inputs(given))
        return x if isinstance(x, Tensor) else torch.cat([*chunks(x, _LOOK)])

    def save(self, folder: str | Path) -> None:
        """Write the model to a folder: weights as safetensors, the rest as JSON."""
        check_is_fitted(self, "adapter_")
        save_state(self, folder)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Return a model that `save` has written."""
        return restore(cls, folder)
