"""Sets of Parquet files as one table: read whole, or aggregated in parts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..answers.left_out import LeftOut
from ..base.progress import iterations, progress_bar
from ..pages.terminal import note, note_reading, show_json
from .files import examine_annotations, with_kinds

if TYPE_CHECKING:
    from ..base.engine import Engine
    from ..formats import Reading


@dataclass(frozen=True)
class FileSet:
    """Files, folders, patterns and addresses that make up one table, and how to read them."""

    paths: tuple[str, ...]
    memory: int | None
    reading: dict[str, Any]

    def exceeds_memory(self, in_parts: bool) -> bool:
        """Return whether these are Parquet files that are too large, or to be done in parts."""
        from ..scale.parquet import fits
        from ..scale.parquet_files import find_files, holds_parquet, is_many, rows_in

        if not is_many(self.paths) and not holds_parquet(self.paths[0]):
            return False
        return in_parts or not fits(rows_in(find_files(self.paths)), self.memory)

    def read(self) -> Reading:
        """Return all rows."""
        from ..formats import Reading
        from ..formats.reading import with_scale, with_spelling_notes
        from ..formats.spellings import Joined
        from ..scale.chunks import chunks_of, read_all
        from ..scale.parquet_files import find_files, is_many

        if not is_many(self.paths):
            return examine_annotations(self.paths[0], **self.reading)
        columns, classes = self._columns_and_classes()
        rows = chunks_of(find_files(self.paths), columns, missing=self.reading["missing"])
        joined = Joined() if self.reading["spelling"] == "join" else None
        annotations = read_all(rows, classes, self.reading["duplicates"], joined)
        found = Reading(annotations, "parquet", notes=annotations.left_out.sentences)
        if joined is not None:
            found = replace(found, notes=(*found.notes, *joined.notes))
        found = with_spelling_notes(found, items=not rows.whole["item"])
        found = with_scale(found, self.reading["scale"], reorder=classes is None)
        note_reading(found.notes, found.annotations.left_out)
        return with_kinds(found, self.reading.get("models"), self.reading.get("people"))

    def items_among(self, names: Iterable[str]) -> set[str]:
        """Return which of these are items of the table."""
        import polars as pl

        from ..scale.chunks import chunks_of
        from ..scale.parquet_files import find_files

        columns, _ = self._columns_and_classes()
        asked = pl.Series(list(names), dtype=pl.String).implode()
        rows = chunks_of(find_files(self.paths), columns, missing="keep")
        items = (chunk.read(("item",))["item"].cast(pl.String) for chunk in rows.chunks)
        return {name for one in items for name in one.filter(one.is_in(asked)).unique()}

    def aggregate(
        self,
        strategy: str | None,
        output: str | None,
        cluster: Engine | None,
        *,
        save: str | None,
        as_json: bool,
        **settings: Any,
    ) -> None:
        """Write the labels in parts, and print what was learned."""
        from ..formats.spellings import spelling_notes_of_counts
        from ..scale.parquet import aggregate_files
        from ..scale.parquet_files import find_files, rows_in

        if strategy is None:
            strategy = "dawid-skene"
            note("beyond memory, or on a cluster, the default is -s dawid-skene")
        columns, classes = self._columns_and_classes()
        with progress_bar("aggregating") as progress:
            done = aggregate_files(
                self.paths,
                strategy,
                output,
                engine=cluster,  # type: ignore[arg-type]
                columns=columns,
                classes=classes,
                missing=self.reading["missing"],
                scale=self.reading["scale"],
                memory=self.memory,
                on_round=iterations(progress),
                **settings,
            )
        data = done.annotations
        people = data.annotators, data.labels_per_annotator
        for sentence in spelling_notes_of_counts(data.classes, data.labels_per_class, *people):
            note(sentence)
        if save:
            done.save(save)
        left_out = rows_in(find_files(self.paths)) - len(done.annotations)
        if left_out:
            missing = LeftOut({"without an item, an annotator or a label": left_out})
            note_reading(missing.sentences, missing)
        if done.trace and not done.converged:
            note(f"not converged after {len(done.trace)} iterations; more with max_iter")
        if as_json:
            show_json(
                {
                    "method": done.method,
                    "n_items": done.annotations.n_items,
                    "n_annotators": done.annotations.n_annotators,
                    "n_labels": len(done.annotations),
                    "classes": done.annotations.classes.tolist(),
                    "converged": done.converged,
                    "rounds": len(done.trace),
                    "trace": list(done.trace),
                }
            )

    def _columns_and_classes(self) -> tuple[dict[str, str], list[str] | None]:
        from ..formats.columns import parse_columns

        classes = self.reading["classes"]
        names = [name.strip() for name in classes.split(",")] if classes else None
        return parse_columns(self.reading["columns"]), names
