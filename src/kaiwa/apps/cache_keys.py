"""What tells calls apart, and functions: keys of arguments, and fingerprints of code."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping, Sequence, Set
from types import CodeType
from typing import Any

from kaiwa.errors import InvalidOption

_PLAIN = (str, bytes, int, float, complex, bool, type(None))


def key_of(signature: inspect.Signature, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Hashable:
    """The same for calls that mean the same, however they are written: `f(1)`, `f(x=1)`, with or without defaults.

    1, 1.0 and True are not the same. Raises `TypeError` where the function cannot be called so, and `InvalidOption`
    for an argument that has no key.
    """
    bound = signature.bind(*arguments, **keywords)
    bound.apply_defaults()
    return tuple((name, _frozen(name, value)) for name, value in bound.arguments.items())


def _frozen(name: str, value: Any) -> Hashable:
    if isinstance(value, Mapping):
        pairs = [(_frozen(name, key), _frozen(name, inner)) for key, inner in value.items()]
        return type(value), frozenset(pairs)
    if isinstance(value, list | tuple):
        return type(value), tuple(_frozen(name, inner) for inner in value)
    if isinstance(value, Set) and not isinstance(value, frozenset):
        return type(value), frozenset(_frozen(name, inner) for inner in value)
    try:
        hash(value)
    except TypeError:
        raise InvalidOption(
            f"the argument {name} of a cached function is a {type(value).__name__}, which cannot be compared",
            hint="pass text, numbers, tuples, lists or dictionaries of them, or an object with __hash__ and __eq__",
        ) from None
    return type(value), value


def fingerprint(function: Callable[..., Any]) -> Hashable:
    """The same as long as the function does the same: its code, defaults, and the constants that it reads."""
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType):
        return id(function)
    names = getattr(function, "__globals__", {})
    read = tuple(
        (name, repr(names[name])) for name in code.co_names if name in names and isinstance(names[name], _PLAIN)
    )
    return _code(code), repr(getattr(function, "__defaults__", None)), read


def _code(code: CodeType) -> Hashable:
    constants = tuple(_code(one) if isinstance(one, CodeType) else repr(one) for one in code.co_consts)
    return code.co_filename, code.co_code, code.co_names, constants
