"""What a server says when it does not answer, in our errors; and whether it is worth asking again."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass

from kaiwa.errors import ContextOverflow, InvalidOption, KaiwaError, ModelNotFound, RemoteFailed

MAX_WAIT_S = 60.0
"""A server that asks to wait longer is not waited for."""
_FIRST_WAIT_S = 0.5
_TEMPORARY = frozenset((408, 425, 429, 500, 502, 503, 504, 529))
_UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND, _TOO_MANY = 401, 403, 404, 429
_WRONG = (400, 413, 422)
_NOT_SPOKEN = (405, 415, 501)
_PAGE = re.compile(r"<(!doctype|html|\?xml)", re.IGNORECASE)
_TITLE = re.compile(r"<title>(.*?)</title>", re.IGNORECASE | re.DOTALL)
_OVERFLOW = re.compile(r"context|too long|exceed", re.IGNORECASE)
_COUNT = re.compile(r"\d[\d,]*")
_CONTEXT = re.compile(r"context\D{0,40}(\d[\d,]*)", re.IGNORECASE)
_MAX_SHOWN = 400


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer that is none: the status, the message in it, and its `code` for programs, if any."""

    status: int
    message: str
    code: str = ""
    is_page: bool = False
    """Whether it is a web page, and no word of an API."""
    num_prompt_tokens: int = 0
    context_length: int = 0


def read_refusal(status: int, body: bytes) -> Refusal:
    """What a server wrote about why it does not answer, in whatever form."""
    text = body.decode(errors="replace").strip()
    try:
        content = json.loads(text)
    except ValueError:
        return Refusal(status, _title(text), is_page=True) if _PAGE.match(text) else Refusal(status, text[:_MAX_SHOWN])
    return refusal_of(status, content)


def refusal_of(status: int, content: object) -> Refusal:
    """The same, out of parsed JSON: OpenAI's `{"error": {"message": …}}`, or FastAPI's `{"detail": …}`."""
    error = content.get("error", content) if isinstance(content, dict) else content
    if not isinstance(error, dict):
        return Refusal(status, str(error)[:_MAX_SHOWN])
    message = error.get("message") or error.get("detail") or json.dumps(error)
    code = error.get("code")
    if not isinstance(code, str):  # llama-server repeats the status there, and has its words under "type"
        code = str(error.get("type") or "")
    counts = [error.get(key) for key in ("n_prompt_tokens", "n_ctx")]
    num_prompt_tokens, context_length = (count if isinstance(count, int) else 0 for count in counts)
    return Refusal(
        status, str(message)[:_MAX_SHOWN], code, num_prompt_tokens=num_prompt_tokens, context_length=context_length
    )


def is_temporary(status: int) -> bool:
    """Whether the same request may be answered a little later."""
    return status in _TEMPORARY


def wait_s(attempt: int, headers: Mapping[str, str]) -> float | None:
    """How long to wait after the attempt of this number (from 0); None where the server asks for too long.

    What the server says (`retry-after-ms`, `Retry-After`) counts; else twice as long each time, and by chance a little
    less, so that many clients do not come back at the same moment.
    """
    for name, scale in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            asked = float(headers.get(name, "")) / scale
        except ValueError:
            continue  # a date, or nothing
        return max(asked, 0.0) if asked <= MAX_WAIT_S else None
    return float(_FIRST_WAIT_S * 2**attempt * random.uniform(0.75, 1.0))


def translate(refusal: Refusal, *, url: str, model: str) -> KaiwaError:
    """The error to raise."""
    said = f"{url} answered {refusal.status}: {refusal.message or 'without a word'}"
    if refusal.status in (_UNAUTHORIZED, _FORBIDDEN):
        return RemoteFailed(said, status=refusal.status, hint="check api_key, or the variable KAIWA_API_KEY")
    if refusal.status == _NOT_FOUND:
        return ModelNotFound(said, hint=f"check that the server has the model {model!r}, and that its address is right")
    if refusal.status in _WRONG:
        return _overflow(refusal) or InvalidOption(said, hint="the server refuses the request as it is")
    if refusal.status in _NOT_SPOKEN and refusal.is_page:
        return RemoteFailed(said, status=refusal.status, hint="is this the address of a server with OpenAI's API?")
    if refusal.status == _TOO_MANY:
        return RemoteFailed(said, status=refusal.status, hint="the server has too much to do, or a quota is used up")
    if refusal.status in _NOT_SPOKEN:
        return RemoteFailed(said, status=refusal.status, hint="this server cannot do what it was asked for")
    return RemoteFailed(said, status=refusal.status, hint="the server failed; its log may say why")


def _overflow(refusal: Refusal) -> ContextOverflow | None:
    """The error for a prompt that is too long, where the server gives both numbers."""
    if refusal.num_prompt_tokens and refusal.context_length:
        return ContextOverflow(refusal.num_prompt_tokens, refusal.context_length)
    if "context_length" not in refusal.code and not _OVERFLOW.search(refusal.message):
        return None
    context = _CONTEXT.search(refusal.message)
    counts = [_number(count) for count in _COUNT.findall(refusal.message)]
    if context is None or max(counts) <= _number(context[1]):
        return None
    return ContextOverflow(max(counts), _number(context[1]))


def _title(page: str) -> str:
    title = _TITLE.search(page)
    return f"the web page {' '.join(title[1].split())!r}" if title else "a web page"


def _number(text: str) -> int:
    return int(text.replace(",", ""))
