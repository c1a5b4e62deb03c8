"""Files fetched over HTTP into the cache: whole, checked, and resumed where they broke off.

A file is compared with the checksum that its source publishes. If there is none, its SHA-256 is
recorded when it is fetched for the first time, and later fetches are compared with that.

A public data set made from its files: given, in the current folder, in the cache, or fetched.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from ..base.files import atomic_file, atomic_folder, cache_folder, output_errors, reason, try_lock
from ..base.progress import Progress
from ..errors import DataError, OptionError
from ..formats.tools.peerannot import write_folder
from .archives import is_archive, unpack
from .data_set import Installed
from .recipes import RECIPES, Source

_CHUNK = 2**18
_TIMEOUT = 60


def fetch(
    url: str, path: Path, *, md5: str | None, most: int, progress: Progress | None = None
) -> tuple[str, ...]:
    """Fetch a file, unless it is there; return notes about it.

    Parameters
    ----------
    url
        Its address.
    path
        Its path in the cache; `path` with `.part` is what has been fetched so far.
    md5
        The checksum that the source publishes, if there is one.
    most
        Most bytes.
    progress
        Called with bytes fetched, and bytes in all.
    """
    if path.is_file():
        _compare(path, url, md5)
        return (f"{path.name}: fetched before, read from {path}",)
    part = path.with_name(path.name + ".part")
    with output_errors(part):
        part.parent.mkdir(parents=True, exist_ok=True)
        with part.open("ab") as file:
            if not try_lock(file.fileno()):
                raise DataError(f"{url}: another process is fetching it")
            _fetch_rest(url, part, file, most, progress)
        note = _compare(part, url, md5)
        part.replace(path)
        _validator(part).unlink(missing_ok=True)
    return (f"{path.name}: fetched from {url}{note}",)


def checksum(path: Path, kind: str = "sha256") -> str:
    """Return the checksum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, kind).hexdigest()


def check_published(path: Path, md5: str | None) -> None:
    """Refuse a file that differs from what its source publishes."""
    if md5 is not None and (found := checksum(path, "md5")) != md5:
        raise DataError(f"{path}: MD5 {found}, but the source publishes {md5}; it is another file")


def _compare(path: Path, url: str, md5: str | None) -> str:
    """Compare a fetched file with its checksum, or record one; a file that differs is removed."""
    try:
        check_published(path, md5)
    except DataError:
        path.unlink()
        raise DataError(f"{url}: not the file that its source publishes (MD5); try again") from None
    if md5 is not None:
        return ", as published (MD5)"
    known, found = _recorded(), checksum(path)
    if known.setdefault(url, found) != found:
        path.unlink()
        raise DataError(
            f"{url}: changed since it was first fetched (SHA-256 {known[url][:12]}…, now "
            f"{found[:12]}…); remove it from {_record()} to accept this one"
        )
    with atomic_file(_record()) as draft:
        draft.write_text(json.dumps(known, indent=1), encoding="utf-8")
    return f"; no checksum is published, SHA-256 {found[:12]}… is recorded"


def _record() -> Path:
    return cache_folder() / "datasets" / "checksums.json"


def _recorded() -> dict[str, str]:
    with suppress(OSError, ValueError):
        found = json.loads(_record().read_text(encoding="utf-8"))
        if isinstance(found, dict):
            return found
    return {}


def _validator(part: Path) -> Path:
    """Return the file that holds the version of the source that a part belongs to."""
    return part.with_name(part.name + ".version")


class _SameSecurity(HTTPRedirectHandler):
    """Follow redirects to HTTP and HTTPS, never from the latter to the former."""

    def redirect_request(self, req: Request, *given: Any) -> Request | None:
        made = super().redirect_request(req, *given)
        there = urlsplit(made.full_url).scheme if made else "https"
        if there not in ("http", "https") or (req.type == "https" and there == "http"):
            raise URLError(f"redirected to {there}")
        return made


def _fetch_rest(url: str, part: Path, file: Any, most: int, progress: Progress | None) -> None:
    """Append what is missing to a part; start again if the source has changed."""
    done, version = part.stat().st_size, ""
    with suppress(OSError):
        version = _validator(part).read_text(encoding="utf-8")
    headers = {"User-Agent": "dissensus", "Accept-Encoding": "identity"}
    if done and version:
        headers |= {"Range": f"bytes={done}-", "If-Range": version}
    total = 0
    try:
        with build_opener(_SameSecurity()).open(
            Request(url, headers=headers), timeout=_TIMEOUT
        ) as answer:
            if answer.status != 206:
                file.truncate(0)
                done = 0
            total = done + int(answer.headers.get("Content-Length") or 0)
            _limit(url, total, most)
            version = answer.headers.get("ETag") or answer.headers.get("Last-Modified") or ""
            _validator(part).write_text(version, encoding="utf-8")
            done = _copy(
                answer.read,
                file,
                done,
                lambda size: _limit(url, size, most),
                lambda size: progress(size, total) if progress else None,
            )
    except (URLError, HTTPException, OSError, ValueError) as problem:
        file.flush()
        done = part.stat().st_size
        raise DataError(_failure(url, problem, done if version else 0, total)) from None
    if total and done < total:
        raise DataError(_failure(url, EOFError("the connection ended"), done, total))


def _copy(
    read: Callable[[int], bytes],
    file: Any,
    done: int,
    limit: Callable[[int], None],
    report: Callable[[int], None],
) -> int:
    """Copy in chunks; return the size of the file."""
    while chunk := read(_CHUNK):
        done += len(chunk)
        limit(done)
        file.write(chunk)
        report(done)
    file.flush()
    return done


def _limit(url: str, size: int, most: int) -> None:
    if size > most:
        raise DataError(f"{url}: {size:.3g} bytes, more than the {most:.3g} that it should have")


def _failure(url: str, problem: Exception, done: int, total: int) -> str:
    """Return why a file was not fetched, and how to go on."""
    if isinstance(problem, HTTPError):
        why = f"the server answers {problem.code}"
    else:
        cause = getattr(problem, "reason", problem)
        why = reason(cause) if isinstance(cause, Exception) else str(cause)
    file = url.rpartition("/")[2]
    if done:
        of = f" of {total}" if total else ""
        return f"{url}: {why} after {done}{of} bytes; run it again to resume"
    return f"{url}: cannot be fetched ({why}); get {file} elsewhere, then --archive {file}"


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
