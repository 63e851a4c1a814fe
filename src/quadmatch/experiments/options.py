"""Options of a part, checked against the signature of what builds it: a wrong key is named at once."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from typing import Any, get_args, get_type_hints, is_typeddict

from pydantic import PydanticUserError, TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError

from quadmatch.methods.method import Method


class OptionsError(ValueError):
    """What is wrong with some options, by key."""

    def __init__(self, problems: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{key}: {problem}" for key, problem in problems.items()))
        self.problems = dict(problems)


def describe_unknown(key: str, known: Collection[str]) -> str:
    """For a key that nothing takes: what was perhaps meant, or else all that is known."""
    if close := get_close_matches(key, known, n=1):
        return f"unknown key; is {close[0]!r} meant?"
    return f"unknown key; known are {', '.join(sorted(known))}"


def list_options(factory: Callable[..., Any], given: Collection[str] = ()) -> dict[str, Any]:
    """Keywords that `factory` takes and their annotations, without the names in `given`."""
    function: Any = factory.build if isinstance(factory, Method) else factory
    factory = function
    while isinstance(function, functools.partial):
        function = function.func
    hints = get_type_hints(function.__init__ if inspect.isclass(function) else function)
    options: dict[str, Any] = {}
    for name, parameter in inspect.signature(factory).parameters.items():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            # `**switches: Unpack[Switches]` takes the keys of that TypedDict.
            for kind in get_args(hints.get(name)):
                if is_typeddict(kind):
                    options |= get_type_hints(kind)
        elif parameter.kind in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY):
            options[name] = hints.get(name, Any)
    return {name: kind for name, kind in options.items() if name not in given}


def check_options(
    factory: Callable[..., Any], options: Mapping[str, Any], given: Collection[str] = ()
) -> dict[str, Any]:
    """The options as `factory` takes them; each key that is unknown or has a wrong value is named."""
    known = list_options(factory, given)
    checked: dict[str, Any] = {}
    problems: dict[str, str] = {}
    for name, value in options.items():
        if name not in known:
            problems[name] = describe_unknown(name, known)
            continue
        try:
            checked[name] = TypeAdapter(known[name]).validate_python(value)
        except ValidationError as error:
            problems[name] = f"{error.errors()[0]['msg']}, got {value!r:.80}"
        except (PydanticSchemaGenerationError, PydanticUserError):
            problems[name] = "cannot be given as text"
    if problems:
        raise OptionsError(problems)
    return checked
