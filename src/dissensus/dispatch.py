"""Verbs by kind: one function for answers of every kind, and a behaviour for each.

The declared function is the signature, the documentation and the command; what it does with answers
of a kind is registered by the kind's name, in the file that knows this kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import update_wrapper
from inspect import Parameter, signature
from typing import Any, Generic, ParamSpec, TypeVar

from .errors import KindError, OptionError

Given = ParamSpec("Given")
Returned = TypeVar("Returned")
Behaviour = TypeVar("Behaviour", bound=Callable[..., Any])

_FOR_ALL = ("progress", "result", "seed")  # what a behaviour may do without


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
