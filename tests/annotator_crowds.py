"""Crowds whose annotators are known, for tests of scores and verdicts."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from dissensus import identify, simulate


def crowd(strategy="hammer-spammer[ratio=0.4]", **options):
    given_options = {"n_items": 150, "n_annotators": 10, "n_classes": 3, "feedback": 5, **options}
    return simulate(strategy, **given_options)


def quick(annotations, **options):
    return identify(annotations, copying=False, **options)


def auc(value, good):
    """Return how probably somebody good has a higher value than somebody who is not."""
    above = value[good][:, None] - value[~good][None, :]
    return float(((above > 0) + (above == 0) / 2).mean())


def verdict_crowds():
    """Return the module that draws the crowds of the benchmark."""
    path = Path(__file__).parents[1] / "benchmarks" / "trust" / "verdict_crowds.py"
    spec = spec_from_file_location("verdict_crowds", path)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
