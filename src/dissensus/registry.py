"""Methods by name: `name[setting=value,…]`, as on the command line, in reports and file names.

One table per family maps names to `module:Class`, imported on first use. The command line, the
docs, the contract tests and the benchmarks iterate over these tables. Case, `-` and `_` are
ignored, also in settings. Aliases may fix settings, which brackets override.

>>> aggregators.create("Dawid_Skene[smoothing=1]")
DawidSkene(max_iter=200, tol=1e-06, restarts=1, smoothing=1.0)
>>> aggregators.describe(_)
'dawid-skene[smoothing=1.0]'
>>> aggregators.create("dawid")
Traceback (most recent call last):
dissensus.errors.MethodError: no method 'dawid'; did you mean dawid-skene?
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass
from difflib import get_close_matches
from functools import cache, cached_property, update_wrapper
from importlib import import_module
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, cast
from warnings import warn

from .errors import KindError, MethodError, OptionError
from .params import Settings, describe_fields, format_value

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from .aggregation.classes import ClassMethod
    from .aggregation.numbers import NumberMethod
    from .datasets.strategy import AnswerStrategy, Strategy
    from .deep.learning.base import LearningMethod
    from .deep.meta.base import AdapterSettings
    from .deep.recovery.base import RecoveryMethod
    from .deep.tendency import TendencyMethod
    from .method import Method
    from .planning.policies import Policy

METHODS = "dissensus.methods"  # the group of entry points
_METHOD = "dissensus.method:Method"  # what plug-ins are subclasses of

Kind = TypeVar("Kind", bound=Settings)
Found = TypeVar("Found")
Given = ParamSpec("Given")
Returned = TypeVar("Returned")
Behaviour = TypeVar("Behaviour", bound=Callable[..., Any])

_FOR_ALL = ("progress", "seed")  # arguments of a verb that a behaviour may do without
_COMMA = re.compile(r""",(?=(?:[^'"]|'[^']*'|"[^"]*")*$)""")  # outside quotes
_SPEC = re.compile(r"\s*([^\[\]]+?)\s*(?:\[(.*)\])?\s*", re.DOTALL)


@cache
def plug_ins(group: str) -> Mapping[str, EntryPoint]:
    """Return what other packages offer in a group, by name; read on first need."""
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in entry_points(group=group)}


@dataclass(frozen=True)
class Registry(Generic[Kind]):
    """The methods of one family: those that come with the package, and plug-ins.

    A plug-in is an entry point of the group `dissensus.methods`: its name, and `module:Class` of a
    `Method` whose `kinds` it is for. It never hides a name that comes with the package. What other
    packages offer is looked up where a name is not known, and where all methods are listed.
    """

    family: str
    table: Mapping[str, str]  # name → module:Class
    aliases: Mapping[str, str]  # other name → specification
    kind: str = ""  # of answers that its methods take; other families have no plug-ins

    def __iter__(self) -> Iterator[str]:
        return iter((*self.table, *self.others))

    @cached_property
    def others(self) -> Mapping[str, str]:
        """Plug-ins of this family: name → module:Class."""
        if not self.kind:
            return {}
        base, targets = _class_of(_METHOD), {}
        for name, entry in plug_ins(METHODS).items():
            if name in self.table or name in self.aliases:
                continue
            try:
                cls = entry.load()
            except Exception as problem:
                warn(f"plug-in {name} ({entry.value}) does not load: {problem!r}", stacklevel=2)
                continue
            if issubclass(cls, base) and self.kind in cls.kinds:
                targets[name] = f"{cls.__module__}:{cls.__qualname__}"
        return targets

    def find(self, name: str) -> type[Kind]:
        """Return the class of a method."""
        target = self.table.get(name) or self.others[name]
        return cast("type[Kind]", _class_of(target))

    def load(self, cls: str) -> type[Kind]:
        """Return a class by its own name, for packages that import methods on first use."""
        for name, target in self.table.items():
            if target.endswith(f":{cls}"):
                return self.find(name)
        raise AttributeError(f"no method has the class {cls!r}")

    def resolve(self, spec: str) -> tuple[str, dict[str, Any]]:
        """Return a method's own name and the settings of a specification."""
        name, settings = split_spec(spec)
        specs = dict(self.aliases) | {known: known for known in self.table}
        if _plain(name) not in map(_plain, specs):
            specs |= {known: known for known in self.others}
        known, preset = split_spec(find_by_name("method", name, specs, self.table))
        return known, preset | settings

    def create(self, spec: str) -> Kind:
        """Return the method that a specification describes."""
        name, settings = self.resolve(spec)
        cls = self.find(name)
        known = {_plain(field.name): field.name for field in describe_fields(cls)}
        for setting in settings:
            if _plain(setting) not in known:
                names = ", ".join(known.values()) or "none"
                raise MethodError(f"{name} has no setting {setting!r}; it has {names}")
        settings = {known[_plain(setting)]: value for setting, value in settings.items()}
        for field in describe_fields(cls):
            if field.default is MISSING and field.name not in settings:
                raise MethodError(f"{name} needs {field.name}: write {name}[{field.name}=…]")
        return cls(**settings)

    def describe(self, method: Kind) -> str:
        """Return the shortest specification of this method."""
        cls = type(method)
        target = f"{cls.__module__}:{cls.__name__}"
        name = next((name for name, known in self.table.items() if known == target), "")
        name = name or next(name for name, known in self.others.items() if known == target)
        settings = [
            f"{field.name}={format_value(getattr(method, field.name))}"
            for field in describe_fields(cls)
            if getattr(method, field.name) != field.default
        ]
        return f"{name}[{','.join(settings)}]" if settings else name

    def other_names(self, name: str) -> dict[str, str]:
        """Return the aliases of a method and their specifications."""
        return {
            alias: target for alias, target in self.aliases.items() if split_spec(target)[0] == name
        }


@dataclass(frozen=True)
class ReducibleRegistry(Registry[Kind]):
    """The methods for a kind of answers that reduces to classes.

    `reduction` names the method that reduces it, whose setting is an `aggregator`; every method for
    classes is then a method of this kind too.
    """

    reduction: str = ""

    def create(self, spec: str) -> Kind:
        """Return the method that a specification describes."""
        name, _ = split_spec(spec)
        own = {_plain(known) for known in (*self.table, *self.aliases)}
        if _plain(name) in own or _plain(name) in map(_plain, self.others):
            return super().create(spec)
        names = [*self.table, *aggregators]
        known = dict.fromkeys([*names, *self.aliases, *aggregators.aliases])
        find_by_name("method", name, known, names)
        aggregator = aggregators.describe(aggregators.create(spec))
        return self.find(self.reduction)(aggregator=aggregator)  # type: ignore[call-arg]

    def describe(self, method: Kind) -> str:
        """Return the shortest specification of this method."""
        spec = super().describe(method)
        name, settings = split_spec(spec)
        if name == self.reduction and settings.keys() == {"aggregator"}:
            return str(settings["aggregator"])
        return spec


def _class_of(target: str) -> Any:
    module, _, attribute = target.partition(":")
    return getattr(import_module(module), attribute)


class Verb(Generic[Given, Returned]):
    """A function of answers of any kind: one signature, and a behaviour for every kind.

    Parameters
    ----------
    declared
        The function whose signature, types and documentation are those of the verb; it never runs.
    read
        Makes answers of what the first argument is: a path, a table, or answers already. Settings
        of the verb that it takes as well are passed to it, too.
    together
        What settings make together, by the name that behaviours have for it.
    """

    def __init__(
        self,
        declared: Callable[Given, Returned],
        read: Callable[..., Any],
        together: Mapping[str, Callable[..., Any]],
    ) -> None:
        self.behaviours: dict[str, Callable[..., Returned]] = {}
        self.lacks: dict[str, tuple[str, str]] = {}  # kind → notimpl, notyet or never, and why
        self._signature, self._read, self._together = signature(declared), read, together
        self._of_reading = tuple(signature(read).parameters)[1:]
        self.__name__: str = declared.__name__
        update_wrapper(self, declared)

    def for_kind(self, *kinds: str) -> Callable[[Behaviour], Behaviour]:
        """Register what the verb does with answers of these kinds."""

        def register(behaviour: Behaviour) -> Behaviour:
            self.behaviours |= dict.fromkeys(kinds, behaviour)
            return behaviour

        return register

    def lacking(self, kind: str, word: str, reason: str) -> None:
        """Register why answers of a kind are not taken; see `KindError`."""
        self.lacks[kind] = word, reason

    def __call__(self, *args: Given.args, **kwargs: Given.kwargs) -> Returned:
        """Read the first argument, and do what the verb does with its kind.

        An argument that this behaviour does not take, other than the default, is an error; a seed
        where nothing is drawn is not.
        """
        bound = self._signature.bind(*args, **kwargs)
        name, *others = self._signature.parameters
        how = {word: bound.arguments[word] for word in self._of_reading if word in bound.arguments}
        answers = self._read(bound.arguments[name], **how)
        if answers.kind in self.lacks:
            raise KindError(self.__name__, answers.kind, *self.lacks[answers.kind])
        behaviour = self.behaviours[answers.kind]
        bound.apply_defaults()
        parameters = signature(behaviour).parameters
        passes_on = any(one.kind is Parameter.VAR_KEYWORD for one in parameters.values())
        accepted = {*parameters, *(others if passes_on else ())}
        settings = {word: bound.arguments[word] for word in others if word in accepted}
        used = {*accepted, *self._of_reading, *_FOR_ALL}
        for word, make in self._together.items():
            if word in accepted:
                parts = signature(make).parameters
                settings[word] = make(**{part: bound.arguments[part] for part in parts})
                used |= {*parts}
        for word in others:
            default, value = self._signature.parameters[word].default, bound.arguments[word]
            if word not in used and value is not default and value != default:
                raise OptionError(f"{self.__name__} of {answers.kind} has no {word}")
        return behaviour(answers, **settings)


def by_kind(
    read: Callable[..., Any], **together: Callable[..., Any]
) -> Callable[[Callable[Given, Returned]], Verb[Given, Returned]]:
    """Declare a verb; its behaviours are registered with `for_kind`.

    A behaviour takes the settings that it names, and whole what `together` makes of several.

    >>> @by_kind(read=lambda answers: answers)
    ... def count(answers, times=1): "Return how many answers there are."
    >>> @count.for_kind("sets")
    ... def count_sets(sets, times): return times * len(sets)
    >>> @count.for_kind("texts")
    ... def count_texts(texts): return len(texts)
    >>> from dissensus.answers import Sets, Texts
    >>> count(Sets.from_values(["a"], ["x"], [["cat", "dog"]]), times=2)
    2
    >>> count(Texts.from_values(["a"], ["x"], ["a cat"]), times=2)
    Traceback (most recent call last):
    dissensus.errors.OptionError: count of texts has no times
    """
    return lambda declared: Verb(declared, read, together)


def split_spec(spec: str) -> tuple[str, dict[str, Any]]:
    """Split `name[key=value,…]`; bare words are strings, other values Python literals.

    >>> split_spec("dswc[L=5, kind=soft, scale=1e-4]")
    ('dswc', {'L': 5, 'kind': 'soft', 'scale': 0.0001})
    """
    match = _SPEC.fullmatch(spec)
    if match is None:
        raise MethodError(f"cannot read {spec!r}; write name or name[setting=value,…]")
    name, inside = match.groups()
    settings: dict[str, Any] = {}
    for entry in filter(None, map(str.strip, _COMMA.split(inside or ""))):
        key, equals, value = map(str.strip, entry.partition("="))
        if not equals or not key:
            raise MethodError(f"cannot read {entry!r} in {spec!r}; write setting=value")
        settings[key] = _value(value)
    return name, settings


def from_peerannot(spec: str) -> str:
    """Return a specification written for peerannot as ours, without what has no effect here.

    >>> from_peerannot("IWMV[sparse=True]")
    'iterative-wawa'
    >>> from_peerannot("DSWC[L=5]")
    'DSWC[L=5]'
    """
    name, settings = split_spec(spec)
    name = "iterative-wawa" if _plain(name) == "iwmv" else name  # one name of two methods
    used = {key: value for key, value in settings.items() if key not in ("sparse", "parrots")}
    inside = ",".join(f"{key}={format_value(value)}" for key, value in used.items())
    return f"{name}[{inside}]" if inside else name


def _value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return text


def find_by_name(what: str, name: str, known: Mapping[str, Found], names: Iterable[str]) -> Found:
    """Return the entry of a name or alias; the error suggests the closest, or lists `names`."""
    written = {_plain(other): other for other in known}
    if _plain(name) in written:
        return known[written[_plain(name)]]
    close = get_close_matches(_plain(name), written, n=1, cutoff=0.5)
    hint = f"did you mean {written[close[0]]}?" if close else f"there are {', '.join(names)}"
    raise MethodError(f"no {what} {name!r}; {hint}")


def _plain(name: str) -> str:
    return name.casefold().replace("-", "").replace("_", "").replace(" ", "")


def _table(package: str, names: str) -> dict[str, str]:
    """Return name → module:Class; both follow from the name, except in `module:name=Class`.

    >>> _table("aggregation", "dawid-skene")
    {'dawid-skene': 'dissensus.aggregation.dawid_skene:DawidSkene'}
    """
    table = {}
    for entry in names.split():
        path, _, cls = entry.partition("=")
        module, _, name = path.rpartition(":")
        module, cls = module or name.replace("-", "_"), cls or name.title().replace("-", "")
        table[name] = f"dissensus.{package}.{module}:{cls}"
    return table


aggregators: Registry[ClassMethod] = Registry(
    "aggregate",
    _table(
        "aggregation",
        """
        auto votes:majority votes:naive-soft votes:two-thirds votes:weighted votes:gold-majority
        weighted_votes:wawa weighted_votes:iwmv weighted_votes:log-odds weighted_votes:zbs
        weighted_votes:plantnet message_passing:kos m-msr truth_discovery:catd truth_discovery:crh
        truth_discovery:pm dawid-skene dawid_skene:wds dawid_skene:dawid-skene-map bcc one-coin
        one_coin:diagonal dawid_skene:fast-dawid-skene dawid_skene:hybrid-dawid-skene
        one_coin:hierarchical one_coin:two-level glad mace dswc dswc:dswc-vb bcc:cbcc
        minimax-entropy crossed-effects message_passing:vi-mf message_passing:vi-bp multidimensional
        lfc ordinal-distance ordinal_distance:ordinal-split ordinal-latent
        """,
    )
    | _table("judging", "pool:judge-pool"),
    {
        "MV": "majority",
        "majority-voting": "majority",
        "majority-vote": "majority",
        "NS": "naive-soft",
        "two-third": "two-thirds",
        "weighted-majority-vote": "weighted",
        "gold-majority-vote": "gold-majority",
        # What peerannot runs as IWMV: ten iterations of Wawa.
        "iterative-wawa": "iwmv[weights=accuracy,max_iter=10]",
        "zero-based-skill": "zbs",
        # As published with peerannot: maximum likelihood, fifty iterations, no test of convergence.
        "DS": "dawid-skene[smoothing=0,tol=0,max_iter=50]",
        "MAP": "dawid-skene-map",
        "LFC-DS": "dawid-skene-map",
        "IBCC": "bcc",
        "BCC-VB": "bcc",
        "VB": "bcc",
        "one-coin-dawid-skene": "one-coin",
        "HDS": "one-coin",
        # As in the survey of Zheng et al. (2017): maximum likelihood, stopped after 20 E-steps.
        "ZC": "one-coin[prevalence=uniform,strength=0,tol=0,max_iter=19]",
        # As published: no smoothing, and the first of tied classes.
        "FDS": "fast-dawid-skene[smoothing=0,ties=first]",
        "hybrid-DS": "hybrid-dawid-skene[smoothing=0,ties=first]",
        "hier-eb": "hierarchical[pooled=1,estimate=True]",
        # As published with peerannot: conjugate gradients, stopped as soon as they gain little.
        "GLAD-CG": "glad[solver=cg,tol=1e-5,max_iter=50]",
        "dawid-skene-clust": "dswc",
        "community-BCC": "cbcc",
        "MMCE": "minimax-entropy",
        "multi": "multidimensional",
        "CUBAM": "multidimensional",
        "diag-eb": "hierarchical[pooled=0,estimate=True]",
    },
    kind="classes",
)

estimators: Registry[NumberMethod] = Registry(
    "estimate",
    _table(
        "aggregation",
        """
        numbers:mean numbers:median numbers:trimmed-mean truth_discovery:lfc-n gaussian
        gaussian:peer-grading truth_discovery:catd=NumberCatd truth_discovery:crh=NumberCrh
        truth_discovery:pm=NumberPm
        """,
    ),
    {
        "auto": "mean",
        "student-t": "gaussian[freedom=4]",
        # The first model of Piech et al. (2013): reliability does not depend on the own grade.
        "PG1": "peer-grading[tied=False]",
    },
    kind="numbers",
)

# Methods for answers of other kinds; the first is the default, which is also called auto.
_OF_KIND = {
    "spans": "spans:span-pool spans:candidates objects sequence medoid",
    "boxes": "objects medoid",
    "points": "objects medoid",
    "masks": "masks:weighted-masks masks:staple medoid",
    "sets": "joint-sets sets:per-option medoid",
    "rankings": "bradley-terry rankings:plackett-luce rankings:borda",
    "texts": "auto=TextAuto rover medoid",
}
# The method that reduces a kind to classes, and takes any method for classes.
_REDUCTIONS = {"spans": "candidates", "boxes": "objects", "points": "objects", "sets": "per-option"}


def _registry_of(kind: str, names: str) -> Registry[Any]:
    table = _table("aggregation", names)
    default = {} if "auto" in table else {"auto": next(iter(table))}
    if kind not in _REDUCTIONS:
        return Registry(f"aggregate {kind}", table, default, kind)
    return ReducibleRegistry(f"aggregate {kind}", table, default, kind, _REDUCTIONS[kind])


methods: Mapping[str, Registry[Any]] = {  # kind → its methods
    "classes": aggregators,
    "numbers": estimators,
    **{kind: _registry_of(kind, names) for kind, names in _OF_KIND.items()},
}

# Methods for answers of other kinds than classes and numbers, each once.
answer_methods: Registry[Method[Any, Any]] = Registry(
    "consensus",
    {name: target for kind in _OF_KIND for name, target in methods[kind].table.items()},
    {},
)

simulators: Registry[Strategy] = Registry(
    "simulate",
    _table(
        "datasets",
        """
        confusions:hammer-spammer confusions:independent-confusion confusions:given-matrices
        confusions:student-teacher confusions:discrete-difficulty confusions:glad confusions:mace
        confusions:one-coin confusions:community confusions:ordinal raters:numeric
        raters:peer-grading
        """,
    ),
    {"matrix-independent": "given-matrices"},
)

answer_simulators: Registry[AnswerStrategy] = Registry(
    "simulate",
    _table(
        "datasets",
        """
                    answer_crowds:objects answer_crowds:comparisons answer_crowds:masks
                    answer_crowds:sets
                    """,
    ),
    {},
)

learners: Registry[LearningMethod] = Registry(
    "aggregate-deep",
    _table(
        "deep.learning",
        """
        raykar:two-stage raykar confusion_layers:crowd-layer confusion_layers:crowd-layer-vw
        confusion_layers:crowd-layer-vw-b confusion_layers:crowd-layer-vb
        confusion_layers:crowd-layer-sw confusion_layers:conal confusion_layers:confusion-layer
        confusion_layers:trace-reg confusion_layers:geo-crowdnet-f confusion_layers:geo-crowdnet-w
        confusion_layers:union-net annotator_networks:madl annotator_networks:annot-mix
        annotator_networks:crowd-ar max-mig max_mig:doctor-net confusion_layers:global-noise
        """,
    ),
    {
        "aggnet": "raykar",
        "crowd-layer-mw": "crowd-layer",
        # As published: from every label on its own.
        "coupled": "confusion-layer[joint=False,spread=2]",
        "CCEM": "confusion-layer[joint=False,spread=2]",
        "goldberger": "global-noise",
    },
)

adapters: Registry[AdapterSettings] = Registry(
    "meta",
    _table(
        "deep.meta",
        """
        em:em-full em_variants:em-one-coin em_variants:em-kinds em_variants:em-item-confusion
        baselines:prototypes baselines:ridge baselines:cnp baselines:maml
        """,
    ),
    {
        "em": "em-full",
        "soft-votes": "em-full[steps=1]",
        "protonet": "prototypes",
        "protonet-mv": "prototypes",
        "protonet-ds": "prototypes[labels=dawid-skene]",
        "r2-d2": "ridge",
        "fomaml": "maml[first_order=True]",
    },
)

policies: Registry[Policy] = Registry(
    "next",
    _table(
        "planning",
        """
                policies:joint policies:bald policies:uncertainty policies:active-lab
                policies:random
                """,
    ),
    {},
)

recoverers: Registry[RecoveryMethod] = Registry(
    "recover fit",
    _table(
        "deep.recovery",
        """
        estimator:auto seedbert=SeedBert heads:single heads=EnsembleOfHeads heads:attention-heads
        heads:deep-ensemble heads:mc-dropout heads:bayes-head baselines:kernel-ridge
        baselines:marginal baselines:ldl baselines:multi-task
        """,
    ),
    {
        "bert": "seedbert[n=1]",
        "gaussian-process": "kernel-ridge",
        "BNN": "bayes-head",
        "seeds": "heads[sample=same]",
        "bagged-heads": "heads",
    },
)

tendencies: Registry[TendencyMethod] = Registry(
    "tendency fit",
    _table(
        "deep.tendency",
        """
        auto linear published:sim-label baselines:own-majority baselines:consensus
        baselines:confused-consensus baselines:independent vector_networks:multi-task
        vector_networks:annotator-embedding vector_networks:hubi-simple vector_networks:hubi-medium
        vector_networks:hubi-formula vector_networks:d-lema published:padl
        published:crowd=CrowdMethod auto:query qumatl
        """,
    ),
    {
        "low-rank": "linear[rank=3,own=0]",
        "shared": "linear[bias=0,slope=0,own=0,metadata=0]",
        "DS-confusion": "confused-consensus",
        "E_a": "annotator-embedding[annotations=False]",
        "E_n": "annotator-embedding[annotator=False]",
        "madl": "crowd[learner=madl]",
        "doctor-net": "crowd[learner='doctor-net']",
        # The setting of the published code, then the ablations of the paper.
        "qumab": "qumatl[unit=True,fc_dropout=0.5,head_dropout=0.3,activation=relu,batch=64,"
        "lr=1e-5,choose=likelihood]",
        "qumatl-base": "qumatl[qformer=False]",
        "U-cls": "qumatl[head=shared]",
        "pre-mv": "qumatl[votes=before]",
        "post-mv": "qumatl[votes=after]",
    },
)

# Scores of items that train a network; functions, not methods.
network_scores: Registry[Any] = Registry(
    "score",
    {
        "aum": "dissensus.deep.learning.hard_items:aum",
        "aumc": "dissensus.deep.learning.hard_items:aumc",
        "waum": "dissensus.deep.learning.hard_items:waum",
        "waum_perworker": "dissensus.deep.learning.hard_items:waum",
    },
    {},
)
ON_TORCH = (learners, tendencies, recoverers, adapters)
REGISTRIES: tuple[Registry[Any], ...] = (
    aggregators,
    answer_methods,
    estimators,
    *ON_TORCH,
    simulators,
    answer_simulators,
    policies,
)
