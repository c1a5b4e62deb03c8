"""Labels of people and models in one file."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..answers.annotations import Annotations
from ..pages.wording import many, quoted, verb
from ..pages.sections import Finding


def check_kinds(annotations: Annotations) -> Iterator[Finding]:
    """Find labels of people and models together, and classes that only one of them uses."""
    if not annotations.mixed_kinds:
        return
    model = annotations.is_kind("model")
    given = model[annotations.annotator]
    names = annotations.annotators[model]
    yield Finding(
        "kinds",
        f"Models gave {int(given.sum())} of {len(annotations)} labels: "
        f"{many(len(names), 'annotator')} {'is a model' if len(names) == 1 else 'are models'}.",
        len(names),
        tuple(quoted(name) for name in names[:3].tolist()),
        "`dissensus judge` compares them with people; to aggregate, -s judge-pool",
    )
    size = annotations.n_classes
    by_model = np.bincount(annotations.label[given], minlength=size)
    by_people = np.bincount(annotations.label[~given], minlength=size)
    alone = np.flatnonzero((by_model == 0) != (by_people == 0))
    if len(alone):
        yield Finding(
            "one-kind-classes",
            f"{many(len(alone), 'class')} {verb(len(alone), 'are')} used only by people or only "
            "by models, who can never agree there.",
            len(alone),
            tuple(
                f"{quoted(annotations.classes[code])}: {by_people[code]} labels of people, "
                f"{by_model[code]} of models"
                for code in alone[:3].tolist()
            ),
            "check that both were given the same classes, spelled alike",
        )
