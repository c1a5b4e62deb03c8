"""Students and teachers: some annotators have learned from others, with all their mistakes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..base.arrays import Array
from ..errors import OptionError
from ..params import Probability
from .independent_confusion import uniform_matrices
from .strategy import Asked, CrowdParameters, Design, Strategy


@dataclass(frozen=True, kw_only=True)
class StudentTeacher(Strategy):
    """Annotators with confusion matrices of their own, and annotators who took over one of these.

    Students and teachers: some annotators have learned from others, with all their mistakes.

    Teachers have random confusion matrices, as in `independent-confusion`. Every student has one
    teacher, any of them with the same probability, and the teacher's matrix. Students come last.
    Their answers are still independent, unless `copy_prob` is set: with that probability a student
    gives the teacher's answer where the teacher has labelled the item too. This breaks what most
    models assume, that answers are independent once the truth is known.

        confusion[student] = confusion[teacher of the student]

    When it fails: Copies are whole matrices or whole answers; real annotators copy now and then,
    and from several others.

        T. Lefort, B. Charlier, A. Joly, J. Salmon. Peerannot: classification for crowdsourced image
        datasets with Python. Computo, 2024. doi:10.57750/qmaz-gr91

    Parameters
    ----------
    ratio
        Share of students; their number is rounded down.
    copy_prob
        Probability that a student gives the teacher's answer, where there is one.

    Examples
    --------
    >>> from dissensus import simulate
    >>> drawn = simulate(StudentTeacher(ratio=0.6), n_annotators=5, seed=1)
    >>> drawn.extras["student_teacher_association"].tolist()
    [[2, 1], [3, 0], [4, 1]]
    """

    ratio: Probability = 0.1
    copy_prob: Probability = 0.0

    def crowd(self, design: Design, rng: np.random.Generator) -> CrowdParameters:
        n_students = int(self.ratio * design.n_annotators)
        n_teachers = design.n_annotators - n_students
        if n_teachers == 0:
            raise OptionError(
                f"ratio = {self.ratio} makes students of all {design.n_annotators} annotators; "
                "lower it, so that somebody can teach"
            )
        matrices = uniform_matrices(n_teachers, design.n_classes, rng)
        teacher = rng.choice(n_teachers, replace=True, size=n_students)
        student = np.arange(n_teachers, design.n_annotators)
        pairs = np.column_stack([student, teacher])  # (student, 2)
        confusion = np.concatenate([matrices, matrices[teacher]])
        return CrowdParameters(design.n_classes, confusion, {"student_teacher_association": pairs})

    def answers(self, crowd: CrowdParameters, asked: Asked, rng: np.random.Generator) -> Array:
        label, item, annotator = super().answers(crowd, asked, rng), asked.item, asked.annotator
        student, teacher = crowd.extras["student_teacher_association"].T
        if self.copy_prob == 0 or len(student) == 0:
            return label
        learned = np.full(int(student.max()) + 1, -1)  # (annotator): the teacher, or -1
        learned[student] = teacher
        # An answer is one number, so that a teacher's can be looked up in sorted order.
        key = item.astype(np.int64) * len(learned) + annotator
        by_key = key.argsort(kind="stable")
        taught = np.flatnonzero(learned[annotator] >= 0)
        requested = key[taught] - annotator[taught] + learned[annotator[taught]]
        position = by_key[np.searchsorted(key, requested, sorter=by_key)]  # nobody is past the end
        together = key[position] == requested
        taught, position = taught[together], position[together]
        copied = rng.random(len(taught)) < self.copy_prob
        label[taught[copied]] = label[position[copied]]
        return label
