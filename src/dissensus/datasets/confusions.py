"""Communities: annotators of one community make similar mistakes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..params import Count, Positive
from .independent_confusion import uniform_matrices
from .strategy import CrowdParameters, Design, Strategy


@dataclass(frozen=True, kw_only=True)
class Community(Strategy):
    """Annotators whose confusion matrices vary around that of their community.

    Communities: annotators of one community make similar mistakes.

    Every community has a confusion matrix, drawn as in `independent-confusion`. Every annotator
    belongs to one, any of them with the same probability. Row t of the annotator's own matrix is
    drawn from a Dirichlet(strength · row t of the community's matrix).

        confusion[a, t, ·] ~ Dirichlet(strength · matrix[community of a, t, ·])

    When it fails: Communities share matrices, not errors on the same items, so answers stay
    independent given the truth.

        M. Venanzi, J. Guiver, G. Kazai, P. Kohli, M. Shokouhi. Community-based Bayesian aggregation
        models for crowdsourcing. Proceedings of WWW, 2014. doi:10.1145/2566486.2567989

    Parameters
    ----------
    n_communities
        How many communities there are.
    strength
        How close annotators stay to their community.

    Examples
    --------
    >>> from dissensus import simulate
    >>> drawn = simulate(Community(n_communities=2), n_annotators=6, seed=1)
    >>> drawn.extras["community"].tolist()
    [1, 0, 1, 0, 0, 1]
    """

    n_communities: Count = 3
    strength: Positive = 10.0

    def crowd(self, design: Design, rng: np.random.Generator) -> CrowdParameters:
        centre = uniform_matrices(self.n_communities, design.n_classes, rng)
        community = rng.choice(self.n_communities, size=design.n_annotators)
        expected = centre[community]  # (annotator, true class, given class)
        amount = rng.standard_gamma(self.strength * expected)
        total = amount.sum(axis=2, keepdims=True)
        # A very small strength can leave nothing to divide; the expectation then stands in.
        confusion = np.where(total > 0, amount / np.where(total > 0, total, 1), expected)
        extras = {"community": community, "community_matrices": centre}
        return CrowdParameters(design.n_classes, confusion, extras)
