"""The jinja2 environment in which chat templates run: sandboxed, immutable, and bounded in time and memory.

Everything that may take long or grow passes through the current `Budget`: loops, calls, filters, tests, operators,
slices, comparisons and output. Where jinja2 has no hook, the template's syntax tree is given one before compiling.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, cast

from jinja2 import nodes, pass_context
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.runtime import LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace
from jinja2.visitor import NodeTransformer

from kaiwa.text.templates.budget import CURRENT, MAX_INTEGER_BITS, Exhausted

FILTERS = frozenset(
    """abs attr capitalize count d default dictsort e escape first float format groupby indent int items join last
    length list lower map max min reject rejectattr replace reverse round safe select selectattr sort string sum title
    tojson trim truncate unique upper urlencode wordcount""".split()  # noqa: SIM905
)
"""The filters that templates may use. The rest of jinja2's either formats pages or can make much out of little."""

_TEXT_METHODS = frozenset(
    """capitalize casefold count endswith find format format_map index isalnum isalpha isascii isdecimal isdigit
    islower isnumeric isspace istitle isupper join lower lstrip partition removeprefix removesuffix replace rfind
    rindex rpartition rsplit rstrip split splitlines startswith strip swapcase title upper""".split()  # noqa: SIM905
)
_METHODS: dict[type, frozenset[str]] = {
    str: _TEXT_METHODS,
    dict: frozenset({"copy", "get", "items", "keys", "values"}),
    list: frozenset({"copy", "count", "index"}),
    tuple: frozenset({"count", "index"}),
    int: frozenset(),
    float: frozenset(),
    bytes: frozenset(),
}
_WIDE_FORMAT = re.compile(r"%[^a-zA-Z%]*(?:[0-9]{4}|\*)|\{[^{}:]*:[^{}]*(?:[0-9]{4}|\{)")
NOW = "date of the conversation"
"""The variable that holds the date to print, if it is fixed. No template can name it, for its spaces."""

_MAX_WIDTH = 999
_MAX_INDENT = 32
_NONCHARACTERS = ("\ufdd0", "\ufdef")


class Refusal(Exception):
    """A template called `raise_exception`."""


class ChatEnvironment(ImmutableSandboxedEnvironment):
    """A jinja2 environment with what chat templates expect, as transformers sets it up."""

    intercepted_binops = frozenset(ImmutableSandboxedEnvironment.default_binop_table)

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            optimized=False,  # what a template computes must be paid for when it runs, not for free while compiling
            finalize=_finalize,
            extensions=[GenerationTag, loopcontrols],
        )
        self.filters = {name: _spending(self.filters[name]) for name in FILTERS if name in self.filters}
        self.filters.update(
            tojson=_spending(_tojson),
            join=_spending(_join),
            replace=_spending(_replace),
            sum=_spending(_sum),
            format=_spending(_format),
            indent=_spending(_bounded(self.filters["indent"], _MAX_INDENT)),
            round=_spending(_bounded(self.filters["round"], _MAX_INDENT)),
            **{_COUNTED: _counted, _PAID: _paid, _CONCAT: _concat},
        )
        self.tests = {name: _spending(cast(Any, test)) for name, test in self.tests.items()}
        del self.globals["lipsum"]
        self.globals.update(
            dict=_make_dict, namespace=ChatNamespace, raise_exception=_raise_exception, strftime_now=_strftime_now
        )

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        template: nodes.Template = _Hooks().visit(super()._parse(source, name, filename))
        return template

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        allowed = next((names for kind, names in _METHODS.items() if isinstance(obj, kind)), None)
        return super().is_safe_attribute(obj, attr, value) and (allowed is None or attr in allowed)

    def call(self, context: Any, obj: Any, *args: Any, **kwargs: Any) -> Any:
        budget = CURRENT.get()
        budget.step()
        for value in (*args, *kwargs.values()):
            budget.allow(budget.weight(value))
        if isinstance(obj, LoopContext):
            args = (budget.counted(args[0]), *args[1:])
        owner = getattr(getattr(obj, "__wrapped__", obj), "__self__", None)
        if isinstance(owner, str):
            args = _check_text_method(owner, obj.__name__, args, kwargs)
        return budget.made(super().call(context, obj, *args, **kwargs))

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        budget = CURRENT.get()
        for value, other in ((left, right), (right, left)):
            if isinstance(value, int) and value.bit_length() > MAX_INTEGER_BITS:
                raise Exhausted(f"it computes with a number of {value.bit_length():,} bits")
            if operator == "*" and isinstance(value, (str, list, tuple)) and isinstance(other, int):
                budget.allow(budget.weight(value) * max(other, 0))
        if operator == "**" and isinstance(left, int) and isinstance(right, int):
            _check_power(left, right)
        if operator == "%" and isinstance(left, str):
            _check_format(left, "%", (right,))
        return budget.made(super().call_binop(context, operator, left, right))


class ChatNamespace(Namespace):
    """`namespace()`, without names that lead into Python."""

    def __init__(*args: Any, **kwargs: Any) -> None:
        self, *rest = args
        attributes = dict(*rest, **kwargs)
        for name in attributes:
            _check_name(name)
        Namespace.__init__(self, attributes)

    def __setitem__(self, name: str, value: Any) -> None:
        _check_name(name)
        super().__setitem__(name, value)


class GenerationTag(Extension):
    """`{% generation %}`, with which templates mark what a model writes, for training. Here it prints what it holds."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


_COUNTED, _PAID, _CONCAT = "counted items", "paid value", "concatenated texts"
"""Filters that `_Hooks` puts in. No template can name them, for their spaces."""


class _Hooks(NodeTransformer):
    """Gives jinja2's syntax tree the hooks that its sandbox does not have."""

    def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802
        data = sum(len(text.data) for text in node.find_all(nodes.TemplateData))
        self.generic_visit(node)
        node.iter = _filter(node.iter, _COUNTED, nodes.Const(data))
        return node

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        node.expr = _filter(node.expr, _PAID)
        return node

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        return _filter(node, _PAID) if isinstance(node.arg, nodes.Slice) else node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        return _filter(nodes.List(node.nodes, lineno=node.lineno), _CONCAT)


def _filter(node: Any, name: str, *args: nodes.Expr) -> nodes.Filter:
    return nodes.Filter(node, name, list(args), [], None, None, lineno=node.lineno)


def _spending(function: Callable[..., Any]) -> Callable[..., Any]:
    """A filter or test whose arguments and result are held to the budget."""

    @functools.wraps(function)
    def spend(*args: Any, **kwargs: Any) -> Any:
        budget = CURRENT.get()
        for value in (*args, *kwargs.values()):
            budget.allow(budget.weight(value))
        return budget.made(function(*args, **kwargs))

    return spend


def _bounded(function: Callable[..., Any], largest: int) -> Callable[..., Any]:
    """A filter whose numbers may not be larger than `largest`."""

    @functools.wraps(function)
    def check(value: Any, *args: Any, **kwargs: Any) -> Any:
        for number in (*args, *kwargs.values()):
            _check_width(number, largest)
        if isinstance(value, str):
            CURRENT.get().allow(len(value) + largest * value.count("\n"))
        return function(value, *args, **kwargs)

    return check


@pass_context
def _finalize(context: Any, value: Any) -> Any:
    budget = CURRENT.get()
    budget.allow(budget.weight(value))
    budget.step(len(value) if isinstance(value, str) else 64)
    return value


def _counted(items: Iterable[Any], num_bytes: int) -> Iterable[Any]:
    return CURRENT.get().counted(items, num_bytes)


def _paid(value: Any) -> Any:
    return CURRENT.get().made(value)


def _concat(items: list[Any]) -> str:
    budget = CURRENT.get()
    texts = [budget.text(item) for item in items]
    budget.allow(sum(map(len, texts)))
    return str(budget.made("".join(texts)))


@pass_context
def _join(context: Any, value: Any, d: str = "", attribute: str | int | None = None) -> str:
    budget = CURRENT.get()
    if attribute is not None:
        value = [context.environment.getitem(item, attribute) for item in budget.counted(value)]
    return str(d).join(_parts(str(d), value))


def _parts(separator: str, items: Iterable[Any]) -> list[str]:
    """The texts of `items`, which fit the budget when joined."""
    budget = CURRENT.get()
    texts, size = [], 0
    for item in budget.counted(items):
        texts.append(budget.text(item))
        size += len(texts[-1]) + len(separator)
        budget.allow(size)
    return texts


def _replace(value: Any, old: str, new: str, count: int = -1) -> str:
    text, old, new = CURRENT.get().text(value), str(old), str(new)
    _check_replacement(text, old, new)
    return text.replace(old, new, -1 if count is None else count)


def _sum(items: Iterable[Any], attribute: str | None = None, start: float = 0) -> Any:
    for item in CURRENT.get().counted(items):
        number = item[attribute] if attribute is not None else item
        if not isinstance(number, (int, float)):
            raise TypeError(f"sum adds numbers, not {type(number).__name__}")
        start += number
    return start


def _format(value: Any, *args: Any, **kwargs: Any) -> str:
    text = CURRENT.get().text(value)
    _check_format(text, "%", (*args, *kwargs.values()))
    return text % (kwargs or args)


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """JSON without HTML's escapes, with json.dumps' defaults but for `ensure_ascii`."""
    for width in (indent, *(separators or ())):
        _check_width(width, _MAX_INDENT)
    encoder = json.JSONEncoder(ensure_ascii=False, indent=indent, separators=separators, sort_keys=sort_keys)
    text = encoder.encode(value) if indent is None else "".join(_parts("", encoder.iterencode(value)))
    return re.sub(r"[^\x00-\x7f]", _escape, text) if ensure_ascii else text


def _escape(match: re.Match[str]) -> str:
    """A character in JSON's ASCII form. Noncharacters stay: one of them marks where no special token may be."""
    character = match.group()
    if _NONCHARACTERS[0] <= character <= _NONCHARACTERS[1]:
        return character
    return json.dumps(character)[1:-1]


def _check_text_method(owner: str, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Refuse what would make much out of little; the arguments to call the method with."""
    if name == "replace" and len(args) > 1:
        _check_replacement(owner, str(args[0]), str(args[1]))
    if name in ("format", "format_map"):
        _check_format(owner, "{", (*args, *kwargs.values()))
    if name == "join" and args:
        return (_parts(owner, args[0]),)
    return args


def _check_replacement(text: str, old: str, new: str) -> None:
    CURRENT.get().allow(len(text) + text.count(old) * len(new))


def _check_width(width: Any, largest: int) -> None:
    """`width` is a number, or a text that is put in."""
    size = len(width) if isinstance(width, str) else abs(width) if isinstance(width, int) else 0
    if size > largest:
        raise Exhausted(f"it asks for a width of {size:,}")


def _check_power(base: int, exponent: int) -> None:
    if exponent * base.bit_length() > MAX_INTEGER_BITS:
        raise Exhausted(f"it raises {base} to the power of {exponent}")


def _check_format(text: str, sign: str, values: tuple[Any, ...]) -> None:
    if _WIDE_FORMAT.search(text):
        raise Exhausted("it formats with a width of thousands")
    budget = CURRENT.get()
    largest = _MAX_WIDTH + sum(map(budget.weight, values))
    budget.allow(len(text) + text.count(sign) * largest)


def _check_name(name: Any) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise SecurityError(f"a namespace may not have the name {name!r}")


def _make_dict(*args: Any, **kwargs: Any) -> dict[Any, Any]:
    return dict(*args, **kwargs)


def _raise_exception(message: Any) -> None:
    raise Refusal(str(message))


@pass_context
def _strftime_now(context: Any, format: str) -> str:
    _check_format(format, "%", ())
    now = context.get(NOW) or datetime.now()
    return str(now.strftime(format))
