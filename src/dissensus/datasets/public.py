"""A public data set made from its files: given, in the current folder, in the cache, or fetched."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ..base.files import atomic_folder, cache_folder
from ..base.progress import Progress
from ..errors import DataError, OptionError
from ..formats.tools.folders import write_folder
from .archives import is_archive, unpack
from .data_set import Installed
from .fetching import check_published, checksum, fetch
from .recipes import RECIPES, Source


class _Found(NamedTuple):
    source: Source
    path: Path
    notes: tuple[str, ...]


def install_public(
    name: str,
    folder: Path,
    archives: Sequence[str | Path] = (),
    *,
    images: bool = True,
    progress: Progress | None = None,
) -> Installed:
    """Prepare a public data set as a folder.

    Parameters
    ----------
    name
        The name of a recipe.
    folder
        A folder that is new or empty.
    archives
        Local files that are read instead of fetched ones, or folders that hold them.
    images
        Whether to install the images, too.
    progress
        Called with bytes fetched, and bytes in all.
    """
    recipe = RECIPES[name]
    wanted = [one for one in recipe.sources if images or not one.optional]
    given = _given(archives, wanted, name)
    found = [_locate(one, given, name, progress) for one in wanted]
    notes = tuple(note for one in found for note in one.notes)
    used = [one for one in found if one.path.is_file()]
    with tempfile.TemporaryDirectory(prefix="dissensus-") as work, atomic_folder(folder) as draft:
        folders = {}
        for number, (source, path, _) in enumerate(used):
            folders[source.name] = _unpacked(source, path, Path(work) / str(number), images)
        made = recipe.prepare(folders)
        counted = int((made.annotations.labels_per_annotator > 0).sum())
        metadata = {"name": name, "nb_workers": counted}
        metadata |= {"label_names": made.label_names} if made.label_names else {}
        metadata |= {"item_names": made.item_names} if made.item_names else {}
        metadata["sources"] = [{"url": one.url, "sha256": checksum(path)} for one, path, _ in used]
        arrays = {} if made.truth is None else {"ground_truth": made.truth}
        write_folder(draft, made.annotations, metadata=metadata, arrays=arrays)
        n_images = 0
        for position, content in made.pictures if images else ():
            (draft / position).parent.mkdir(parents=True, exist_ok=True)
            (draft / position).write_bytes(content)
            n_images += 1
    return Installed(folder, made.annotations, n_images, notes)


def _given(archives: Sequence[str | Path], wanted: Sequence[Source], name: str) -> dict[str, Path]:
    """Return the file of every source that is given: by its name, or if there is one of each."""
    files = []
    for path in map(Path, archives):
        if not path.exists():
            raise DataError(f"{path}: no such file or directory")
        files += sorted(path.iterdir()) if path.is_dir() else [path]
    named = {one.name.casefold(): one for one in files}
    found = {one.name: named[one.name.casefold()] for one in wanted if one.name.casefold() in named}
    needed = [one for one in wanted if not one.optional]
    if not found and len(files) == len(needed) == 1:
        found = {needed[0].name: files[0]}
    if files and not found:
        names = ", ".join(one.name for one in wanted)
        raise OptionError(f"{files[0]}: not a file of {name}, which has {names}")
    return found


def _locate(source: Source, given: dict[str, Path], name: str, progress: Progress | None) -> _Found:
    """Return where a source is; the path is no file if it is left out."""
    here = Path(source.name)
    for path, words in ((given.get(source.name), "given"), (here, "found in this folder")):
        if path is not None and path.is_file():
            check_published(path, source.md5)
            return _Found(source, path, (f"{path}: {words}, nothing is fetched for it",))
    if source.file:
        note = f"no images: download {source.url} as {source.name}, then --archive {source.name}"
        return _Found(source, Path(), (note,))
    path = cache_folder() / "datasets" / name / source.name
    try:
        notes = fetch(source.url, path, md5=source.md5, most=source.most, progress=progress)
    except DataError as problem:
        rest = "; --no-task installs the annotations alone" if source.optional else ""
        raise DataError(f"{problem}{rest}") from None
    return _Found(source, path, notes)


def _unpacked(source: Source, path: Path, folder: Path, images: bool) -> Path:
    """Return the folder with what is read of a source: unpacked, or a copy of the file."""
    folder.mkdir(parents=True)
    if not (source.files or source.images):
        (folder / source.name).write_bytes(path.read_bytes())
    elif is_archive(path):
        unpack(path, folder, lambda name: source.reads(name, images=images))
    else:
        raise DataError(f"{path}: neither a zip nor a tar archive; {source.name} is one")
    return folder
