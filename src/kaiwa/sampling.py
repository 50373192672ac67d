"""How the next token is chosen: one table of options, from which checks, `-h` and documentation are made."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from kaiwa.errors import InvalidOption, did_you_mean

Kind = Literal["bool", "int", "float", "strings", "biases"]


@dataclass(frozen=True, slots=True)
class Option:
    """One row of the table. `minimum` and `maximum` are inclusive unless `is_open` (then minimum is excluded)."""

    name: str
    kind: Kind
    help: str
    minimum: float | None = None
    maximum: float | None = None
    is_open: bool = False
    is_optional: bool = False

    @property
    def range(self) -> str:
        """The values that it takes, in words: "a number from 0 to 1"."""
        if self.kind == "bool":
            return "True or False"
        if self.kind == "strings":
            return f"text, or a list of up to {MAX_STOP_STRINGS} texts"
        if self.kind == "biases":
            between = f"from {self.minimum:g} to {self.maximum:g}"
            return f"up to {MAX_BIASES} token ids, each with a number {between}: 42:-100,7:2.5"
        words = "a whole number" if self.kind == "int" else "a number"
        if self.minimum is not None and self.maximum is not None:
            between = f"above {self.minimum:,} and up to" if self.is_open else f"from {self.minimum:,} to"
            words += f" {between} {self.maximum:,}"
        elif self.minimum is not None:
            words += f" above {self.minimum:g}" if self.is_open else f" of at least {self.minimum:g}"
        return words + (" or None" if self.is_optional else "")


MAX_SEED = 2**63 - 1
MAX_STOP_STRINGS = 16
MAX_BIASES = 1024

OPTIONS: tuple[Option, ...] = (
    Option("do_sample", "bool", "draw the next token at random; False always takes the most probable one"),
    Option("temperature", "float", "how bold the draw is; 0 is the same as do_sample=False", 0, 100),
    Option("top_k", "int", "draw from the k most probable tokens only; 0 is off", 0),
    Option("top_p", "float", "draw from the most probable tokens that together reach this share", 0, 1, is_open=True),
    Option("min_p", "float", "leave out tokens below this share of the most probable one; 0 is off", 0, 1),
    Option(
        "repetition_penalty", "float", "divide the score of tokens that occurred, prompt included; 1 is off", 0,
        100, is_open=True,
    ),
    Option("presence_penalty", "float", "subtract this once from tokens that the answer already has", -2, 2),
    Option("frequency_penalty", "float", "subtract this for each time the answer has the token", -2, 2),
    Option("logit_bias", "biases", "add this to the scores of some tokens; -100 all but forbids one", -100, 100),
    Option("seed", "int", "the same seed gives the same answer; None draws a new one", 0, MAX_SEED, is_optional=True),
    Option("stop", "strings", "end the answer before any of these texts"),
    Option(
        "max_new_tokens", "int", "end the answer after this many tokens; None is up to the end of the context", 1,
        is_optional=True,
    ),
)  # fmt: skip

_BY_NAME = {option.name: option for option in OPTIONS}

GROUPS: dict[str, tuple[str, ...]] = {
    "how the next token is drawn": ("do_sample", "temperature", "top_k", "top_p", "min_p", "seed"),
    "what is made more or less probable": (
        "repetition_penalty", "presence_penalty", "frequency_penalty", "logit_bias"
    ),
    "where the answer ends": ("max_new_tokens", "stop"),
}  # fmt: skip
"""The options as help lists them."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """The options of one answer, checked. The defaults here hold where neither model nor person says otherwise."""

    do_sample: bool = True
    temperature: float = 0.7
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logit_bias: Mapping[int, float] = field(default_factory=dict, hash=False)
    seed: int | None = None
    stop: tuple[str, ...] = ()
    max_new_tokens: int | None = None

    def __post_init__(self) -> None:
        for option in OPTIONS:
            object.__setattr__(self, option.name, _check(option, getattr(self, option.name)))

    @property
    def is_greedy(self) -> bool:
        """Whether the most probable token is always taken."""
        return not self.do_sample or self.temperature == 0

    def updated(self, changes: Mapping[str, Any]) -> Sampling:
        """These options with `changes` made.

        Raises `InvalidOption` for a name that is unknown or a value that is impossible.
        """
        for name in changes:
            find(name)
        return replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """All options by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_generation_config(cls, config: Mapping[str, Any]) -> Sampling:
        """The defaults that a model's `generation_config.json` asks for; what it says beyond this table is left."""
        return cls().updated(
            {name: config[name] for name in _BY_NAME if config.get(name) is not None and name != "stop"}
        )


def find(name: str) -> Option:
    """The row of an option. Raises `InvalidOption` that offers the nearest name."""
    option = _BY_NAME.get(name)
    if option is None:
        raise InvalidOption(f"there is no option {name!r}", hint=did_you_mean(name, _BY_NAME))
    return option


def parse_assignment(text: str) -> tuple[str, Any]:
    """The name and value of a `name=value` that a person typed: `top_p=0.9`, `do_sample=False`, `stop=END`.

    Raises `InvalidOption` for an unknown name, an impossible value, or a text that is no assignment.
    """
    name, sign, value = text.partition("=")
    name = name.strip().replace("-", "_")
    if not sign:
        raise InvalidOption(f"{text!r} is not an option", hint="write options as name=value, e.g. temperature=0.7")
    option = find(name)
    return name, _check(option, _parse_value(option, value.strip()))


def _parse_value(option: Option, value: str) -> Any:
    lowered = value.lower()
    if option.is_optional and lowered in ("none", "null"):
        return None
    if option.kind == "bool":
        truths = {"true": True, "false": False, "yes": True, "no": False, "1": True, "0": False}
        return truths.get(lowered, value)
    if option.kind == "strings":
        if value[:1] in ("[", "(", '"', "'"):
            try:
                return ast.literal_eval(value)
            except (ValueError, SyntaxError):
                pass
        return value
    if option.kind == "biases":
        return _parse_biases(value)
    try:
        return int(value)
    except ValueError:
        pass
    try:
        return float(value)
    except ValueError:
        return value


def _check(option: Option, value: Any) -> Any:
    """`value` in its right type, or `InvalidOption`."""
    wrong = InvalidOption(f"{option.name}={value!r} is impossible", hint=f"{option.name} must be {option.range}")
    if value is None:
        if option.is_optional:
            return None
        raise wrong
    if option.kind == "bool":
        if not isinstance(value, bool):
            raise wrong
        return value
    if option.kind == "strings":
        return _check_strings(value, wrong)
    if option.kind == "biases":
        return _check_biases(option, value, wrong)
    return _check_number(option, value, wrong)


def _check_number(option: Option, given: Any, wrong: InvalidOption) -> float:
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not math.isfinite(given):
        raise wrong
    if option.kind == "int" and given != int(given):
        raise wrong
    value = int(given) if option.kind == "int" else float(given)
    if option.minimum is not None and (value < option.minimum or (option.is_open and value == option.minimum)):
        raise wrong
    if option.maximum is not None and value > option.maximum:
        raise wrong
    return value


def _parse_biases(value: str) -> Any:
    """The mapping that `42:-100,7:2.5` says, with or without braces; the text itself where it says none."""
    pairs = [pair.split(":") for pair in value.removeprefix("{").removesuffix("}").split(",") if pair.strip()]
    try:
        return {int(token_id): float(bias) for token_id, bias in pairs}
    except ValueError:
        return value


def _check_biases(option: Option, value: Any, wrong: InvalidOption) -> dict[int, float]:
    """Token ids may be texts, as they are in JSON."""
    if not isinstance(value, Mapping) or len(value) > MAX_BIASES:
        raise wrong
    biases: dict[int, float] = {}
    for token_id, bias in value.items():
        is_number = isinstance(token_id, int) and not isinstance(token_id, bool) and token_id >= 0
        is_digits = isinstance(token_id, str) and token_id.isdecimal()
        if not is_number and not is_digits:
            raise wrong
        biases[int(token_id)] = _check_number(option, bias, wrong)
    return biases


def _check_strings(value: Any, wrong: InvalidOption) -> tuple[str, ...]:
    if isinstance(value, str):
        value = (value,)
    if not isinstance(value, Sequence) or len(value) > MAX_STOP_STRINGS:
        raise wrong
    if not all(isinstance(text, str) and text for text in value):
        raise wrong
    return tuple(value)
