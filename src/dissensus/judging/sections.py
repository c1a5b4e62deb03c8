"""What is shown about models and people: a page of their own, and a section of a report."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..pages.charts import Figure
from ..pages.page import PageReport
from ..pages.sections import Download, Page, Section
from ..pages.wording import amount, formatted
from .judging import Judging

# The order of a page, which begins with the judges, and of a report's section.
_ON_PAGE = ("judges", "replacement", "rates", "panel", "check", "pairs", "transport")
_IN_REPORT = ("labels", "replacement", "judges", "rates", "panel", "check")
_PICTURES = (("judges", "correlation"), ("shares", "escalation"))  # of a report's section


@dataclass(frozen=True, repr=False)
class JudgingReport(PageReport):
    """A page about models as annotators."""

    judging: Judging
    name: str

    @property
    def seed(self) -> int:  # type: ignore[override]
        """The random seed."""
        return self.judging.seed

    @property
    def sentences(self) -> list[str]:
        """The sentences that a reader should see first, one of every section."""
        return [section.text[0] for section in self.judging.questions.values() if section.text]

    def layout(self) -> Page:
        """Return what the page shows."""
        judging, drawn = self.judging, self.judging.figures
        worth, pool, escalation = judging.panel, judging.pool, judging.escalation
        independent = math.nan if worth is None else worth.worth
        people = pool.worth if pool is not None and pool.learned else math.nan
        sections = _page_sections(judging)
        present = {section.name for section in sections}
        facts = {
            "models": (str(judging.data.judges.n_annotators), "judges"),
            "people": (amount(judging.data.people.n_annotators), "replacement"),
            "items": (amount(judging.data.n_items), "check"),
            "with human labels": (amount(judging.n_labels), "rates"),
            "independent judges": (formatted(independent, ".1f"), "panel"),
            "people on an item": (formatted(people, ".1f"), "panel"),
        }
        tables = judging.tables
        to_check = {} if escalation is None else escalation.tables["check"]
        return Page(
            {
                name: (value, at if at in present else "judges")
                for name, (value, at) in facts.items()
            },
            sections,
            drawn,
            downloads={
                "judges": Download("judges", tables["judges"]),
                "shares": Download("shares", tables["shares"] or tables["means"]),
                "check": Download("items to check", to_check),
            },
            terms=("epsilon", "effective", "corrected"),
            method="judge",
            picture="judges" if "judges" in drawn else "",
        )


def _page_sections(judging: Judging) -> list[Section]:
    """Return the questions that the data have an answer to; about labels with the judges."""
    labels = [*judging.questions["labels"].text]
    sections = []
    for name in _ON_PAGE:
        section = judging.questions.get(name)
        if section is not None and name == "judges":
            section = section._replace(text=[*labels, *section.text])
        if section is not None and (section.text or section.panels or section.table):
            sections.append(section)
    return sections


def judging_section(judging: Judging) -> Section:
    """Return the section of a report where people and models labelled."""
    questions, drawn = judging.questions, judging.figures
    text = [
        sentence for name in _IN_REPORT if name in questions for sentence in questions[name].text
    ]
    panels = [[f"models-{name}" for name in row if name in drawn] for row in _PICTURES]
    return Section("models", "Models and people", text, panels=[row for row in panels if row])


def section_figures(judging: Judging) -> dict[str, Figure]:
    """Return the figures of that section, by the names it uses."""
    return {f"models-{name}": figure for name, figure in judging.figures.items()}
