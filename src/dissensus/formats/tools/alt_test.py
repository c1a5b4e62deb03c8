"""AltTest: a folder with `human_annotations.json` and `llm_annotations.json`.

Both are `{annotator: {item: label}}`, as the authors of the alternative annotator test publish
their sets. Models are `model:<name>`. Labels without a value are left out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..collecting import Collected
from ..format import Export, Format, Head
from ..json_records import load
from ..sources import Source, open_source
from .inspect_ai import Scorer, add_score
from .peerannot import is_nested

_PEOPLE, _MODELS = "human_annotations.json", "llm_annotations.json"


def recognises(head: Head) -> bool:
    """Return whether a folder has annotations of people and of language models."""
    return head.shape == "folder" and {_PEOPLE, _MODELS} <= {*head.names}


def read(source: Source) -> Export:
    """Return the labels of people and models."""
    if source.format != "folder":
        raise source.fail(f"not a folder with {_PEOPLE} and {_MODELS}")
    collection = Collected()
    kinds: list[tuple[str, Any]] = [(_PEOPLE, "person"), (_MODELS, "model")]
    for name, kind in kinds:
        file = open_source(Path(str(source.content)) / name, "json")
        answers = load(file)
        if not is_nested(answers):
            raise file.fail("annotations should be {annotator: {item: label}}")
        for annotator, labels in answers.items():
            for item, label in labels.items():
                add_score(collection, "label", item, label, by=Scorer(kind, annotator))
    return collection.export()


FORMAT = Format("alt-test", recognises=recognises, read=read, kinds=("sets",))
