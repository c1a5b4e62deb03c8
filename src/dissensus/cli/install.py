"""`dissensus install`."""

from __future__ import annotations

from typing import Any

import click

from ._shared import json_option, note, show_json

__all__ = ["install"]

_FORMATS = "0 matrix, 1 {item: {annotator: label}}, 2 {annotator: {item: label}}"


@click.command()
@click.argument("source", metavar="NAME|PATH")
@click.option("--folder", help="Where it goes.  [default: ., or a folder of that name]")
@click.option("--answers", help="The annotations, where PATH does not hold them.")
@click.option(
    "--answers-format",
    type=click.Choice(["0", "1", "2"]),
    help=f"{_FORMATS}.  [default: as it looks]",
)
@click.option("--metadata", help="JSON with name and n_classes; the rest is counted.")
@click.option("--label-names", help="Text with the name of each class on a line.")
@click.option("--files-path", help="Text with the name of each training picture on a line.")
@click.option("--train-path", help="Folder with a folder of training pictures for each class.")
@click.option("--val-path", help="The same to validate.  [default: 20 % of the training ones]")
@click.option("--test-path", help="The same to test.")
@click.option("--test-ground-truth", help="Known labels of test pictures, where folders lie.")
@click.option(
    "--test-ground-truth-format",
    type=click.Choice(["-1", "0", "1", "2"]),
    default="-1",
    show_default=True,
    help="As for --answers-format; -1 for the same.",
)
@click.option("--no-task", is_flag=True, help="Annotations only, no pictures.")
@click.option("--trust-code", is_flag=True, help="Run a script. It can do whatever you can do.")
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=12345,
    show_default=True,
    help="Decides which pictures validate.",
)
@json_option
def install(
    source: str,
    folder: str | None,
    answers: str | None,
    answers_format: str | None,
    metadata: str | None,
    label_names: str | None,
    test_ground_truth: str | None,
    test_ground_truth_format: str,
    no_task: bool,
    trust_code: bool,
    seed: int,
    as_json: bool,
    **paths: str | None,
) -> None:
    """Make a data set ready as a folder.

    NAME is `demo` or a simulator. PATH is a file with annotations, a folder, a zip or tar
    archive, or a data set's Python script, which runs only with --trust-code. The folder gets
    answers.json, metadata.json and links to pictures, as peerannot has them.

    \b
    Example:
      dissensus install demo
      dissensus install answers.txt --answers-format 0 --folder mine
    """
    from ..datasets.install import install as run

    layouts: Any = {None: None, "-1": answers_format}
    truth_format = layouts.get(test_ground_truth_format, test_ground_truth_format)
    done = run(
        source,
        folder,
        answers=answers,
        answers_format=_number(answers_format),
        metadata=metadata,
        label_names=label_names,
        pictures=None if no_task else _pictures(**paths),
        test_truth=test_ground_truth,
        test_truth_format=_number(truth_format),
        trust_code=trust_code,
        seed=seed,
    )
    for sentence in done.notes:
        note(sentence)
    counts = {}
    if done.annotations is not None:
        counts = {
            "labels": len(done.annotations),
            "annotators": done.annotations.n_annotators,
            "items": done.annotations.n_items,
            "classes": done.annotations.n_classes,
        }
    if as_json:
        show_json({**counts, "links": done.n_links, "folder": str(done.folder)})
        return
    if counts:
        linked = f" and {done.n_links} pictures linked" if done.n_links else ""
        note(
            f"{counts['labels']} labels by {counts['annotators']} annotators on "
            f"{counts['items']} items written to {done.folder}{linked}"
        )


def _number(layout: str | None) -> Any:
    return None if layout is None else int(layout)


def _pictures(
    files_path: str | None, train_path: str | None, val_path: str | None, test_path: str | None
) -> Any:
    """Return where pictures are, if any; both a list of names and a folder are needed."""
    from pathlib import Path

    from ..datasets.image_links import Pictures
    from ..errors import OptionError

    if not any((files_path, train_path, val_path, test_path)):
        return None
    if not (files_path and train_path):
        raise OptionError("pictures need both --files-path and --train-path; or use --no-task")
    more = [Path(one) if one else None for one in (val_path, test_path)]
    return Pictures(Path(files_path), Path(train_path), *more)
