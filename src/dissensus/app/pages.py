"""The pages of the workbench: what each shows, from the present state."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from importlib.resources import files
from typing import Any
from urllib.parse import urlencode

import numpy as np

from .. import __version__
from ..answers.annotations import Annotations
from ..errors import DataError, DissensusError
from ..formats.spellings import about_spellings
from ..metrics import krippendorff_alpha
from ..pages import embedding
from ..pages.page import chart_specs
from ..pages.terminal import with_flags, words_of
from ..pages.wording import amount, percent
from ..quality.sections import MAX_ANNOTATORS
from ..registry import aggregators
from . import exports
from .browse import SORTS, VOTES, Catalogue, Filter, as_named, detail, media_of
from .decisions import DISPUTED, STATUSES, Changes, fingerprint
from .fits import Fit
from .guard import Session
from .journal import Entry
from .workbench import Workbench

_SHOWN = 100  # items in lists of changes
_CHARTS = ("classes", "confidence", "annotators")
Query = Mapping[str, str]
_METHODS = ("auto", "majority", "dawid-skene", "hierarchical", "glad", "mace", "iwmv")


@dataclass
class Pages:
    """Pages as HTML, for one workbench."""

    workbench: Workbench

    def __post_init__(self) -> None:
        self._catalogue = Catalogue(self.workbench.present.fit)

    @property
    def catalogue(self) -> Catalogue:
        """The items of the present fit."""
        fit = self.workbench.present.fit
        if self._catalogue.fit is not fit:
            self._catalogue = Catalogue(fit)
        return self._catalogue

    def fill(self, template: str, session: Session, **values: Any) -> str:
        """Return a page."""
        return (
            _environment()
            .get_template(template)
            .render(
                session=session,
                name=self.workbench.name,
                status=self.status(),
                version=__version__,
                request=secrets.token_urlsafe(12),
                **values,
            )
        )

    # Looking.

    def overview(self, session: Session, _query: Query) -> str:
        """Return what is known, and what to do."""
        report = self.workbench.present.fit.report
        charts = {name: figure for name, figure in report.charts.items() if name in _CHARTS}
        return self.fill(
            "overview.html",
            session,
            opening=report.opening,
            spellings=about_spellings(report.reading.notes),
            charts=charts,
            data=embedding.as_json(chart_specs(charts)),
            progress=self.workbench.progress(),
            reviewers=self.reviewers(),
            outdated=self.outdated(),
        )

    def items(self, session: Session, query: Query) -> str:
        """Return the list of items."""
        filter_, present = Filter.of(query), self.workbench.present
        if session.blind:
            filter_ = Filter(filter_.q, status=filter_.status, sort="item", page=filter_.page)
        catalogue = self.catalogue
        page = catalogue.find(present, filter_)
        return self.fill(
            "items.html",
            session,
            filter=filter_._replace(page=page.page),
            list=page,
            classes=present.fit.annotations.classes.tolist(),
            causes=catalogue.causes,
            statuses=STATUSES,
            votes=VOTES,
            sorts=SORTS,
            texts=bool(present.fit.report.texts),
        )

    def item(self, session: Session, query: Query) -> str:
        """Return an item, to look at and to decide on."""
        name = query.get("name", "")
        self.workbench.reserve(session.reviewer, name)
        return self._item(session, name, origin="item")

    def review(self, session: Session, query: Query) -> str:
        """Return the next item of the queue."""
        if "skip" in query:
            session.skipped.add(query["skip"])
        assignment = self.workbench.next_item(session.reviewer, frozenset(session.skipped))
        if assignment is None:
            return self.fill("done.html", session, progress=self.workbench.progress())
        return self._item(session, assignment.item, origin="review", drawn=assignment.drawn)

    def _item(self, session: Session, name: str, *, origin: str, drawn: bool = False) -> str:
        workbench, present = self.workbench, self.workbench.present
        code = present.fit.codes.get(name)
        if code is None:
            raise DataError(f"no item {name!r}")
        item = detail(self.catalogue, present, code)
        media = media_of(item.text, workbench.folder)
        present_name = present.fit.changes.name
        decisions = {
            reviewer: decision._replace(value=present_name(decision.value))
            for reviewer, decision in workbench.decisions.of(name).items()
        }
        return self.fill(
            "item.html",
            session,
            item=item,
            origin=origin,
            drawn=drawn,
            media=None if media is None else media.kind.partition("/")[0],
            classes=present.fit.annotations.classes.tolist(),
            own=decisions.get(session.reviewer),
            others=[
                decision for decision in decisions.values() if decision.reviewer != session.reviewer
            ],
            arbiter=workbench.decisions.arbiter,
            disputed=present.status[code] == DISPUTED,
            progress=workbench.progress(),
            can_undo=workbench.decisions.last(session.reviewer) is not None,
            changes=present.fit.changes_number,
            labels=fingerprint(present.fit.file, code),
        )

    def annotators(self, session: Session, query: Query) -> str:
        """Return the list of annotators, the worst first."""
        present = self.workbench.present
        scores, annotations = present.fit.report.annotator_scores, present.fit.annotations
        word = query.get("q", "").strip().lower()[:200]
        verdict = query.get("verdict", "")
        worst, verdicts = scores.worst, scores.verdict
        columns = (
            annotations.annotators[worst].tolist(),
            annotations.labels_per_annotator[worst].tolist(),
            present.accuracy[worst].tolist(),
            present.touched[worst].tolist(),
            verdicts[worst].tolist(),
        )
        rows = [
            row
            for row in zip(*columns, strict=True)
            if row[1] and word in row[0].lower() and verdict in ("", row[4])
        ]
        return self.fill(
            "annotators.html",
            session,
            rows=rows[:MAX_ANNOTATORS],
            n_found=len(rows),
            verdicts=sorted(set(verdicts.tolist())),
            word=query.get("q", ""),
            verdict=verdict,
            left_out=present.fit.changes.left_out,
        )

    def annotator(self, session: Session, query: Query) -> str:
        """Return an annotator: the verdict, its evidence, and labels that differ."""
        name = query.get("name", "")
        present = self.workbench.present
        annotations, report = present.fit.annotations, present.fit.report
        code = present.fit.people.get(name)
        if code is None and name in present.fit.changes.left_out:
            return self.fill("annotator.html", session, who=name, left_out=True)
        if code is None:
            raise DataError(f"no annotator {name!r}")
        rows = np.flatnonzero(annotations.annotator == code)
        items, labels = annotations.item[rows], annotations.label[rows]
        differs = (present.label[items] != labels) & (present.label[items] >= 0)
        surest = np.argsort(-present.certainty[items[differs]], kind="stable")[:_SHOWN]
        rows_listed = [
            (str(annotations.items[item]), str(annotations.classes[label]), present.label[item])
            for item, label in zip(
                items[differs][surest].tolist(), labels[differs][surest].tolist(), strict=True
            )
        ]
        return self.fill(
            "annotator.html",
            session,
            who=name,
            left_out=False,
            verdict=str(report.annotator_scores.verdict[code]),
            evidence=report.annotator_scores.evidence[code],
            accuracy=float(present.accuracy[code]),
            touched=bool(present.touched[code]),
            n_labels=len(rows),
            n_differs=int(differs.sum()),
            differs=[
                (item, label_given, str(annotations.classes[label_now]))
                for item, label_given, label_now in rows_listed
            ],
        )

    # What if.

    def what_if(self, session: Session, query: Query, lists: Mapping[str, list[str]]) -> str:
        """Return a form for changes, and their effect where some are asked for."""
        workbench = self.workbench
        kept_changes, original = workbench.decisions.changes, workbench.reading.annotations
        changes = _changes_of(lists, original) if query.get("try") else kept_changes
        effect, problem = None, ""
        if query.get("try"):
            try:
                effect = workbench.what_if(changes)
            except DissensusError as error:
                problem = words_of(error)
        names = original.annotators.tolist()
        worst = [str(name) for name in _worst(workbench.present.fit)]
        listed = list(dict.fromkeys([*changes.left_out, *worst[:MAX_ANNOTATORS]]))
        return self.fill(
            "what_if.html",
            session,
            kept=kept_changes,
            last=workbench.decisions.last_change,
            asked=changes,
            query=_query_of(changes),
            differs=changes != kept_changes,
            effect=effect,
            problem=problem,
            skipped=workbench.skipped,
            rows=_changed_rows(workbench.present.fit, effect),
            listed=[name for name in listed if name in set(names)],
            n_annotators=len(names),
            classes=original.classes.tolist(),
            mark=_mark_of(original),
            methods=[aggregators.describe(aggregators.create(method)) for method in _METHODS],
            method=workbench.method,
        )

    def changes_asked(self, lists: Mapping[str, list[str]]) -> Changes:
        """Return the changes that a form asks for."""
        return _changes_of(lists, self.workbench.reading.annotations)

    # Taking home.

    def take_home(self, session: Session, _query: Query) -> str:
        """Return what can be exported."""
        fit, command = self.workbench.present.fit, self.workbench.caller.command
        titles = {name: title for name, (title, _) in exports.OF_FIT.items()}
        if command is None:
            del titles["script"]
        return self.fill(
            "take_home.html",
            session,
            settled=self.workbench.settled,
            waiting=self.workbench.decisions.number - fit.number,
            formats=exports.formats(),
            of_fit=titles,
            command="" if command is None else " ".join(command(exports.settings(fit))),
            n_decided=len(fit.gold),
            unknown=fit.unknown,
            skipped=self.workbench.skipped,
            apart=len(self.workbench.decisions.apart),
            reviewers=self.reviewers(),
        )

    # About everybody.

    def status(self) -> dict[str, Any]:
        """Return what happens in the background."""
        workbench = self.workbench
        waiting = workbench.decisions.number - workbench.present.fit.number
        return {
            "fitting": workbench.fitting,
            "waiting": waiting,
            "settled": workbench.settled,
            "problem": workbench.problem,
            "outdated": workbench.outdated_words,
            "message": workbench.messages[-1] if workbench.messages else "",
        }

    def reviewers(self) -> dict[str, Any]:
        """Return who decided how much, and how well reviewers agree."""
        decisions = self.workbench.decisions
        entries = decisions.all
        counts: dict[str, int] = {}
        for entry in entries:
            counts[entry.reviewer] = counts.get(entry.reviewer, 0) + 1
        disputed = [item for item in decisions.items if decisions.status(item) == DISPUTED]
        alpha = _reviewer_alpha(entries, decisions.changes)
        return {"counts": counts, "disputed": len(disputed), "alpha": alpha}

    def outdated(self) -> dict[str, Any]:
        """Return the decisions on labels that are not in the file any more."""
        workbench = self.workbench
        entries, name = workbench.decisions.outdated, workbench.decisions.changes.name
        rows = [
            (
                entry.item,
                entry.reviewer,
                name(entry.value) if entry.kind == "label" else entry.kind,
                entry.at,
            )
            for entry in entries[:_SHOWN]
        ]
        mark = workbench.outdated_mark if entries else ""
        return {"rows": rows, "count": len(entries), "mark": mark}

    def login(self, problem: str = "") -> str:
        """Return the form for a name and a password."""
        page = _environment().get_template("login.html")
        return page.render(name=self.workbench.name, problem=problem, version=__version__)

    def failed(self, session: Session | None, problem: str) -> str:
        """Return a page about an error."""
        if session is None:
            return problem
        return self.fill("problem.html", session, problem=problem)


def _reviewer_alpha(entries: list[Entry], changes: Changes) -> float | None:
    """Return the agreement of reviewers; `None` where no two decided on the same item."""
    by_item: dict[str, int] = {}
    for entry in entries:
        by_item[entry.item] = by_item.get(entry.item, 0) + 1
    if not any(count > 1 for count in by_item.values()):
        return None
    name = changes.name
    words = [name(entry.value) if entry.kind == "label" else f"({entry.kind})" for entry in entries]
    items, people = [entry.item for entry in entries], [entry.reviewer for entry in entries]
    value = krippendorff_alpha(Annotations.from_columns(items, people, words))
    return None if np.isnan(value) else value


def _worst(fit: Fit) -> list[str]:
    return fit.annotations.annotators[fit.report.annotator_scores.worst].tolist()


def _changes_of(lists: Mapping[str, list[str]], annotations: Annotations) -> Changes:
    """Return the changes of a form: `leave` annotators, `class-k` new names, `method`.

    A form whose `classes` are a mark of others was shown before the file changed, so its k-th
    class may be another one now.
    """
    mark = _mark_of(annotations)
    if lists.get("classes", [mark])[-1] != mark:
        raise DataError("the classes in the file have changed since; open What if again")
    people = set(annotations.annotators.tolist())
    left_out = tuple(dict.fromkeys(as_named(name, people) for name in lists.get("leave", [])))
    renamed = {}
    for position, name in enumerate(annotations.classes.tolist()):
        (sent,) = lists.get(f"class-{position}", [name])[:1]
        sent_unchanged = (
            name,
            "".join(re.split("[\r\n]", name)),
        )  # fields of one line lose line breaks
        new = " ".join(sent.split())[:200]
        if new and as_named(sent, [name]) not in sent_unchanged and new != name:
            renamed[name] = new
    method = lists.get("method", [""])[0]
    return Changes(left_out, renamed, method)


def _mark_of(annotations: Annotations) -> str:
    """Return what stands for the classes and their order."""
    return sha256(json.dumps(annotations.classes.tolist()).encode()).hexdigest()


def _query_of(changes: Changes) -> list[tuple[str, str]]:
    """Return the fields of a form that asks for changes; classes go by name."""
    pairs = [("leave", name) for name in changes.left_out]
    return [*pairs, ("method", changes.method)] if changes.method else pairs


def _changed_rows(fit: Fit, effect: Any) -> list[tuple[str, str, str]]:
    if effect is None:
        return []
    codes = effect.changed[:_SHOWN].tolist()
    names = fit.annotations.items[codes].tolist() if codes else []
    return list(zip(names, effect.before[:_SHOWN], effect.after[:_SHOWN], strict=True))


@lru_cache
def _environment() -> Any:
    """Return the templates of the app, and those of the report that they share."""
    from jinja2 import Environment, FunctionLoader

    def load(name: str) -> str | None:
        own = files(__package__).joinpath("templates", name)
        return own.read_text(encoding="utf-8") if own.is_file() else embedding.resource(name)

    environment = Environment(
        loader=FunctionLoader(load), autoescape=True, trim_blocks=True, finalize=with_flags
    )
    environment.filters["percent"] = percent
    environment.filters["amount"] = amount
    environment.globals["link"] = _link
    environment.globals["markup"] = _markup
    return environment


def _link(path: str, **query: str) -> str:
    """Return the address of a page about a name."""
    return f"{path}?{urlencode(query)}"


def _markup(text: str) -> Any:
    from markupsafe import Markup

    return Markup(text)
