"""Sets: options that go together, and annotators who miss or add options."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..base.names import numbered
from ..answers.sets import Sets as SetAnswers
from ..params import Count, Positive, Probability
from .answer_strategy import AnswerStrategy, Assigned, Drawn


@dataclass(frozen=True, kw_only=True)
class Sets(AnswerStrategy):
    """Annotators who choose any number of options.

    Sets: options that go together, and annotators who miss or add options.

        P(a chooses o) = sensitivity[a] if o is true of the item else 1 - specificity[a]

    When it fails: Annotators miss options independently; real ones stop after the first one or two.

    Parameters
    ----------
    options
        Number of options.
    profiles
        Number of groups of options that go together; every item has one of them.
    inside, outside
        Probability of an option in the profile of an item, and of any other.
    yes, no
        The Beta distribution of sensitivities; specificities have three times `yes`.

    Examples
    --------
    >>> from dissensus import simulate
    >>> simulate("sets", n_items=10, n_annotators=3).answers
    <sets: 10 items, 3 annotators, 10 options, ... chosen on average...>
    """

    options: Count = 10
    profiles: Count = 5
    inside: Probability = 0.9
    outside: Probability = 0.05
    yes: Positive = 6.0
    no: Positive = 4.0

    def draw(self, asked: Assigned, rng: np.random.Generator) -> Drawn:
        member = rng.random((self.profiles, self.options)) < 2.5 / self.options
        profile = rng.integers(self.profiles, size=asked.n_items)
        likely = np.where(member[profile], self.inside, self.outside)
        true = rng.random((asked.n_items, self.options)) < likely
        sensitivity = rng.beta(self.yes, self.no, asked.n_annotators)
        specificity = rng.beta(3 * self.yes, self.no / 2, asked.n_annotators)
        shape = (len(asked.item), self.options)
        yes = sensitivity[asked.annotator][:, None], 1 - specificity[asked.annotator][:, None]
        chosen = rng.random(shape) < np.where(true[asked.item], *yes)
        names, options = asked.names, numbered(self.options)
        answers = SetAnswers.from_values(
            names["items"][asked.item],
            names["annotators"][asked.annotator],
            [options[row].tolist() for row in chosen],
            options=options,
            **names,
        )
        truth = SetAnswers.from_values(
            names["items"], ["truth"] * asked.n_items, [options[row].tolist() for row in true],
            options=options,
        )  # fmt: skip
        return Drawn(answers, truth, {"sensitivity": sensitivity, "specificity": specificity})
