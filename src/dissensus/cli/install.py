"""`dissensus install`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..base.progress import progress_bar
from ..errors import OptionError
from ..pages.terminal import note, show_json
from .verb import Computed, options


@click.command()
@click.argument("source", metavar="NAME|PATH")
@options(
    (
        *("answers", "metadata", "label_names", "files_path", "train_path", "test_path"),
        *("test_ground_truth", "no_task", "trust_code", "archives", "json"),
    ),
    folder=Computed("., or a folder of that name"),
    answers_format=Computed("recognised"),
    val_path=Computed("20 % of the training images"),
    test_ground_truth_format="-1",
    seed=12345,
)
def install(
    source: str,
    folder: str | None,
    answers_format: str | None,
    files_path: str | None,
    train_path: str | None,
    val_path: str | None,
    test_path: str | None,
    test_ground_truth: str | None,
    test_ground_truth_format: str,
    no_task: bool,
    as_json: bool,
    **settings: Any,
) -> None:
    """Prepare a data set as a folder.

    NAME is `demo`, a public data set (labelme, music, cifar10h, bird-audio), whose files are
    fetched once or given with --archive, or a simulator. PATH is a file with annotations, a
    folder, a zip or tar archive, or a data set's Python script, which runs only with
    --trust-code. The folder gets answers.json, metadata.json and images, in the layout of
    peerannot.

    \b
    Example:
      dissensus install demo
      dissensus install labelme --archive deep_LabelMe.tar.gz
      dissensus install answers.txt --answers-format 0 --folder mine
    """
    from ..datasets.data_set import ImageFolders
    from ..datasets.install import install as run

    images = None
    if any((files_path, train_path, val_path, test_path)) and not no_task:
        if not (files_path and train_path):
            raise OptionError("images need both --files-path and --train-path; or use --no-task")
        optional = (Path(path) if path else None for path in (val_path, test_path))
        images = ImageFolders(Path(files_path), Path(train_path), *optional)
    is_same_format = test_ground_truth_format == "-1"
    truth_format = answers_format if is_same_format else test_ground_truth_format
    with progress_bar("fetching") as progress:
        installed = run(
            source,
            folder,
            answers_format=_number(answers_format),
            pictures=images,
            answers_only=no_task,
            test_truth=test_ground_truth,
            test_truth_format=_number(truth_format),
            progress=progress,
            **settings,
        )
    for sentence in installed.notes:
        note(sentence)
    counts = {}
    if installed.annotations is not None:
        counts = {
            "labels": len(installed.annotations),
            "annotators": installed.annotations.n_annotators,
            "items": installed.annotations.n_items,
            "classes": installed.annotations.n_classes,
        }
    if as_json:
        show_json({**counts, "links": installed.n_links, "folder": str(installed.folder)})
    elif counts:
        linked = f" and {installed.n_links} images" if installed.n_links else ""
        note(
            f"{counts['labels']} labels by {counts['annotators']} annotators on "
            f"{counts['items']} items written to {installed.folder}{linked}"
        )


def _number(layout: str | None) -> Any:
    return None if layout is None else int(layout)
