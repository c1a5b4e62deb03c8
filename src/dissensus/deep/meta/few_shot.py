"""Few-shot learning from noisy annotators, as an estimator.

    model = FewShotCrowd().fit(X, y)                    # source tasks with clean labels
    task = model.adapt(X_support, annotations)          # a new task: few items, noisy annotators
    task.predict_proba(X_new)

`fit` trains an embedding on the source classes, tunes adapters on classes that it held out (on all,
if the embedding is not trained), and keeps the adapter that is most accurate there. `adapt` takes
no gradient steps.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, NoReturn, Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted  # type: ignore[import-untyped]
from torch import Tensor, nn

from ...answers.annotations import Annotations
from ...base.progress import share_of_time
from ...base.storage import State
from ...errors import DataError, OptionError
from ...method import Progress
from ...params import Settings
from ...registry import adapters
from ..nn.batches import Source, chunks, inputs_of
from ..nn.devices import torch_seed
from ..nn.encoding import encoding_for
from ..nn.estimator import Estimator, class_codes, labels_of
from ..nn.inputs import digests, empty_inputs
from ..nn.runs import load_network, network_state
from ..nn.settings import Training
from ..nn.training import History, train
from .base import Adapter, ClassLearner, Embedding, EpisodeLearner, Head
from .episodes import EpisodeSource, Items, Sizes
from .pseudo_annotators import PseudoAnnotators
from .target import FewShotTask
from .tasks import Tasks, as_tasks, in_memory, labelled
from .tuning import Split, choose, embedded, split, without_split

# What `auto` chooses from.
AUTO = ("em-full", "em-one-coin", "em-one-coin[starts=everyone]", "em-kinds[starts=everyone]")
TRAINING = Training(epochs=40, batch=32, lr=2e-3, scheduler="cosine", held_out=0.0)
_PERFECT = PseudoAnnotators(spammers=(0.0, 0.0), accuracy=(1.0, 1.0))
_CHUNK = 4096  # items by which embeddings are standardized, and that are prepared at a time
_TRAINING = 0.7  # of the time; the rest is for tuning adapters
_VALIDATION = 640  # episodes


class FewShotCrowd(Estimator):
    """A classifier of new tasks from few items and noisy annotators.

    Parameters
    ----------
    adapter
        Adapter as the registry writes it: `name[setting=value,…]`; several with semicolons between,
        or `auto`: the most accurate of them on the source.
    encoder
        Encoder by name or as a network; `auto` takes features as they are and chooses one for texts
        and images.
    head
        What is trained on top of a frozen encoder: nothing, weights of its features, or a linear
        map.
    objective
        How the embedding is trained: on `clean` supports, as a classifier of all `classes`, or by
        an adapter, as the registry writes it, on supports labelled by pseudo-annotators.
    sizes
        Sizes of the episodes.
    annotators
        Distribution of the pseudo-annotators; best like that of future annotators.
    training
        Training of the embedding; the batch size is in episodes.
    episodes
        Number of episodes in an epoch.
    rotations
        With 4, images rotated by 90, 180 and 270 degrees form new classes.
    held_out
        Share of tasks, classes or items that the embedding is not trained on.
    tuning
        Number of batches by which an adapter is tuned.
    seed
        Random seed.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(np.arange(12), 10)
    >>> x = 3 * rng.normal(size=(12, 8))[y] + rng.normal(size=(120, 8))
    >>> model = FewShotCrowd("em-full", sizes=Sizes(ways=(3,), shots=(3,)), tuning=20).fit(x, y)
    >>> annotations = [[0, 0, 1], [0, 0, 2], [1, 1, 0], [1, 1, 1]]  # (item, annotator)
    >>> new = np.repeat(5 * np.eye(2, 8), 2, axis=0)
    >>> model.adapt(new, annotations).predict(new).tolist()
    [0, 0, 1, 1]
    """

    nested: ClassVar[dict[str, Settings]] = {
        "sizes": Sizes(),
        "annotators": PseudoAnnotators(),
        "training": TRAINING,
    }

    def __init__(
        self,
        adapter: str = "auto",
        *,
        encoder: str | nn.Module = "auto",
        head: Head = "none",
        objective: str = "clean",
        sizes: Sizes | None = None,
        annotators: PseudoAnnotators | None = None,
        training: Training | None = None,
        episodes: int = 3200,
        rotations: int = 1,
        held_out: float = 0.2,
        tuning: int = 300,
        seed: int = 0,
    ) -> None:
        self.adapter = adapter
        self.encoder = encoder
        self.head = head
        self.objective = objective
        self.sizes = sizes
        self.annotators = annotators
        self.training = training
        self.episodes = episodes
        self.rotations = rotations
        self.held_out = held_out
        self.tuning = tuning
        self.seed = seed

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        task: ArrayLike | None = None,
        annotations: Annotations | None = None,
        folder: str | Path | None = None,
        resume: bool = False,
        progress: Progress | None = None,
    ) -> Self:
        """Fit to source tasks.

        Parameters
        ----------
        X
            Inputs: (item, …).
        y
            Their classes.
        task
            Task of every item; episodes stay within one. By default all belong to one.
        annotations
            Annotations of the source, with the same order of items and names of classes: they
            replace the pseudo-annotators.
        folder, resume
            For checkpoints of the training, and whether to resume from them.
        progress
            Called with steps done, steps in total and a message.
        """
        inputs = self._inputs(X, fitting=True)
        _, self.classes_ = class_codes(y)
        self.encoding_ = encoding_for(self.encoder, inputs, self.seed)
        x = in_memory(self.encoding_.prepare(inputs, progress))
        tasks = as_tasks(x, y, task, rotations=self.rotations, annotations=annotations)
        if len(self.classes_) < 2:
            raise DataError("1 class in y; source tasks have two or more")
        names = [name.strip() for name in self.adapter.split(";")]
        names = list(AUTO) if names == ["auto"] else names
        joint = [name for name in names if adapters.create(name).joint]
        if joint and len(names) > 1:
            raise OptionError(f"{joint[0]} is trained with the embedding; name no other adapter")
        with torch_seed(self.seed):
            self._build_embedding(x)
            candidates = {name: self.build_adapter(name) for name in names}
            trained = bool(joint) or any(p.requires_grad for p in self.embedding_.parameters())
            parts = without_split(tasks)
            if trained:
                parts = split(tasks, self.held_out, self._nested("sizes"), self.seed)
            self.split_ = parts.description
            self.history_: History | None = None
            if trained:
                adapter = candidates[joint[0]] if joint else None
                with share_of_time(1.0 if joint else _TRAINING):
                    about = self._about(joint)
                    data = None if folder is None else digests({"inputs": inputs})
                    self._train(
                        parts,
                        adapter,
                        folder=folder,
                        resume=resume,
                        progress=progress,
                        about=about,
                        data=data,
                    )
            self.validation_: dict[str, tuple[float, float]] = {}
            name, model = next(iter(candidates.items()))
            if not joint:
                name, model = self._choose(parts.held_out, candidates)
            self.embedding_.eval()
            self.adapter_, self.model_ = name, model.eval()
        return self

    def _build_embedding(self, x: Tensor | Source) -> None:
        network = self.encoding_.network()
        with torch.no_grad():
            width = network.eval()(inputs_of(x, np.arange(1))).shape[1]
        self.embedding_ = Embedding(network, width, self.head)
        if self.encoding_.cached:
            self.embedding_.fit_scale(inputs_of(x, np.arange(len(x))))
        else:
            network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def _about(self, joint: list[str]) -> str:
        objective = joint[0] if joint else self.objective
        return f"{objective} on {self.encoding_.name} ({self.episodes} episodes, head {self.head})"

    def build_adapter(self, name: str) -> Adapter:
        """Return an untrained adapter for these embeddings."""
        ways = max(self._nested("sizes").ways)
        return adapters.create(name).build(self.embedding_.width, ways)

    def _annotators(self, tasks: Tasks) -> PseudoAnnotators | None:
        """Return the pseudo-annotators; None where the source has annotations of its own."""
        return self._nested("annotators") if tasks.annotations is None else None

    def _train(self, parts: Split, joint: Adapter | None, **run: Any) -> None:
        """Train the embedding."""
        settings = self._training()
        learner: Any
        if joint is None and self.objective == "classes":
            source = labelled(parts.train)
            learner = ClassLearner(self.embedding_, source.annotations.n_classes)
            self.history_ = train(learner, source, settings, **run)
        else:
            clean = joint is None and self.objective == "clean"
            annotators = _PERFECT if clean else self._annotators(parts.train)
            sizes = replace(self._nested("sizes"), uneven=0.0)
            sizes = replace(sizes, annotators=(1,)) if clean else sizes
            name = "em-full[steps=1,scale=0.3]" if clean else self.objective
            learner = EpisodeLearner(
                self.embedding_, joint or self.build_adapter(name), settings.lr
            )
            self.history_ = train(
                learner,
                EpisodeSource(parts.train, sizes, annotators, self.episodes),
                settings,
                valid=EpisodeSource(parts.held_out, sizes, annotators, _VALIDATION),
                **run,
            )
        if joint is None and not self.encoding_.cached:
            order = np.random.default_rng(self.seed).permutation(len(parts.train.x))
            sample = embedded(self.embedding_, parts.train.items(order[:_CHUNK])).x
            self.embedding_.fit_scale(inputs_of(sample, np.arange(len(sample))))

    def _choose(self, held_out: Tasks, candidates: dict[str, Adapter]) -> tuple[str, Adapter]:
        """Tune adapters on the held-out tasks, and return the best."""
        tasks = embedded(self.embedding_, held_out)
        sizes = self._nested("sizes")
        source = EpisodeSource(tasks, sizes, self._annotators(tasks), _VALIDATION)
        choice = choose(candidates, source, steps=self.tuning, seed=self.seed)
        self.validation_ = {name: (s.mean, s.half) for name, s in choice.scores.items()}
        return choice.best, choice.adapters[choice.best]

    @torch.no_grad()
    def adapt(
        self,
        X: Any,
        annotations: Annotations | ArrayLike,
        *,
        classes: Any = None,
        unlabelled: Any = None,
    ) -> FewShotTask:
        """Adapt to a new task with few items.

        Parameters
        ----------
        X
            Inputs: (item, …).
        annotations
            Annotations, items in the order of the inputs; or a matrix (item, annotator) with -1 or
            NaN for unlabelled.
        classes
            All classes, in order; by default those of the annotations.
        unlabelled
            Further unlabelled inputs of the task; they sharpen the class means.
        """
        check_is_fitted(self)
        annotations, names = labels_of(annotations, classes)
        if annotations.n_classes < 2:
            raise DataError(
                f"{annotations.n_classes} class in the annotations; a task has two or more, "
                "name them all"
            )
        x = self.prepare(X)
        annotations.check_inputs(x)
        if unlabelled is not None:
            x = torch.cat([x, self.prepare(unlabelled)])
        items = Items.of_annotations(annotations, len(x))
        task, embed = self.model_.adapt_one(self.embedding_, x, items)
        return FewShotTask(
            model=self, annotations=annotations, classes=names, task=task, embed=embed, x=x
        )

    @property
    def predict(self) -> NoReturn:
        """Not here: classes are those of a task, which `adapt` returns."""
        raise AttributeError("adapt to a task first: model.adapt(X, annotations).predict(X)")

    predict_proba = predict

    def prepare(self, X: Any) -> Tensor:
        """Return what the embedding takes, in memory."""
        inputs = self._inputs(X)
        x = self.encoding_.prepare(inputs)
        return x if isinstance(x, Tensor) else torch.cat([*chunks(x, _CHUNK)])

    def _state(self) -> State:
        notes = {
            "adapter": self.adapter_,
            "width": self.embedding_.width,
            "held_out": self.split_,
            "validation": self.validation_,
        }
        states = network_state(self.embedding_), network_state(self.model_)
        return State.join(notes, embedding=states[0], model=states[1])

    def _restore(self, state: State) -> None:
        notes = state.notes
        self.adapter_, self.split_, self.history_ = notes["adapter"], notes["held_out"], None
        self.validation_ = {name: tuple(pair) for name, pair in notes["validation"].items()}
        inputs = empty_inputs(self.kind_, self.shape_)
        self.encoding_ = encoding_for(self.encoder, inputs, self.seed)
        self.embedding_ = Embedding(self.encoding_.network(), notes["width"], self.head)
        model = self.build_adapter(self.adapter_)
        for name, part in {"embedding": self.embedding_, "model": model}.items():
            load_network(part, state.part(name))
        self.model_ = model
