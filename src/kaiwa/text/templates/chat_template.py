"""Chat templates: messages to the text that a model was trained on. Rendered in a sandbox, bounded, injection-safe."""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from kaiwa.errors import TemplateError
from kaiwa.messages import Message
from kaiwa.text.templates.prompt import RenderedPrompt
from kaiwa.text.templates.seams import Literals, Seamstress
from kaiwa.text.tokens.special_tokens import SpecialTokens

if TYPE_CHECKING:
    from jinja2 import Template

    from kaiwa.text.tokens.tokenizer import Tokenizer

MAX_SOURCE = 65_536
"""Characters that a template may have; the longest of known models has a quarter of that."""

MAX_NESTING = 64


_SYSTEM_PROBE: list[dict[str, Any]] = [
    {"role": "system", "content": "probe-system"},
    {"role": "user", "content": "probe-user"},
]
_PROBE_CALL = {"id": "probe0000", "type": "function", "function": {"name": "probe", "arguments": {"probe-key": 1}}}
_ARGUMENTS_PROBE: list[dict[str, Any]] = [
    {"role": "user", "content": "probe-user"},
    {"role": "assistant", "content": "", "tool_calls": [_PROBE_CALL]},
]
_PROBE_TOOL = {
    "type": "function",
    "function": {"name": "probe_tool", "description": "probe", "parameters": {"type": "object", "properties": {}}},
}
_MISTRAL_ID = re.compile("[A-Za-z0-9]{9}")


class ChatTemplate:
    """A model's chat template, compiled when it is first needed."""

    def __init__(self, source: str, *, bos_token: str, eos_token: str, special_tokens: SpecialTokens) -> None:
        self.source = source
        self._tokens = {"bos_token": bos_token, "eos_token": eos_token}
        self._special_tokens = special_tokens
        self._probed: dict[tuple[int, bool], str] = {}

    @classmethod
    def of(cls, tokenizer: Tokenizer, source: str | None = None) -> ChatTemplate:
        """The template of a tokenizer's model, or another `source` for it.

        Raises `TemplateError` if there is none: what a model was not trained on is not guessed.
        """
        source = source or tokenizer.chat_template
        if not source:
            raise TemplateError(
                "this model has no chat template",
                hint="use an instruct or chat variant of the model, or complete plain text instead",
            )
        return cls(
            source,
            bos_token=tokenizer.bos_token,
            eos_token=tokenizer.eos_token,
            special_tokens=tokenizer.special_tokens,
        )

    def render(
        self,
        messages: Sequence[Message | Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        documents: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = True,
        continue_final_message: bool = False,
        now: datetime | None = None,
        variables: Mapping[str, Any] | None = None,
    ) -> RenderedPrompt:
        """The prompt for the next answer.

        `continue_final_message` leaves the last message open, for the model to go on with. `now` is the date that
        templates may print: keep it the same through a conversation, or the whole prompt changes at midnight.
        `variables` are further ones that the template knows (`enable_thinking`).

        Raises `TemplateError` if the template cannot be read, refuses the conversation, or runs out of its bounds.
        """
        turns = [_plain(message) for message in messages]
        if continue_final_message and not turns:
            raise TemplateError("there is no final message to continue")
        inputs = {"tools": _listed(tools), "documents": _listed(documents), **(variables or {})}
        turns = self._adapted(turns, inputs)
        return self._render(turns, inputs, add_generation_prompt, continue_final_message, now)

    def _render(
        self,
        turns: list[dict[str, Any]],
        inputs: Mapping[str, Any],
        add_generation_prompt: bool,
        continue_final_message: bool,
        now: datetime | None,
    ) -> RenderedPrompt:
        from kaiwa.text.templates.sandbox import NOW

        _check_nesting([turns, inputs])
        seamstress = Seamstress(self._literals, [turns, inputs], self.source)
        messages = [seamstress.sew_message(turn) for turn in turns]
        if continue_final_message:
            messages[-1]["content"] = str(messages[-1].get("content", "")) + seamstress.end
        text = self._run(
            {
                **seamstress.sew(inputs),
                **self._tokens,
                "messages": messages,
                "add_generation_prompt": add_generation_prompt and not continue_final_message,
                NOW: now,
            }
        )
        if continue_final_message:
            text, found, _ = text.rpartition(seamstress.end)
            if not found:
                raise TemplateError("the chat template leaves the final message out, so that it cannot be continued")
        return seamstress.unpick(text)

    def _run(self, variables: dict[str, Any]) -> str:
        from kaiwa.text.templates.budget import CURRENT, Budget, Exhausted
        from kaiwa.text.templates.sandbox import Refusal

        template = self._compiled
        budget = Budget(variables)
        token = CURRENT.set(budget)
        chunks, size = [], 0
        try:
            for chunk in template.generate(variables):
                size += len(chunk)
                budget.allow(size)
                chunks.append(chunk)
        except Refusal as refusal:
            raise TemplateError(f"the chat template refuses this conversation: {refusal}") from None
        except (Exhausted, RecursionError, MemoryError) as error:
            reason = str(error) or "it nests too deeply"
            raise TemplateError(f"the chat template was stopped: {reason}", hint="its file may be harmful") from None
        except Exception as error:  # templates may fail in any way that Python can
            raise TemplateError(f"the chat template failed: {error}") from error
        finally:
            CURRENT.reset(token)
        return "".join(chunks)

    @functools.cached_property
    def _literals(self) -> Literals:
        return Literals(self._special_tokens)

    @functools.cached_property
    def _compiled(self) -> Template:
        from jinja2 import TemplateSyntaxError

        from kaiwa.text.templates.sandbox import ChatEnvironment

        if len(self.source) > MAX_SOURCE:
            raise TemplateError(f"the chat template has {len(self.source):,} characters, more than {MAX_SOURCE:,}")
        try:
            return ChatEnvironment().from_string(self.source)
        except TemplateSyntaxError as error:
            raise TemplateError(f"line {error.lineno} of the chat template cannot be read: {error.message}") from None
        except (RecursionError, MemoryError, SyntaxError, ValueError) as error:
            raise TemplateError(f"the chat template cannot be read: {error}") from None

    def _adapted(self, turns: list[dict[str, Any]], inputs: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The turns in the shape that this template takes, where others mean the same."""
        if "developer" not in self.source:
            turns = [{**turn, "role": "system"} if turn.get("role") == "developer" else turn for turn in turns]
        if [turn.get("role") for turn in turns[:2]] == ["system", "user"] and not self._takes_system(inputs):
            turns = [_joined(turns[0], turns[1]), *turns[2:]]
        if any(turn.get("tool_calls") for turn in turns):
            as_objects = self._takes_argument_objects(inputs)
            turns = [_with_arguments(turn, as_objects) for turn in turns]
        if "thinking" in self.source and "reasoning_content" not in self.source:
            turns = [_with_thinking(turn) for turn in turns]
        return [_with_short_ids(turn) for turn in turns] if "length != 9" in self.source else turns

    @functools.cached_property
    def shows_tools(self) -> bool:
        """Whether the template shows a model the tools that it may call."""
        try:
            probe = self._render(_SYSTEM_PROBE[1:], {"tools": [_PROBE_TOOL], "documents": None}, True, False, None)
        except TemplateError:
            return False
        return "probe_tool" in probe.text

    def _takes_system(self, inputs: Mapping[str, Any]) -> bool:
        """Whether a system message comes through: Gemma 2's template, for one, refuses it."""
        return "probe-system" in self._probe(_SYSTEM_PROBE, inputs)

    def _takes_argument_objects(self, inputs: Mapping[str, Any]) -> bool:
        """Whether the arguments of a tool call are wanted as an object; some templates want its JSON text."""
        written = self._probe(_ARGUMENTS_PROBE, inputs)
        return "probe-key" in written and "'probe-key'" not in written

    def _probe(self, turns: list[dict[str, Any]], inputs: Mapping[str, Any]) -> str:
        """What the template makes of a conversation of our own; templates differ in the shapes that they take.

        Kept for conversations with and without tools: templates often have a part for each.
        """
        key = (id(turns), bool(inputs.get("tools")))
        if key not in self._probed:
            try:
                self._probed[key] = self._render(turns, inputs, False, False, None).text
            except TemplateError:
                self._probed[key] = ""
        return self._probed[key]


def _plain(message: Message | Mapping[str, Any]) -> dict[str, Any]:
    """A message as templates read it. A key without a value is left out: templates would print `None`."""
    fields = message.to_dict() if isinstance(message, Message) else message
    return {key: value for key, value in fields.items() if value is not None}


def _listed(items: Iterable[Mapping[str, Any]] | None) -> list[Mapping[str, Any]] | None:
    return None if items is None else list(items)


def _joined(system: Mapping[str, Any], user: Mapping[str, Any]) -> dict[str, Any]:
    return {**user, "content": f"{system.get('content', '')}\n\n{user.get('content', '')}"}


def _with_arguments(turn: dict[str, Any], as_objects: bool) -> dict[str, Any]:
    calls = turn.get("tool_calls")
    if not isinstance(calls, (list, tuple)):
        return turn
    return {**turn, "tool_calls": [_with_argument(call, as_objects) for call in calls]}


def _with_argument(call: Any, as_objects: bool) -> Any:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping) or "arguments" not in function:
        return call
    arguments = function["arguments"]
    if as_objects and isinstance(arguments, str):
        try:
            parsed = json.loads(arguments)
        except ValueError:
            return call
        arguments = parsed if isinstance(parsed, dict) else arguments
    elif not as_objects and isinstance(arguments, Mapping):
        arguments = json.dumps(arguments, ensure_ascii=False)
    return {**call, "function": {**function, "arguments": arguments}}


def _with_thinking(turn: dict[str, Any]) -> dict[str, Any]:
    """A turn with its thoughts under GPT-OSS's name for them, which refuses them beside both content and calls."""
    if "reasoning_content" not in turn:
        return turn
    renamed = {key: value for key, value in turn.items() if key != "reasoning_content"}
    return (
        renamed
        if turn.get("content") and turn.get("tool_calls")
        else {**renamed, "thinking": turn["reasoning_content"]}
    )


def _with_short_ids(turn: dict[str, Any]) -> dict[str, Any]:
    """A turn with ids of calls as Mistral's templates want them: nine letters and digits. What is none is hashed."""
    calls = turn.get("tool_calls")
    if isinstance(calls, (list, tuple)):
        turn = {**turn, "tool_calls": [{**call, "id": _short_id(call.get("id"))} for call in calls]}
    return {**turn, "tool_call_id": _short_id(turn["tool_call_id"])} if "tool_call_id" in turn else turn


def _short_id(given: object) -> str:
    if isinstance(given, str) and _MISTRAL_ID.fullmatch(given):
        return given
    return hashlib.sha256(str(given).encode()).hexdigest()[:9]


def _check_nesting(value: Any) -> None:
    level = [value]
    for _ in range(MAX_NESTING):
        level = [
            child
            for item in level
            if isinstance(item, (Mapping, list, tuple))
            for child in (item.values() if isinstance(item, Mapping) else item)
        ]
        if not level:
            return
    raise TemplateError(f"the conversation or its tools nest more than {MAX_NESTING} levels deep")
