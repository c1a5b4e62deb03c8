"""MACE: annotators either know the answer or guess with a response bias."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .strategy import CrowdParameters, Design, Strategy


@dataclass(frozen=True, kw_only=True)
class Mace(Strategy):
    """Annotators who know, or guess with a response bias.

    MACE: annotators either know the answer or guess with a response bias.

    Annotator a gives the true class with probability trust[a]. Otherwise the label is drawn from
    their response bias, a distribution over the classes that does not depend on the item. Trust is
    drawn from a Beta(0.5, 0.5), which makes many experts and many spammers and few in between,
    response biases uniformly from the simplex.

        P(label g of a | t) = trust[a] · 1(g = t) + (1 - trust[a]) · bias[a, g]

    When it fails: No honest errors: who knows is always right, so votes of the trusted need no more
    than a few.

        D. Hovy, T. Berg-Kirkpatrick, A. Vaswani, E. Hovy. Learning whom to trust with MACE.
        Proceedings of NAACL-HLT, 2013.

    Examples
    --------
    >>> from dissensus import simulate
    >>> drawn = simulate("mace", n_annotators=2, n_classes=3)
    >>> {name: values.shape for name, values in drawn.extras.items()}
    {'trust': (2,), 'response_bias': (2, 3)}
    """

    def crowd(self, design: Design, rng: np.random.Generator) -> CrowdParameters:
        trust = rng.beta(0.5, 0.5, size=design.n_annotators)
        response_bias = rng.dirichlet(np.ones(design.n_classes), size=design.n_annotators)
        knows = trust[:, None, None]
        confusion = knows * np.eye(design.n_classes) + (1 - knows) * response_bias[:, None, :]
        return CrowdParameters(
            design.n_classes, confusion, {"trust": trust, "response_bias": response_bias}
        )
