from dataclasses import dataclass
from importlib.util import find_spec
from itertools import chain
from typing import Literal

import pytest

from dissensus import MethodError, aggregators, estimators, policies, simulators
from dissensus.aggregation import DawidSkene, Majority
from dissensus.cli.methods import catalogue, entries
from dissensus.params import Count, Positive, Probability, Settings, describe_fields
from dissensus.registry import (
    adapters,
    answer_simulators,
    learners,
    methods,
    recoverers,
    split_spec,
    tendencies,
)


@pytest.mark.parametrize(
    ("spec", "method"),
    [
        ("MV", Majority()),
        ("majority_voting", Majority()),
        ("Majority-Voting[ties=first]", Majority(ties="first")),
        ("dawid_skene", DawidSkene()),
        ("DS", DawidSkene(smoothing=0, tol=0, max_iter=50)),
        ("ds[max_iter=7]", DawidSkene(smoothing=0, tol=0, max_iter=7)),
        (" dawid-skene [ smoothing = 1e-4 , tol=0 ] ", DawidSkene(smoothing=1e-4, tol=0)),
        ("dawid-skene[]", DawidSkene()),
    ],
)
def test_names_are_matched_as_people_write_them(spec, method):
    assert aggregators.create(spec) == method


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("dawid", "no method 'dawid'; did you mean dawid-skene?"),
        ("qqq", "no method 'qqq'; there are auto, majority"),
        ("dawid-skene[smoothing=-1]", "smoothing = -1, but it must be at least 0"),
        ("dawid-skene[smoothing=nan]", "smoothing = 'nan', but it must be at least 0"),
        ("dawid-skene[smoothing=1e999]", "smoothing = inf, but"),
        ("dawid-skene[max_iter=1.5]", "max_iter = 1.5, but it must be a whole number, at least 1"),
        ("dawid-skene[max_iter=True]", "max_iter = True, but"),
        (
            "dawid-skene[speed=9]",
            "dawid-skene has no setting 'speed'; it has max_iter, tol, restarts, smoothing",
        ),
        (
            "majority[ties=best]",
            "ties = 'best', but it must be random or first or abstain or prior or all",
        ),
        ("majority[first]", "cannot read 'first' in 'majority[first]'; write setting=value"),
        ("majority[ties=first", "cannot read 'majority[ties=first'; write name or name"),
        ("", "cannot read ''"),
        ("given-matrices", "no method 'given-matrices'"),
    ],
)
def test_invalid_specifications_are_reported(spec, message):
    with pytest.raises(MethodError) as problem:
        aggregators.create(spec)
    assert message in str(problem.value)
    assert "\n" not in str(problem.value)


def test_values_between_brackets():
    assert split_spec("x[a=1,b=1e-4,c=True,d=None,e=word,f='a, b',g=\"it's\"]") == (
        "x",
        {"a": 1, "b": 1e-4, "c": True, "d": None, "e": "word", "f": "a, b", "g": "it's"},
    )


def test_every_name_that_peerannot_used_for_these_methods_is_known():
    for name in ("MV", "majority_voting", "NaiveSoft", "naive_soft", "DS", "dawid_skene"):
        aggregators.create(name)
    for name in (
        "hammer-spammer",
        "student-teacher",
        "independent-confusion",
        "discrete-difficulty",
    ):
        simulators.create(name)


def test_names_of_one_family_do_not_clash():
    for registry in (*methods.values(), learners, simulators, policies):
        plain = [name.casefold().replace("-", "") for name in [*registry, *registry.aliases]]
        assert len(plain) == len(set(plain))


def test_the_catalogue_has_every_method_and_setting():
    summary = catalogue()
    deep = [*learners, *tendencies, *recoverers, *adapters] if find_spec("torch") else []
    of_answers = [methods[kind] for kind in methods if kind not in ("classes", "numbers")]
    names = [*aggregators, *dict.fromkeys(chain(*of_answers)), *estimators, *deep]
    names += [*simulators, *answer_simulators, *policies]
    assert [entry.name for entry in summary] == names
    for entry in summary:
        assert entry.summary.endswith(".")
        assert entry.text
        for setting in entry.settings:
            assert setting.doc, f"{entry.name} does not explain {setting.name}"
    assert [entry.name for entry in entries("DS")] == ["dawid-skene"]
    with pytest.raises(MethodError):
        entries("nothing like it")


@dataclass(frozen=True, kw_only=True)
class Example(Settings):
    """An example.

    Parameters
    ----------
    strength
        How strong,
        in words.
    """

    strength: Positive = 1.0
    share: Probability = 0.5
    count: Count = 3
    kind: Literal["a", "b"] | None = None


def test_limits_are_words_and_checks():
    fields = {field.name: field for field in describe_fields(Example)}
    assert fields["strength"].doc == "How strong, in words."
    assert [field.limits for field in fields.values()] == [
        "above 0",
        "at least 0 and at most 1",
        "a whole number, at least 1 and at most 1000000",
        "a or b or None",
    ]
    assert Example(strength=2).strength == 2.0
    assert isinstance(Example(strength=2).strength, float)
    assert Example(kind="a").kind == "a"
    for bad in (
        {"strength": 0},
        {"share": 1.01},
        {"count": 0},
        {"count": "3"},
        {"kind": "c"},
        {"strength": None},
    ):
        with pytest.raises(MethodError, match="but it must be"):
            Example(**bad)
