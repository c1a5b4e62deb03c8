"""Limits of time: what learns stops, with the best found, and says so."""

import numpy as np
import pytest
from click.testing import CliRunner

pytest.importorskip("torch", reason="what learns needs torch")

import dissensus.base.progress as time
from dissensus import time_limit
from dissensus.base.progress import out_of_time, share_of_time
from dissensus.cli import cli
from dissensus.deep.nn.features import Features
from dissensus.deep.tendency.linear import CrossValidation
from dissensus.registry import recoverers, tendencies

from ..deep.test_tendency import crowd

NOTE = "the time limit of 0.001 s was too short"


class Clock:
    """Every question takes a second."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        self.now += 1.0
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(time, "clock", clock)
    return clock


def test_without_a_limit_there_is_always_time(clock):
    clock.now = 1e9
    with share_of_time(0.1):
        assert not out_of_time()


def test_a_share_of_the_time_ends_before_the_time(clock):
    with time_limit(100) as limit:
        with share_of_time(0.5):
            clock.now += 60
            assert out_of_time()
        assert limit.reached
        assert not out_of_time()
        clock.now += 60
        assert out_of_time()
    assert not out_of_time()


@pytest.mark.parametrize("seconds", [1, 15, 10**6])
@pytest.mark.parametrize("name", ["auto[queries=never]", "linear", "consensus", "multi-task"])
def test_models_of_annotators_are_fitted_in_any_time(clock, name, seconds):
    features, annotations = crowd()
    with time_limit(seconds) as limit:
        model = tendencies.create(name).fit(features, annotations)
    assert np.allclose(np.exp(model.log_proba(features)).sum(axis=2), 1)
    assert limit.reached or seconds > 1
    assert not (limit.reached and seconds == 10**6)


def test_more_time_tries_more(clock, monkeypatch):
    features, annotations = crowd()
    predict, tried = CrossValidation.predict, []
    monkeypatch.setattr(
        CrossValidation, "predict", lambda self, each: tried.append(each) or predict(self, each)
    )
    counts = []
    for seconds in (1, 20, 10**6):
        tried.clear()
        with time_limit(seconds):
            tendencies.create("linear").fit(features, annotations)
        counts.append(len(tried))
    assert counts[0] == 1
    assert 1 < counts[1] < counts[2]


@pytest.mark.parametrize("seconds", [1, 40, 10**6])
def test_distributions_are_recovered_in_any_time(clock, seconds):
    random = np.random.default_rng(0)
    x = random.normal(size=(60, 5)).astype(np.float32)
    label = (x[:, 0] > 0).astype(int)
    with time_limit(seconds) as limit:
        model = recoverers.create("auto[steps=50]").fit(Features(x), label)
    assert ("heads" in model.parts) == (seconds > 1)
    assert limit.reached == (seconds < 10**6)
    assert np.allclose(model.predict_proba(Features(x)).sum(axis=1), 1)


def test_commands_stop_and_say_so(tmp_path):
    features, annotations = crowd()
    rows = zip(annotations.item, annotations.annotator, annotations.label, strict=True)
    table = "".join(f"{i},{a},{k}\n" for i, a, k in rows)
    (tmp_path / "a.csv").write_text("item,annotator,label\n" + table)
    np.savez(tmp_path / "x.npz", x=features.vectors, items=np.arange(len(features)).astype(str))
    common = [
        str(tmp_path / "a.csv"),
        "--inputs",
        str(tmp_path / "x.npz"),
        "--columns",
        "item=item",
    ]
    for verb in (
        ["tendency", "fit", *common, "-o", str(tmp_path / "model")],
        ["tendency", "evaluate", *common, "-s", "linear"],
        ["aggregate-deep", *common, "-s", "crowd-layer", "--folder", str(tmp_path / "deep")],
    ):
        run = CliRunner().invoke(cli, [*verb, "--time-limit", "0.001"], catch_exceptions=False)
        assert run.exit_code == 0, run.output
        assert NOTE in run.stderr, verb
        assert run.stderr.count("time limit of") == 1, verb


@pytest.mark.parametrize(
    "verb",
    ["train", "aggregate-deep", "tendency fit", "tendency evaluate", "recover fit", "meta fit"],
)
def test_every_verb_that_learns_takes_a_limit(verb):
    assert "--time-limit" in CliRunner().invoke(cli, [*verb.split(), "--help"]).stdout
