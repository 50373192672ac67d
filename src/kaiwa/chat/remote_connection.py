"""The connection to a server that speaks OpenAI's API: attempts, waits, and how it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Collection, Mapping
from typing import Any

from kaiwa.chat import remote_errors
from kaiwa.chat.event_stream import EventStream
from kaiwa.chat.remote_answer import Answer
from kaiwa.errors import KaiwaError, RemoteFailed
from kaiwa.events import Event

CONNECT_TIMEOUT_S = 10.0
_OK = 200
_NO_STREAM = ("application/json", "text/html")
# Fields that some servers refuse, and what stands for them there.
_DROPPED = ("stream_options", "add_generation_prompt")
_MAX_TOKENS, _NEW_MAX_TOKENS = "max_tokens", "max_completion_tokens"


class Connection:
    """Asks one server. Belongs to one event loop."""

    def __init__(self, url: str, headers: Mapping[str, str], *, max_retries: int, timeout_s: float) -> None:
        import httpx2

        self._httpx = httpx2
        self._url = url
        self._max_retries = max_retries
        self._client = httpx2.AsyncClient(
            headers=dict(headers), timeout=httpx2.Timeout(timeout_s, connect=CONNECT_TIMEOUT_S)
        )

    async def get(self, path: str) -> Any:
        """The JSON behind a path, or None where the server knows no such path."""
        response = await self._ask("GET", self._url + path, absent_statuses=(404, 405, 501))
        return None if response is None else self._json(response)

    async def post(self, path: str, body: Mapping[str, Any], *, is_at_root: bool = False) -> Any:
        """The JSON that answers a question. `is_at_root` is of paths that do not stand below the server's `/v1`."""
        url = self._url.removesuffix("/v1") if is_at_root else self._url
        return self._json(await self._ask("POST", url + path, json=body))

    async def _ask(self, method: str, url: str, *, json: Any = None, absent_statuses: Collection[int] = ()) -> Any:
        """The response, or None for a status that says that nothing is there."""
        for attempt in range(self._max_retries + 1):
            try:
                response = await self._client.request(method, url, json=json)
            except self._httpx.TransportError as error:
                await self._wait(attempt, {}, self._unreachable(error))
                continue
            if response.status_code == _OK:
                return response
            if response.status_code in absent_statuses:
                return None
            await self._wait_or_raise(attempt, response, str((json or {}).get("model", "")))
        raise AssertionError("the last attempt raises")

    def _json(self, response: Any) -> Any:
        try:
            return response.json()
        except ValueError:
            raise self._not_spoken(response.content) from None

    async def answer(self, path: str, body: Mapping[str, Any], answer: Answer) -> AsyncGenerator[Event]:
        """The events of an answer, without the last ones, which `answer.finish()` gives.

        Tries again, at most `max_retries` times, as long as nothing of the answer has come.
        """
        attempt = 0
        while True:
            try:
                async with self._client.stream("POST", self._url + path, json=body) as response:
                    if response.status_code == _OK:
                        async for data in self._pieces(response):
                            for event in answer.push(data):
                                yield event
                            if answer.is_done:
                                return
                        if answer.is_whole:
                            return
                        raise RemoteFailed(
                            f"{self._url} ended the connection in the middle of the answer", hint="ask again"
                        )
                    await response.aread()
            except self._httpx.TransportError as error:
                if answer.has_begun:
                    raise self._broken(error) from error
                await self._wait(attempt, {}, self._unreachable(error))
            else:
                if (other := _without_what_it_refuses(body, response.status_code, response.text)) is not None:
                    body = other
                    continue
                await self._wait_or_raise(attempt, response, body["model"])
            attempt += 1

    async def _pieces(self, response: Any) -> AsyncGenerator[str]:
        """The JSON texts of an answer: a stream's, or the only one of a server that does not stream."""
        kind = response.headers.get("content-type", "").partition(";")[0]
        if kind in _NO_STREAM:
            await response.aread()
            self._json(response)
            yield response.text
            return
        stream = EventStream()
        async for piece in response.aiter_bytes():
            for data in stream.push(piece):
                yield data
        for data in stream.finish():
            yield data

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def _wait_or_raise(self, attempt: int, response: Any, model: str) -> None:
        refusal = remote_errors.read_refusal(response.status_code, response.content)
        error = remote_errors.translate(refusal, url=self._url, model=model)
        if not remote_errors.is_temporary(response.status_code):
            raise error
        await self._wait(attempt, response.headers, error)

    async def _wait(self, attempt: int, headers: Mapping[str, str], error: KaiwaError) -> None:
        """Wait before the next attempt, or raise the error where there is none."""
        wait_s = remote_errors.wait_s(attempt, headers)
        if attempt >= self._max_retries or wait_s is None:
            raise error
        await asyncio.sleep(wait_s)

    def _not_spoken(self, content: bytes) -> RemoteFailed:
        said = remote_errors.read_refusal(_OK, content).message or "nothing"
        return RemoteFailed(
            f"{self._url} answered with something that is no JSON: {said}",
            hint="is this the address of a server with OpenAI's API?",
        )

    def _unreachable(self, error: Exception) -> RemoteFailed:
        what = "did not answer in time" if isinstance(error, self._httpx.TimeoutException) else "cannot be reached"
        return RemoteFailed(
            f"{self._url} {what}: {str(error) or type(error).__name__}",
            hint="check the address, and whether the server is running",
        )

    def _broken(self, error: Exception) -> RemoteFailed:
        return RemoteFailed(
            f"{self._url} broke off in the middle of the answer: {str(error) or type(error).__name__}", hint="ask again"
        )


def _without_what_it_refuses(body: Mapping[str, Any], status: int, said: str) -> dict[str, Any] | None:
    """The request in words that this server takes, where it names one of ours that it does not; else None."""
    if status not in (400, 422):
        return None
    for refused in _DROPPED:
        if refused in body and refused in said:
            return {name: value for name, value in body.items() if name != refused}
    if _MAX_TOKENS in body and _NEW_MAX_TOKENS in said:
        return {_NEW_MAX_TOKENS if name == _MAX_TOKENS else name: value for name, value in body.items()}
    return None
