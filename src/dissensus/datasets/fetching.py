"""Files fetched over HTTP into the cache: whole, checked, and resumed where they broke off.

A file is compared with the checksum that its source publishes. If there is none, its SHA-256 is
recorded when it is fetched for the first time, and later fetches are compared with that.
A public data set is made from its files: given, in the current folder, in the cache, or fetched.
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
from ..errors import DataError, Note, OptionError
from ..formats.tools.peerannot import write_folder
from ..method import Progress
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
            _fetch_rest(url, part, file=file, most=most, progress=progress)
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
    if md5 is not None and (actual := checksum(path, "md5")) != md5:
        raise DataError(f"{path}: MD5 {actual}, but the source publishes {md5}; it is another file")


def _compare(path: Path, url: str, md5: str | None) -> str:
    """Compare a fetched file with its checksum, or record one; a file that differs is removed."""
    try:
        check_published(path, md5)
    except DataError:
        path.unlink()
        raise DataError(f"{url}: not the file that its source publishes (MD5); try again") from None
    if md5 is not None:
        return ", as published (MD5)"
    recorded, digest = _recorded(), checksum(path)
    if recorded.setdefault(url, digest) != digest:
        path.unlink()
        raise DataError(
            f"{url}: changed since it was first fetched (SHA-256 {recorded[url][:12]}…, now "
            f"{digest[:12]}…); remove it from {_record()} to accept this one"
        )
    with atomic_file(_record()) as draft:
        draft.write_text(json.dumps(recorded, indent=1), encoding="utf-8")
    return f"; no checksum is published, SHA-256 {digest[:12]}… is recorded"


def _record() -> Path:
    return cache_folder() / "datasets" / "checksums.json"


def _recorded() -> dict[str, str]:
    with suppress(OSError, ValueError):
        content = json.loads(_record().read_text(encoding="utf-8"))
        if isinstance(content, dict):
            return content
    return {}


def _validator(part: Path) -> Path:
    """Return the file that holds the version of the source that a part belongs to."""
    return part.with_name(part.name + ".version")


class _SameSecurity(HTTPRedirectHandler):
    """Follow redirects to HTTP and HTTPS, never from the latter to the former."""

    def redirect_request(self, req: Request, *arguments: Any) -> Request | None:
        request = super().redirect_request(req, *arguments)
        scheme = urlsplit(request.full_url).scheme if request else "https"
        if scheme not in ("http", "https") or (req.type == "https" and scheme == "http"):
            raise URLError(f"redirected to {scheme}")
        return request


def _fetch_rest(url: str, part: Path, file: Any, most: int, progress: Progress | None) -> None:
    """Append what is missing to a part; start again if the source has changed."""
    n_bytes, version = part.stat().st_size, ""
    with suppress(OSError):
        version = _validator(part).read_text(encoding="utf-8")
    headers = {"User-Agent": "dissensus", "Accept-Encoding": "identity"}
    if n_bytes and version:
        headers |= {"Range": f"bytes={n_bytes}-", "If-Range": version}
    total = 0
    try:
        with build_opener(_SameSecurity()).open(
            Request(url, headers=headers), timeout=_TIMEOUT
        ) as answer:
            if answer.status != 206:
                file.truncate(0)
                n_bytes = 0
            total = n_bytes + int(answer.headers.get("Content-Length") or 0)
            _limit(url, total, most)
            version = answer.headers.get("ETag") or answer.headers.get("Last-Modified") or ""
            _validator(part).write_text(version, encoding="utf-8")
            n_bytes = _copy(
                answer.read,
                file,
                n_bytes=n_bytes,
                limit=lambda size: _limit(url, size, most),
                report=lambda size: progress(size, total) if progress else None,
            )
    except (URLError, HTTPException, OSError, ValueError) as problem:
        file.flush()
        n_bytes = part.stat().st_size
        raise _failure(url, problem, n_bytes if version else 0, total) from None
    if total and n_bytes < total:
        raise _failure(url, EOFError("the connection ended"), n_bytes, total)


def _copy(
    read: Callable[[int], bytes],
    file: Any,
    n_bytes: int,
    limit: Callable[[int], None],
    report: Callable[[int], None],
) -> int:
    """Copy in chunks; return the size of the file."""
    while chunk := read(_CHUNK):
        n_bytes += len(chunk)
        limit(n_bytes)
        file.write(chunk)
        report(n_bytes)
    file.flush()
    return n_bytes


def _limit(url: str, size: int, most: int) -> None:
    if size > most:
        raise DataError(f"{url}: {size:.3g} bytes, more than the {most:.3g} that it should have")


def _failure(url: str, problem: Exception, n_bytes: int, total: int) -> DataError:
    """Return why a file was not fetched, and how to go on."""
    if isinstance(problem, HTTPError):
        why = f"the server answers {problem.code}"
    else:
        cause = getattr(problem, "reason", problem)
        why = reason(cause) if isinstance(cause, Exception) else str(cause)
    file = url.rpartition("/")[2]
    if n_bytes:
        of = f" of {total}" if total else ""
        return DataError(f"{url}: {why} after {n_bytes}{of} bytes; run it again to resume")
    remedy = f"get {file} elsewhere, then {{}}"
    return DataError(f"cannot be fetched ({why})", where=url, remedy=remedy, archives=[file])


class _Located(NamedTuple):
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
    sources = [source for source in recipe.sources if images or not source.optional]
    files = _given_files(archives, sources, name)
    located = [_locate(source, files, name, progress) for source in sources]
    notes = tuple(note for place in located for note in place.notes)
    readable = [place for place in located if place.path.is_file()]
    with tempfile.TemporaryDirectory(prefix="dissensus-") as work, atomic_folder(folder) as draft:
        folders = {}
        for number, (source, path, _) in enumerate(readable):
            folders[source.name] = _unpacked(source, path, Path(work) / str(number), images)
        prepared = recipe.prepare(folders)
        counted = int((prepared.annotations.labels_per_annotator > 0).sum())
        metadata = {"name": name, "nb_workers": counted}
        metadata |= {"label_names": prepared.label_names} if prepared.label_names else {}
        metadata |= {"item_names": prepared.item_names} if prepared.item_names else {}
        metadata["sources"] = [
            {"url": source.url, "sha256": checksum(path)} for source, path, _ in readable
        ]
        arrays = {} if prepared.truth is None else {"ground_truth": prepared.truth}
        write_folder(draft, prepared.annotations, metadata=metadata, arrays=arrays)
        n_images = 0
        for position, content in prepared.pictures if images else ():
            (draft / position).parent.mkdir(parents=True, exist_ok=True)
            (draft / position).write_bytes(content)
            n_images += 1
    return Installed(folder, prepared.annotations, n_images, notes)


def _given_files(
    archives: Sequence[str | Path], sources: Sequence[Source], name: str
) -> dict[str, Path]:
    """Return the file of every source that is given: by its name, or if there is one of each."""
    files = []
    for path in map(Path, archives):
        if not path.exists():
            raise DataError(f"{path}: no such file or directory")
        files += sorted(path.iterdir()) if path.is_dir() else [path]
    by_name = {file.name.casefold(): file for file in files}
    file_of = {
        source.name: by_name[source.name.casefold()]
        for source in sources
        if source.name.casefold() in by_name
    }
    needed = [source for source in sources if not source.optional]
    if not file_of and len(files) == len(needed) == 1:
        file_of = {needed[0].name: files[0]}
    if files and not file_of:
        names = ", ".join(source.name for source in sources)
        raise OptionError(f"{files[0]}: not a file of {name}, which has {names}")
    return file_of


def _locate(
    source: Source, files: dict[str, Path], name: str, progress: Progress | None
) -> _Located:
    """Return where a source is; the path is no file if it is left out."""
    local = Path(source.name)
    for path, words in ((files.get(source.name), "given"), (local, "found in this folder")):
        if path is not None and path.is_file():
            check_published(path, source.md5)
            return _Located(source, path, (f"{path}: {words}, nothing is fetched for it",))
    if source.file:
        remedy = f"no images: download {source.url} as {source.name}, then {{}}"
        return _Located(source, Path(), (Note("", remedy=remedy, archives=[source.name]),))
    path = cache_folder() / "datasets" / name / source.name
    try:
        notes = fetch(source.url, path, md5=source.md5, most=source.most, progress=progress)
    except DataError as problem:
        if source.optional:
            raise problem.or_else("installs the annotations alone", no_task=True) from None
        raise
    return _Located(source, path, notes)


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
