"""Makes grammars for one model: of JSON schemas, patterns, choices, and the calls of tools."""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kaiwa.errors import InvalidOption
from kaiwa.text.answers import reasoning
from kaiwa.text.answers.answer_format import AnswerFormat
from kaiwa.text.constraints import answer_grammar, json_schema
from kaiwa.text.constraints.grammar import Grammar, Trigger, reason_of
from kaiwa.text.constraints.rules import Rules
from kaiwa.text.tokens.tokenizer import Tokenizer
from kaiwa.text.tool import Tool, ToolChoice
from kaiwa.text.tool_formats import FORMATS

if TYPE_CHECKING:
    from llguidance import LLMatcher, LLTokenizer

MAX_KEPT = 32
"""Compiled grammars that are kept for the next answer with the same one."""

MAX_PATTERN = 10_000
PLAIN = AnswerFormat()

_TEXT_SLICE = r'[^"\\\x00-\x1F\x7F]+'
"""What most of a JSON text is made of: llguidance prepares a mask of all such tokens."""


class Grammars:
    """Makes the grammars for one model. What llguidance needs of the tokenizer is made when it is first needed.

    `vocab_size` is the engine's, which may be more than the tokenizer's. Any thread may ask.
    """

    def __init__(self, tokenizer: Tokenizer, *, vocab_size: int | None = None) -> None:
        self._tokenizer = tokenizer
        self._vocab_size = vocab_size or tokenizer.vocab_size
        self._token_ids = {
            marker: tokenizer.special_tokens[marker] for marker in _MARKERS if marker in tokenizer.special_tokens
        }
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, LLMatcher] = OrderedDict()

    def json_schema(
        self, schema: Mapping[str, Any], *, answer: AnswerFormat = PLAIN, name: str = "the schema"
    ) -> Grammar:
        """Text that is JSON and fits a schema.

        Raises `InvalidOption` that names what of the schema cannot be enforced, and where in `name` it stands.
        """
        rules = self._rules()
        checked = json_schema.checked(schema, name=name)
        self._check_schema(checked, name)
        return self._start(answer_grammar.text_only(rules, answer, rules.json(checked)))

    def json_object(self, *, answer: AnswerFormat = PLAIN) -> Grammar:
        """Text that is a JSON object."""
        rules = self._rules()
        return self._start(answer_grammar.text_only(rules, answer, rules.json({"type": "object"})))

    def regex(self, pattern: str, *, answer: AnswerFormat = PLAIN) -> Grammar:
        """Text that a regular expression matches as a whole, without look-around.

        Raises `InvalidOption` where it cannot be read.
        """
        from llguidance import regex_to_lark

        if len(pattern) > MAX_PATTERN:
            raise InvalidOption(f"the pattern has {len(pattern):,} characters, more than {MAX_PATTERN:,}")
        rules = self._rules()
        body = rules.add(f"/{regex_to_lark(pattern, use_ascii='')}/")
        return self._start(answer_grammar.text_only(rules, answer, body), what=f"the pattern {pattern!r}")

    def choice(self, texts: Sequence[str], *, answer: AnswerFormat = PLAIN) -> Grammar:
        """Exactly one of several texts. Raises `InvalidOption` where there is none, or an empty one."""
        if isinstance(texts, str) or not texts or not all(isinstance(text, str) and text for text in texts):
            raise InvalidOption(f"{texts!r} is no choice", hint="pass a list of texts, none of them empty")
        rules = self._rules()
        return self._start(answer_grammar.text_only(rules, answer, rules.either(map(rules.literal, texts))))

    def calls(
        self,
        tools: Sequence[Tool],
        choice: ToolChoice,
        *,
        answer: AnswerFormat,
        is_parallel: bool = True,
        schema: Mapping[str, Any] | None = None,
    ) -> Grammar:
        """Calls of tools whose arguments fit their schemas, as `choice` says: possible or required.

        An answer without calls has the JSON of a `schema`, where there is one. Raises as `json_schema` does.
        """
        assert answer.tool_format is not None
        rules = self._rules()
        tools = [
            Tool(tool.name, _closed(json_schema.checked(tool.parameters, name=f"{tool.name}.parameters")))
            for tool in tools
            if choice.name in ("", tool.name)
        ]
        for tool in tools:
            self._check_schema(tool.parameters, f"{tool.name}.parameters")
        is_once = answer.tool_format.is_single or not is_parallel
        if choice.mode == "required":
            return self._start(answer_grammar.calls_only(rules, answer, tools, is_parallel=is_parallel))
        if schema is not None:
            checked = json_schema.checked(schema, name="the schema")
            self._check_schema(checked, "the schema")
            return self._start(
                answer_grammar.calls_or_text(rules, answer, tools, rules.json(checked), is_parallel=is_parallel)
            )
        if (trigger := self._trigger(answer)) is None:
            return self._start(answer_grammar.calls_in_text(rules, answer, tools, is_parallel=is_parallel))
        source = rules.grammar(answer_grammar.after_marker(rules, answer.tool_format, tools, is_parallel=is_parallel))
        return self._start(source, trigger=trigger, is_once=is_once)

    def _trigger(self, answer: AnswerFormat) -> Trigger | None:
        """The one token that begins a call, where the format has one."""
        format = answer.tool_format
        if format is None or format.is_whole or format.is_at_start or format.opens[0] not in self._token_ids:
            return None
        if answer.reasoning is None:
            return Trigger(self._token_ids[format.opens[0]])
        opens, closes = map(self._rules().first_token, (answer.reasoning.opens, answer.reasoning.closes))
        if opens is None or closes is None:
            return None
        return Trigger(self._token_ids[format.opens[0]], (opens, closes), is_thinking=bool(answer.begun))

    def _rules(self) -> Rules:
        return Rules(self._token_ids)

    def _start(
        self, source: str, *, what: str = "the grammar", trigger: Trigger | None = None, is_once: bool = False
    ) -> Grammar:
        return Grammar(
            self._compile(source, what),
            num_bytes=(self._vocab_size + 7) // 8,
            end_ids=self._tokenizer.end_ids,
            trigger=trigger,
            is_once=is_once,
        )

    def _compile(self, source: str, what: str) -> LLMatcher:
        with self._lock:
            if source in self._kept:
                self._kept.move_to_end(source)
                return self._kept[source]
            matcher = _compile(self._library_tokenizer, source)
            if matcher.is_error():
                raise InvalidOption(f"{what} cannot be enforced: {reason_of(matcher)}")
            self._kept[source] = matcher
            if len(self._kept) > MAX_KEPT:
                self._kept.popitem(last=False)
            return matcher

    def _check_schema(self, schema: Mapping[str, Any], name: str) -> None:
        """Find the innermost part of a schema that cannot be compiled, for llguidance does not say where it is."""
        whole = self._schema_error(schema)
        if not whole:
            return
        shared = {key: schema[key] for key in ("$defs", "definitions") if key in schema}
        path = next(
            path
            for path, part in json_schema.subschemas(schema, name)
            if part is schema or self._schema_error({**shared, **part}) == whole
        )
        raise InvalidOption(f"{path} cannot be enforced: {whole}", hint="say it in other keywords of JSON Schema")

    def _schema_error(self, schema: Mapping[str, Any]) -> str:
        rules = self._rules()
        with self._lock:
            matcher = _compile(self._library_tokenizer, rules.grammar(rules.json(schema)))
        return reason_of(matcher) if matcher.is_error() else ""

    @functools.cached_property
    def _library_tokenizer(self) -> LLTokenizer:
        from llguidance import LLTokenizer

        tokenizer = _LibraryView(self._tokenizer, self._vocab_size, frozenset(self._token_ids.values()))
        end_ids = sorted(self._tokenizer.end_ids)
        return LLTokenizer(tokenizer, n_vocab=self._vocab_size, eos_token=end_ids, slices=[_TEXT_SLICE])  # type: ignore[arg-type]


class _LibraryView:
    """A tokenizer as llguidance wants to see one: its duck type is that of llguidance's TokenizerWrapper."""

    is_tokenizer_wrapper = True

    def __init__(self, tokenizer: Tokenizer, vocab_size: int, marker_ids: frozenset[int]) -> None:
        self._tokenizer = tokenizer
        self.eos_token_id = min(tokenizer.end_ids)
        self.bos_token_id = tokenizer.bos_id
        self.tokens = tokenizer.all_token_bytes(vocab_size)
        control = (token_id for token_id in tokenizer.special_tokens.values() if tokenizer.is_control(token_id))
        self.special_token_ids = sorted({*control, *marker_ids, *tokenizer.end_ids})

    def __call__(self, text: bytes | str) -> list[int]:
        return self._tokenizer.encode_rest(text if isinstance(text, str) else text.decode())


def _closed(schema: dict[str, Any]) -> dict[str, Any]:
    """The arguments that a tool names and no others, unless it says that it takes others."""
    return {"additionalProperties": False, **schema} if "properties" in schema else schema


def _compile(tokenizer: LLTokenizer, source: str) -> LLMatcher:
    from llguidance import LLMatcher

    return LLMatcher(tokenizer, source, log_level=0)


_MARKERS = sorted(
    {marker for format in FORMATS for marker in format.markers}
    | {
        marker
        for known in reasoning.KNOWN
        for marker in (known.opens, known.closes, known.opens.partition(">")[0] + ">")
    }
)
"""Texts that are tokens of their own in the vocabularies of models that know them."""
