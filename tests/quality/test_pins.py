"""Formulas and printed counts against plain loops, where a wrong sign would else go unseen."""

import json
import math
from types import SimpleNamespace

import numpy as np
import pytest

from dissensus import Annotations
from dissensus.aggregation.existence import YES, Existence, Visibility
from dissensus.quality.verdicts import ATTENTIVE, UNKNOWN, VERDICTS, further_labels


def test_the_likelihood_of_clutter_and_objects_is_that_of_plain_loops():
    rng = np.random.default_rng(0)
    label = rng.integers(0, 2, (6, 5))
    label[0] = YES
    label[:, 0] = YES  # every candidate was marked by somebody
    item, annotator = np.divmod(np.arange(30), 5)
    looked = rng.random(30) < 0.8
    looked[annotator == 0] = True
    annotations = Annotations.from_codes(
        item[looked], annotator[looked], label.ravel()[looked], items=6, annotators=5, classes=2
    )
    model = Existence()
    params = Visibility(
        share=np.array([0.3, *np.full(model.levels, 0.7 / model.levels)]),
        found=rng.uniform(0.2, 0.9, (5, model.levels)),
        clutter=np.array([0.1, 0.3, 0.2, 0.25, 0.15]),
        mean=np.full(model.levels, 0.5),
    )
    (part,) = annotations.parts([(0, 6)])
    joint = model.log_joint(part, params)
    for candidate in range(6):
        who = [j for j in range(5) if looked[candidate * 5 + j]]
        marked = [j for j in who if label[candidate, j] == YES]
        began = sum(params.clutter[j] for j in marked) / sum(params.clutter[j] for j in who)
        clutter = began * model.coincidence ** (len(marked) - 1)
        clutter *= (1 - model.coincidence) ** (len(who) - len(marked))
        assert joint[candidate, 0] == pytest.approx(math.log(clutter * params.share[0]))
        for level in range(model.levels):
            probability = params.share[1 + level]
            for j in who:
                seen = params.found[j, level]
                probability *= seen if j in marked else 1 - seen
            assert joint[candidate, 1 + level] == pytest.approx(math.log(probability))


def test_a_verdict_needs_the_labels_that_are_missing_or_as_many_again():
    following = SimpleNamespace(n_labels=np.array([12, 30, 40]), needed=np.array([50, 30, 100]))
    code = np.array([VERDICTS.index(word) for word in (UNKNOWN, UNKNOWN, ATTENTIVE)])
    assert further_labels(SimpleNamespace(following=following), code).tolist() == [38, 30, 0]


def test_of_several_changes_the_last_is_kept_and_taken_back(tmp_path):
    workbench = pytest.importorskip("dissensus.app.workbench")
    from dissensus.app.journal import Journal
    from dissensus.formats import examine

    rows = [(item, who, "cat" if item < "d" else "dog") for item in "abcdef" for who in "xyz"]
    table = {
        name: list(column)
        for name, column in zip(
            ("item", "annotator", "label"), zip(*rows, strict=True), strict=True
        )
    }
    journal = Journal(tmp_path / "state")
    journal.add("ann", "change", value=json.dumps({"left_out": ["x"]}))
    journal.add("ann", "change", value=json.dumps({"left_out": ["y"]}))
    bench = workbench.Workbench(lambda: examine(table), journal, name="s", method="majority")
    assert bench.present.fit.annotations.annotators.tolist() == ["x", "z"]
    bench.undo("ann", bench.decisions.last_change.number)
    bench.settle()
    assert bench.present.fit.annotations.annotators.tolist() == ["y", "z"]
    bench.close()
