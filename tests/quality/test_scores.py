import numpy as np
import pytest

from dissensus import DataError, MethodError, OptionError
from dissensus.quality.scores import SCORES, ScoreContext, find_score, score

from ..annotator_crowds import crowd


@pytest.mark.parametrize("one", SCORES, ids=lambda one: one.name)
def test_every_score_has_a_value_for_every_name(one):
    annotations = crowd(n_items=40).annotations
    posterior = np.full((annotations.n_items, 3), 1 / 3)
    context = ScoreContext(annotations, probabilities=posterior)
    if one.trains:
        pytest.importorskip("torch", reason="networks need torch")
        gold = dict.fromkeys(annotations.items.tolist(), "0")
        context = ScoreContext(annotations, inputs=posterior, gold=gold, network={"epochs": 1})
    found = score(context, one.name.upper().replace("_", "-"))
    size = {"annotator": annotations.n_annotators, "item": annotations.n_items, "crowd": 1}[one.of]
    assert found.values.shape == (size,)
    assert sorted(found.order.tolist()) == list(range(size))
    for alias in one.aliases:
        assert find_score(alias) is one


def test_names_of_scores_are_all_different():
    names = [name for one in SCORES for name in (one.name, *one.aliases)]
    assert len(set(names)) == len(names)
    assert len({one.file for one in SCORES if one.file}) == sum(
        one.file is not None for one in SCORES
    )


def test_impossible_scores_are_refused_with_a_remedy():
    with pytest.raises(MethodError, match="did you mean spam_score"):
        find_score("spamscores")
    for name in (one.name for one in SCORES if one.trains):
        with pytest.raises(OptionError, match="inputs="):
            score(crowd(n_items=20).annotations, name.upper())
    with pytest.raises(OptionError, match="probabilities="):
        score(crowd(n_items=20).annotations, "crowdlab")
    with pytest.raises(DataError, match="confusion matrices"):
        score(ScoreContext(crowd(n_items=20).annotations, matrices=np.ones((1, 3, 3))), "trace")
