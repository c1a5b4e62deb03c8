"""TendencyClassifier: a scikit-learn estimator of what each annotator would say.

    TendencyClassifier().fit(texts, annotations).predict_annotator_proba(new_texts)

`predict` and `predict_proba` are the consensus of the predicted annotators.

Several questions about the same items are learned together, and asked one by one:

    model = TendencyClassifier("query").fit(photos, {"safe": annotations, "lively": others})
    model.question("safe").predict_annotator_proba(new_photos)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin  # type: ignore[import-untyped]
from sklearn.utils.validation import check_is_fitted  # type: ignore[import-untyped]

from ...answers.annotations import Annotations
from ...base.arrays import Array, Floats
from ...base.names import Names, as_names, indices_of, text, union
from ...base.storage import State
from ...errors import DataError, OptionError
from ...method import Progress
from ...registry import tendencies
from ..nn import Estimator, Features
from ..nn.estimator import is_one_label, predicted_columns, restored_classes, stored_classes
from ..nn.inputs import digests
from .base import FitOptions, Metadata, Table, Tendency, TendencyMethod, pieces, silent
from .baselines import label_marginals
from .published import Verdict, jury
from .qumatl import QueryTendency, QuestionTendency
from .scores import TendencyScores, score, vote

Voting = Literal["hard", "soft"]
_FREE = ("epochs", "patience", "fits")  # may differ when a training is resumed


class TendencyClassifier(ClassifierMixin, Estimator):  # type: ignore[misc]
    """A model of what every annotator would say.

    Parameters
    ----------
    method
        Specification of the method: `name[setting=value,…]`.
    encoder
        Name of the encoder that turns inputs into features; `auto` takes numbers as they are and
        chooses one for texts and images. It is frozen.
    classes
        All classes, in order; by default those of the annotations.
    seed
        Random seed.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> x = random.normal(size=(200, 2))
    >>> annotations = np.stack([x[:, 0] > 0, x[:, 1] > 0], axis=1).astype(int)  # (item, annotator)
    >>> model = TendencyClassifier("linear").fit(x, annotations)
    >>> model.predict_annotators([[2.0, -2.0], [-2.0, 2.0]]).tolist()
    [[1, 0], [0, 1]]
    """

    def __init__(
        self, method: str = "auto", *, encoder: str = "auto", classes: Any = None, seed: int = 0
    ) -> None:
        self.method = method
        self.encoder = encoder
        self.classes = classes
        self.seed = seed

    def fit(
        self,
        X: Any,
        y: Annotations | ArrayLike | Mapping[str, Annotations | ArrayLike],
        *,
        metadata: Table | None = None,
        folder: str | Path | None = None,
        resume: bool = False,
        progress: Progress | None = None,
    ) -> Self:
        """Learn from inputs and annotations.

        Parameters
        ----------
        X
            Inputs, one per item: texts, paths of images, an array, a sparse matrix, or features.
        y
            Annotations, a matrix (item, annotator) with -1 for unlabelled, or one label per item;
            items in the order of the inputs. Several questions are given by name, for methods
            with queries (query, qumatl).
        metadata
            Metadata of annotators: name → column → value.
        folder, resume
            Folder of checkpoints, and whether to resume from them.
        progress
            Called with steps done, steps in all, and a message.
        """
        method = tendencies.create(self.method)
        inputs = X if isinstance(X, Features) else self._inputs(X, fitting=True)
        self.question_classes_: dict[str, Array] = {}
        if isinstance(y, Mapping):
            questions = self._questions(y, inputs)
        else:
            questions = [self._annotations(y, inputs)]
        self.tokens_ = method.needs_tokens(questions[0])
        features = self._features(inputs, fitting=True, progress=progress, tokens=self.tokens_)
        self.metadata_ = None if metadata is None else Metadata.fit(metadata)
        self.table_: Table = {} if metadata is None else metadata
        encoded = None
        if self.metadata_ is not None:
            encoded = self.metadata_.features(self.table_, self.annotators_.tolist())
        raw = inputs.vectors if isinstance(inputs, Features) else inputs
        context = FitOptions(
            about=self._about(method),
            data=None if folder is None else digests({"inputs": raw, "metadata": encoded}),
            metadata=encoded,
            seed=self.seed,
            folder=None if folder is None else Path(folder),
            resume=resume,
            progress=progress or silent,
        )
        marginals = [label_marginals(labels) for labels in questions]  # each (annotator, class)
        self.model_: Tendency
        if self.question_classes_:
            self.question_marginals_ = marginals
            self.model_ = method.fit_questions(features, questions, context)
        else:
            self.label_marginals_ = marginals[0]
            self.model_ = method.fit(features, questions[0], context)
        return self

    def _about(self, method: TendencyMethod) -> str:
        """Return what is trained, without what a resumed training may change."""
        free = {f.name: f.default for f in fields(method) if f.name in _FREE}
        encoder = self.encoder if isinstance(self.encoder, str) else type(self.encoder).__name__
        return f"{tendencies.describe(replace(method, **free))} on {encoder}"

    def _questions(
        self, questions: Mapping[str, Annotations | ArrayLike], inputs: Any
    ) -> list[Annotations]:
        """Return the annotations of every question, all by the same annotators."""
        if not questions:
            raise DataError("no questions to learn from")
        answers = []
        for name, labels in questions.items():
            annotations = self._annotations(labels, inputs)
            self.question_classes_[text(name)] = self.classes_
            answers.append(annotations)
        for labels in answers:
            self.annotators_ = union(labels.annotators, self.annotators_)
        names = [as_names(classes) for classes in self.question_classes_.values()]
        self.classes_ = as_names(
            [*dict.fromkeys(name for classes in names for name in classes.tolist())]
        )
        return [
            labels.with_codes(
                annotator=indices_of(labels.annotators, self.annotators_)[labels.annotator],
                annotators=self.annotators_,
            )
            for labels in answers
        ]

    @property
    def questions_(self) -> list[str]:
        """The questions it was fitted to, if there are several."""
        check_is_fitted(self)
        return [*getattr(self, "question_classes_", ())]

    @property
    def notes_(self) -> list[str]:
        """What there is to say about the fit."""
        remark = getattr(self.model_, "remark", "")
        return [remark] if remark else []

    @property
    def parts_(self) -> dict[str, float]:
        """The members of a mixture and their weights; empty of other methods."""
        members, weight = (getattr(self.model_, name, ()) for name in ("members", "weight"))
        return {name: float(share) for name, share in zip(members, weight, strict=True)}

    def asked(self, question: str | None) -> Self:
        """Return the estimator of a question, if it was fitted to several."""
        if not self.questions_:
            return self
        if question is None:
            remedy = f"{{}} chooses one of {', '.join(self.questions_)}"
            raise OptionError(remedy=remedy, question=...)
        return self.question(question)

    def question(self, name: str) -> Self:
        """Return the estimator of one of the questions; it shares the fitted model."""
        check_is_fitted(self)
        if name not in self.questions_:
            among = ", ".join(self.questions_) or "one question only"
            raise OptionError(f"no question {name!r}; there is {among}")
        number, estimator = self.questions_.index(name), copy(self)
        assert isinstance(self.model_, QueryTendency)
        estimator.model_ = QuestionTendency(self.model_, number)
        estimator.classes_ = self.question_classes_[name]
        estimator.label_marginals_ = self.question_marginals_[number]
        estimator.question_classes_ = {}
        return estimator

    def _fits(self, shape: tuple[int, ...]) -> bool:
        if len(shape) == 2:  # tokens: texts may be longer or shorter
            return len(self.shape_) == 2 and shape[1] == self.shape_[1]
        return super()._fits(shape)

    def _fitted_features(self, X: Any, progress: Progress | None = None) -> Features:
        check_is_fitted(self)
        if self.questions_:
            raise DataError(
                f"fitted to several questions; choose one by question({self.questions_[0]!r})"
            )
        return self._features(X, progress=progress, tokens=self.tokens_)

    def predict_annotator_proba(
        self, X: Any, annotators: ArrayLike | None = None, *, progress: Progress | None = None
    ) -> Floats:
        """Return label probabilities of annotators, all by default: (item, annotator, class)."""
        codes = self.annotator_codes(annotators)
        return np.exp(self.model_.log_proba(self._fitted_features(X, progress), codes))

    def predict_annotators(self, X: Any, annotators: ArrayLike | None = None) -> Array:
        """Return the most probable label of annotators, all by default: (item, annotator)."""
        label = self.predict_annotator_proba(X, annotators).argmax(axis=2)
        return self.classes_[label]

    def prediction_columns(
        self,
        X: Any,
        items: Names,
        annotators: Sequence[str] | None = None,
        *,
        progress: Progress | None = None,
    ) -> dict[str, Array]:
        """Return predictions with a row for every item and annotator, all by default."""
        probability = self.predict_annotator_proba(X, annotators, progress=progress)
        names = self.annotators_ if annotators is None else as_names(annotators)
        pairs = {"item": np.repeat(items, len(names)), "annotator": np.tile(names, len(items))}
        return pairs | predicted_columns(self.classes_, probability)

    def predict_proba(self, X: Any, voting: Voting = "hard") -> Floats:
        """Return the consensus of all annotators: (item, class).

        Parameters
        ----------
        X
            Inputs.
        voting
            `hard`: the share of annotators whose most probable label is the class; `soft`: the mean
            of their probabilities.
        """
        features = self._fitted_features(X)
        n_classes = len(self.classes_)
        out = np.empty((len(features), n_classes))
        for items in pieces(len(features), len(self.annotators_) * n_classes):
            out[items] = _consensus(self.model_.log_proba(features.take(items)), voting)
        return out

    def predict(self, X: Any, voting: Voting = "hard") -> Array:
        """Return the consensus label of all annotators; ties are broken by the random seed."""
        label = vote(self.predict_proba(X, voting), self.seed)
        return self.classes_[label]

    def predict_jury(
        self, X: Any, column: str, quota: Mapping[str, float], *, size: int = 12, juries: int = 100
    ) -> Verdict:
        """Return the verdict of juries, with members by quota of a metadata column."""
        check_is_fitted(self)
        values = [self.table_.get(name, {}).get(column) for name in self.annotators_.tolist()]
        if all(value is None for value in values):
            raise DataError(f"no metadata {column!r} of annotators; give them to fit")
        groups = [None if value is None else text(value) for value in values]
        features = self._fitted_features(X)
        return jury(self.model_, features, groups, quota, size=size, juries=juries, seed=self.seed)

    def evaluate(self, X: Any, annotations: Annotations, **options: Any) -> TendencyScores:
        """Return scores of predictions on held-out items.

        Annotators that the model does not know are ignored; options are those of `score`.
        """
        annotations, log_probability = self.predict_annotations(X, annotations)
        return score(annotations, log_probability, **{"seed": self.seed, **options})

    def score(
        self, X: Any, y: Annotations | ArrayLike, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return the accuracy of the consensus; of annotations, the mean log-likelihood."""
        if is_one_label(y):
            return self._accuracy(X, y, sample_weight)
        annotations, log_probability = self.predict_annotations(X, y)
        return float(log_probability[np.arange(len(annotations)), annotations.label].mean())

    def predict_annotations(
        self, X: Any, annotations: Annotations | ArrayLike
    ) -> tuple[Annotations, Floats]:
        """Return annotations by known annotators, and log-probabilities of their labels.

        The annotations have the codes of this model; the shape is (annotation, class).
        """
        check_is_fitted(self)
        annotations = self._recoded(annotations)
        codes = indices_of(annotations.annotators, self.annotators_)
        is_known = codes[annotations.annotator] >= 0
        if not is_known.any():
            raise DataError("none of these annotators gave labels to learn from")
        annotations = annotations.keep(is_known)
        annotations = annotations.with_codes(
            annotator=codes[annotations.annotator], annotators=self.annotators_
        )
        features = self._fitted_features(X)
        annotations.check_inputs(features)
        item, annotator = annotations.item.astype(np.int64), annotations.annotator.astype(np.int64)
        return annotations, self.model_.log_probability(features, item, annotator)

    def add_annotator(
        self, X: Any, labels: ArrayLike, name: str, metadata: Mapping[str, Any] | None = None
    ) -> Self:
        """Add an annotator from a few labels; predictions for the others do not change.

        Parameters
        ----------
        X
            Inputs that they labelled; may be empty if metadata are given.
        labels
            Their label of each.
        name
            Their name.
        metadata
            Their metadata: column → value.
        """
        check_is_fitted(self)
        name = text(name)
        if name in set(self.annotators_.tolist()):
            raise DataError(f"annotator {name!r} is known already; fit again with their labels")
        names = as_names(np.atleast_1d(np.asarray(labels)) if np.size(labels) else [])
        codes = indices_of(names, as_names(self.classes_))
        if (codes < 0).any():
            raise DataError(f"label {names[codes < 0][0]!r} is not among the classes")
        features = (
            self._fitted_features(X) if len(codes) else Features(np.zeros((0, 1), np.float32))
        )
        if len(features) != len(codes):
            raise DataError(f"{len(features)} inputs, but {len(codes)} labels")
        encoded = None
        if metadata is not None:
            if self.metadata_ is None:
                raise DataError("metadata of the new annotator, but none were given to fit")
            encoded = self.metadata_.features({"": metadata}, [""])[0]
            self.table_ = {**self.table_, name: metadata}
        options = FitOptions(metadata=encoded, seed=self.seed)
        self.model_ = self.model_.with_annotator(features, codes, options)
        self.annotators_ = as_names([*self.annotators_.tolist(), name])
        overall = 2 * self.label_marginals_.mean(axis=0)
        counts = np.bincount(codes, minlength=len(self.classes_)) + overall
        self.label_marginals_ = np.vstack([self.label_marginals_, counts / counts.sum()])
        return self

    def _state(self) -> State:
        state = State.join(model=self.model_.state())
        notes = {
            "metadata": None if self.metadata_ is None else vars(self.metadata_),
            "table": {
                name: {column: text(value) for column, value in row.items()}
                for name, row in self.table_.items()
            },
            "tokens": self.tokens_,
        }
        if not self.questions_:
            marginals = {"label_marginals": self.label_marginals_}
            return State(state.notes | notes, state.arrays | marginals)
        stored = {name: stored_classes(classes) for name, classes in self.question_classes_.items()}
        marginals = {
            f"label_marginals {i}": marginals
            for i, marginals in enumerate(self.question_marginals_)
        }
        return State(state.notes | notes | {"questions": stored}, state.arrays | marginals)

    def _restore(self, state: State) -> None:
        encoding = state.notes["metadata"]
        if encoding is not None:
            numbers = {name: (mean, std) for name, (mean, std) in encoding["numbers"].items()}
            encoding = Metadata(numbers, encoding["groups"])
        self.metadata_, self.table_ = encoding, state.notes["table"]
        self.tokens_ = state.notes["tokens"]
        questions = state.notes.get("questions", {})
        if questions:
            self.question_classes_ = {
                name: restored_classes(classes) for name, classes in questions.items()
            }
            self.question_marginals_ = [
                state.arrays[f"label_marginals {number}"] for number in range(len(questions))
            ]
        else:
            self.label_marginals_ = state.arrays["label_marginals"]
        self.model_ = tendencies.create(self.method).restore(state.part("model"))


def _consensus(log: Floats, voting: str) -> Floats:
    """Return the consensus of annotators' log-probabilities (item, annotator, class)."""
    if voting == "hard":
        return np.eye(log.shape[2])[log.argmax(axis=2)].mean(axis=1)
    if voting == "soft":
        return np.exp(log).mean(axis=1)
    raise OptionError(f"no voting {voting!r}; there are hard and soft")
