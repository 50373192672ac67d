"""The answers of `/v1/completions`: events made into one object, or into chunks as they come."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

from kaiwa.events import Finished, TextDelta, TokenLogprobs, Usage
from kaiwa.server.event_stream import DONE, event
from kaiwa.server.head import Head, usage_object
from kaiwa.server.json_text import dumps, quoted
from kaiwa.server.logprobs import completion_object
from kaiwa.server.merge import Numbered

KIND = "text_completion"


async def whole(
    events: AsyncGenerator[Numbered], *, head: Head, begins: Sequence[str], num_each: int, has_logprobs: bool
) -> dict[str, Any]:
    """The object of an answer that is not streamed. `begins` is what each choice begins with."""
    texts = [[begin] for begin in begins]
    logprobs: list[list[TokenLogprobs]] = [[] for _ in begins]
    finished: dict[int, Finished] = {}
    async with aclosing(events):
        async for index, happened in events:
            texts[index].append(happened.text)
            if isinstance(happened, TextDelta):
                logprobs[index].extend(happened.logprobs)
            elif isinstance(happened, Finished):
                finished[index] = happened
    choices = [
        {
            "index": index,
            "text": "".join(texts[index]),
            "logprobs": completion_object(logprobs[index], offset=0) if has_logprobs else None,
            "finish_reason": finished[index].finish_reason,
        }
        for index in range(len(begins))
    ]
    usage = usage_object([finished[index].usage for index in range(len(begins))], num_each=num_each)
    return {**head.to_dict(KIND), "choices": choices, "usage": usage, "system_fingerprint": None}


async def chunks(
    events: AsyncGenerator[Numbered], *, head: Head, begins: Sequence[str], num_each: int, include_usage: bool
) -> AsyncGenerator[bytes]:
    """The chunks of an answer that is streamed, as events of the connection."""
    beginning = dumps({**head.to_dict(KIND), "system_fingerprint": None})[:-1]
    ending = ',"usage":null}' if include_usage else "}"
    usages: dict[int, Usage] = {}
    offsets = [0] * len(begins)

    def chunk(index: int, text: str, *, logprobs: str = "null", reason: str = "null") -> bytes:
        fields = f'"index":{index},"text":{quoted(text)},"logprobs":{logprobs},"finish_reason":{reason}'
        return event(f'{beginning},"choices":[{{{fields}}}]{ending}')

    for index, begin in enumerate(begins):
        if begin:
            yield chunk(index, begin)
    async with aclosing(events):
        async for index, happened in events:
            if isinstance(happened, TextDelta):
                logprobs = "null"
                if happened.logprobs:
                    logprobs = dumps(completion_object(happened.logprobs, offset=offsets[index]))
                    offsets[index] += len(happened.text)
                yield chunk(index, happened.text, logprobs=logprobs)
            elif isinstance(happened, Finished):
                usages[index] = happened.usage
                yield chunk(index, "", reason=quoted(happened.finish_reason))
    if include_usage:
        usage = usage_object([usages[index] for index in sorted(usages)], num_each=num_each)
        yield event(f'{beginning},"choices":[],"usage":{dumps(usage)}}}')
    yield DONE
