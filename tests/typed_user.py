"""What a user writes against the public interface: checked by mypy and pyright, and run."""

# pyright: strict, reportUnnecessaryTypeIgnoreComment=true

from pathlib import Path
from typing import TYPE_CHECKING

import dissensus as ds

if TYPE_CHECKING:  # a misspelt name is found, or both checkers report the needless comment
    misspelt = ds.agregate  # type: ignore[attr-defined]
    untyped = ds.agree({}).no_such_thing  # type: ignore[attr-defined]


def labels_of(path: Path) -> list[str]:
    """Return the inferred labels of a file with classes."""
    annotations = ds.read(path)
    if not isinstance(annotations, ds.Annotations):
        raise ds.DataError(f"{path}: not one class per item")
    result: ds.ClassAggregation = ds.aggregate(annotations, "dawid-skene[smoothing=0.1]")
    return [str(label) for label in result.labels]


def check_demo(folder: Path) -> float:
    """Write the demo's annotations, read, aggregate, score, plan and report them."""
    annotations, truth = ds.demo()
    path = folder / "answers.csv"
    ds.write(annotations, path)
    labels = labels_of(path)
    result = ds.aggregate(annotations, "majority")
    score = ds.evaluate(result, truth, resamples=0).scores["accuracy"]
    agreement = ds.agree(annotations, "alpha", resamples=0)
    people = ds.identify(annotations)
    more: ds.Plan = ds.plan(annotations, budget=10, draws=0)
    simulated = ds.simulate("one-coin", n_items=20, n_annotators=3, n_classes=2, seed=1)
    sizes = (len(labels), len(agreement.estimates), len(people.verdict), len(more.item))
    assert min(*sizes, simulated.annotations.n_items) > 0
    return score.value if score else 0.0


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        assert check_demo(Path(name)) > 0.7
