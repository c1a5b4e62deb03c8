"""`dissensus install`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ..base.progress import progress_bar
from ..errors import OptionError
from ..pages.terminal import note, show_json
from .verb import Options, command, computed

if TYPE_CHECKING:
    from ..datasets.data_set import ImageFolders


@dataclass(frozen=True, kw_only=True)
class Pictures(Options):
    """Where the images of a data set are."""

    files_path: str | None = None
    train_path: str | None = None
    val_path: str | None = computed("20 % of the training images")
    test_path: str | None = None

    def folders(self) -> ImageFolders | None:
        """Return the folders, if any is given."""
        from ..datasets.data_set import ImageFolders

        if not any(vars(self).values()):
            return None
        if not (self.files_path and self.train_path):
            raise OptionError("images need both --files-path and --train-path; or use --no-task")
        optional = (Path(path) if path else None for path in (self.val_path, self.test_path))
        return ImageFolders(Path(self.files_path), Path(self.train_path), *optional)


@command(
    folder="., or a folder of that name",
    answers_format="recognised",
    settings=("answers", "metadata", "label_names", "trust_code", "archives"),
)
def install(
    source: Annotated[str, "NAME|PATH"],
    *,
    folder: str | None = None,
    answers_format: str | None = None,
    pictures: Pictures,
    test_ground_truth: str | None = None,
    test_ground_truth_format: str = "-1",
    no_task: bool = False,
    as_json: bool = False,
    seed: int = 12345,
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
    from ..datasets.install import install as run

    is_same_format = test_ground_truth_format == "-1"
    truth_format = answers_format if is_same_format else test_ground_truth_format
    with progress_bar("fetching") as progress:
        installed = run(
            source,
            folder,
            answers_format=_number(answers_format),
            pictures=None if no_task else pictures.folders(),
            answers_only=no_task,
            test_truth=test_ground_truth,
            test_truth_format=_number(truth_format),
            progress=progress,
            seed=seed,
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
