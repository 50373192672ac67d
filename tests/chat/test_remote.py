"""A model on another server: over real connections, on good and bad days."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import kaiwa as kw
from kaiwa.apps.testing import AppTester
from kaiwa.chat import remote_errors
from kaiwa.chat.address import is_address
from kaiwa.chat.remote import RemoteModel
from kaiwa.errors import (
    ContextOverflow,
    InvalidMessages,
    InvalidOption,
    KaiwaError,
    ModelNotFound,
    RemoteFailed,
    UnsupportedModel,
)
from kaiwa.events import (
    BrokenToolCall,
    Event,
    Finished,
    ReasoningDelta,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolCallStarted,
    Usage,
)
from openai_server import OpenAIServer, Said, text_chunks

USAGE = {"prompt_tokens": 12, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 8}}
HELLO = Said(chunks=text_chunks("Hel", "lo", " you", usage=USAGE))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    monkeypatch.delenv("KAIWA_API_KEY", raising=False)
    monkeypatch.setattr(remote_errors, "_FIRST_WAIT_S", 0.01)
    with OpenAIServer([HELLO]).serve() as server:
        yield server


@pytest.fixture
def model(server: OpenAIServer) -> Iterator[RemoteModel]:
    with RemoteModel(server.url) as model:
        yield model


def failure(model: RemoteModel, **options: Any) -> KaiwaError:
    with pytest.raises(KaiwaError) as caught:
        model.chat("Hi", **options)
    return caught.value


def test_an_answer_whole_and_in_pieces(server: OpenAIServer, model: RemoteModel) -> None:
    reply = model.chat("Hi")
    assert (reply.text, reply.finish_reason, reply.usage) == ("Hello you", "stop", Usage(12, 8, 3))
    assert 0 < reply.timings.first_token_s <= reply.timings.first_token_s + reply.timings.decode_s
    assert [event.text for event in model.stream([{"role": "user", "content": "Hi"}])] == ["Hel", "lo", " you", ""]
    assert server.asked[0] == server.asked[1]
    assert server.asked[0] == {
        "path": "/v1/chat/completions",
        "model": "tiny",
        "messages": [{"role": "user", "content": "Hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_the_same_in_an_event_loop(server: OpenAIServer, model: RemoteModel) -> None:
    async def main() -> tuple[str, list[str]]:
        replies = await asyncio.gather(*(model.achat("Hi") for _ in range(5)))
        assert {reply.text for reply in replies} == {"Hello you"}
        return replies[0].text, [event.text async for event in model.astream_text("Once")]

    assert asyncio.run(main()) == ("Hello you", ["Hel", "lo", " you", ""])
    assert server.asked[-1]["prompt"] == "Once"


def test_options_go_in_the_servers_words(server: OpenAIServer, model: RemoteModel) -> None:
    model.chat("Hi", max_new_tokens=5, do_sample=False, top_k=3, stop="END", repetition_penalty=1.1)
    asked = {**server.asked[-1]}
    assert asked["max_tokens"] == 5
    assert asked["temperature"] == 0
    assert asked["top_k"] == 3
    assert asked["stop"] == ["END"]
    assert asked["repetition_penalty"] == 1.1
    assert "do_sample" not in asked
    server.models[0]["owned_by"] = "llamacpp"
    with RemoteModel(server.url, temperature=0.3) as llama:
        llama.chat("Hi", repetition_penalty=1.2)
        assert llama.sampling.temperature == 0.3
    assert (server.asked[-1]["repeat_penalty"], server.asked[-1]["temperature"]) == (1.2, 0.3)


def test_wishes_go_along(server: OpenAIServer, model: RemoteModel) -> None:
    tools = [{"type": "function", "function": {"name": "clock", "parameters": {}}}]
    model.chat(
        [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "I"}],
        tools=tools,
        tool_choice="required",
        parallel_tool_calls=False,
        response_format={"type": "json_object"},
        template_variables={"enable_thinking": False},
        continue_final_message=True,
        num_logprobs=2,
    )
    asked = server.asked[-1]
    assert (asked["tools"], asked["tool_choice"], asked["parallel_tool_calls"]) == (tools, "required", False)
    assert asked["response_format"] == {"type": "json_object"}
    assert asked["chat_template_kwargs"] == {"enable_thinking": False}
    assert (asked["continue_final_message"], asked["add_generation_prompt"]) == (True, False)
    assert (asked["logprobs"], asked["top_logprobs"]) == (True, 2)


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_thoughts_of_both_names(server: OpenAIServer, model: RemoteModel, field: str) -> None:
    thought = {"choices": [{"index": 0, "delta": {field: "Hm."}}]}
    server.script = [Said(chunks=[thought, *text_chunks("Yes.")])]
    events = list(model.stream("Hi"))
    assert events[:2] == [ReasoningDelta("Hm."), TextDelta("Yes.")]
    assert model.chat("Hi").reasoning == "Hm."


def call(index: int, arguments: str, **more: Any) -> dict[str, Any]:
    function = {"arguments": arguments, **({"name": more.pop("name")} if "name" in more else {})}
    return {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": index, "function": function, **more}]}}]}


def test_tool_calls_come_in_pieces_and_whole(server: OpenAIServer, model: RemoteModel) -> None:
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
    pieces = [call(0, "", id="a", name="add"), call(0, '{"x":'), call(0, " 1}"), call(1, "", id="b", name="now")]
    server.script = [Said(chunks=[*pieces, call(2, "{oops", id="c", name="bad"), end])]
    events = list(model.stream("Hi", tools=[{"type": "function", "function": {"name": "add"}}]))
    assert events[:-1] == [
        ToolCallStarted(0, "a", "add"),
        ToolCallDelta(0, '{"x":'),
        ToolCallDelta(0, " 1}"),
        ToolCallStarted(1, "b", "now"),
        ToolCallStarted(2, "c", "bad"),
        ToolCallDelta(2, "{oops"),
        ToolCall("add", {"x": 1}, "a", 0),
        ToolCall("now", {}, "b", 1),
        BrokenToolCall("{oops", "the arguments of bad are no JSON", 2),
    ]
    assert isinstance(events[-1], Finished)
    assert events[-1].finish_reason == "tool_calls"


def test_logprobs(server: OpenAIServer, model: RemoteModel) -> None:
    token = {"token": "A", "logprob": -0.1, "bytes": [65], "top_logprobs": [{"token": "ü", "logprob": -2, "id": 7}]}
    chunk = {"choices": [{"index": 0, "delta": {"content": "A"}, "logprobs": {"content": [token]}}]}
    server.script = [Said(chunks=[chunk, *text_chunks()])]
    first = next(model.stream("Hi", num_logprobs=1))
    assert isinstance(first, TextDelta)
    (found,) = first.logprobs
    assert (found.token_id, found.token, found.logprob) == (-1, b"A", -0.1)
    assert [(best.token_id, best.token, best.logprob) for best in found.best] == [(7, "ü".encode(), -2.0)]


def test_a_busy_server_is_asked_again(server: OpenAIServer, model: RemoteModel) -> None:
    server.script = [Said(429, {"Retry-After": "0.3"}, {"error": {"message": "slow"}}), Said(503, body=b"oops"), HELLO]
    assert model.chat("Hi").text == "Hello you"
    assert len(server.asked) == 3
    assert server.asked_at[1] - server.asked_at[0] >= 0.3


def test_a_server_that_stays_busy_is_an_error(server: OpenAIServer) -> None:
    server.script = [Said(503, body={"error": {"message": "overloaded"}})]
    with RemoteModel(server.url, max_retries=2) as model:
        error = failure(model)
        assert isinstance(error, RemoteFailed)
        assert (error.status, len(server.asked)) == (503, 3)
        assert str(error) == f"{server.url} answered 503: overloaded"
        server.script = [Said(429, {"Retry-After": "3600"}, {"error": {"message": "come back in an hour"}})]
        assert "come back in an hour" in str(failure(model))
        assert len(server.asked) == 4, "an hour is not waited for"


@pytest.mark.parametrize(
    ("said", "kind", "words", "hint"),
    [
        (Said(401, body={"error": {"message": "bad key"}}), RemoteFailed, "answered 401: bad key", "api_key"),
        (Said(404, body={"error": {"message": "no such model"}}), ModelNotFound, "no such model", "'tiny'"),
        (Said(400, body={"error": {"message": "n must be 1"}}), InvalidOption, "n must be 1", "refuses"),
        (Said(422, body={"detail": [{"msg": "bad"}]}), InvalidOption, "bad", "refuses"),
        (Said(500, body=b"<html>oops</html>"), RemoteFailed, "answered 500: a web page", "log"),
        (Said(501, body=b"<!DOCTYPE HTML><title>Not\n this</title>"), RemoteFailed, "the web page 'Not this'", "API?"),
        (
            Said(400, body={"error": {"message": "x", "code": 400, "n_prompt_tokens": 900, "n_ctx": 512}}),
            ContextOverflow, "900 tokens, and the context holds 512", "shorten",
        ),
        (
            Said(400, body={"error": {"message": "maximum context length is 8,192 tokens. You sent 9031 tokens"}}),
            ContextOverflow, "9,031 tokens, and the context holds 8,192", "shorten",
        ),
    ],
)  # fmt: skip
def test_refusals_are_our_errors(
    server: OpenAIServer, said: Said, kind: type[KaiwaError], words: str, hint: str
) -> None:
    with RemoteModel(server.url, max_retries=0) as model:
        server.script = [said]
        error = failure(model)
    assert type(error) is kind
    assert words in str(error)
    assert hint in error.hint


def test_fields_that_a_server_refuses_are_left_out_or_renamed(server: OpenAIServer, model: RemoteModel) -> None:
    server.script = [
        Said(400, body={"error": {"message": "unknown field stream_options"}}),
        Said(400, body={"error": {"message": "use 'max_completion_tokens' instead"}}),
        HELLO,
    ]
    assert model.chat("Hi", max_new_tokens=7).text == "Hello you"
    assert server.asked[-1]["max_completion_tokens"] == 7
    assert not {"stream_options", "max_tokens"} & set(server.asked[-1])


def test_an_answer_that_breaks_off_is_an_error_and_not_said_twice(server: OpenAIServer, model: RemoteModel) -> None:
    server.script = [Said(chunks=text_chunks("Hel")[:2], cut=True)]
    events = model.stream("Hi")
    assert next(events).text == "Hel"
    with pytest.raises(RemoteFailed, match="in the middle of the answer"):
        next(events)
    assert len(server.asked) == 1
    assert list(events) == []
    server.script = [Said(chunks=[*text_chunks("Hel")[:2], {"error": {"message": "out of memory"}}])]
    with pytest.raises(RemoteFailed, match="the server broke off: out of memory"):
        model.chat("Hi")
    server.script = [Said(chunks=["no JSON"])]
    with pytest.raises(RemoteFailed, match="no JSON"):
        model.chat("Hi")


def test_no_done_and_no_usage_will_do(server: OpenAIServer, model: RemoteModel) -> None:
    server.script = [Said(chunks=text_chunks("a", "b", finish="length")[:-1])]
    reply = model.chat("Hi")
    assert (reply.text, reply.finish_reason, reply.usage) == ("ab", "length", Usage(0, 0, 2))


def test_leaving_closes_the_connection(server: OpenAIServer, model: RemoteModel) -> None:
    server.script = [Said(chunks=text_chunks("Hel", "lo"), pause=threading.Event())]
    with_close = model.stream("Hi")
    assert next(with_close).text == "Hel"
    with_close.close()
    assert server.client_left.wait(10)
    assert list(with_close) == []

    server.client_left.clear()
    cancelled = model.stream("Hi")
    assert next(cancelled).text == "Hel"
    cancelled.cancel()
    *_, last = cancelled
    assert isinstance(last, Finished)
    assert last.finish_reason == "cancelled"
    assert server.client_left.wait(10)

    server.client_left.clear()
    for event in model.stream("Hi"):
        assert event.text == "Hel"
        break
    assert server.client_left.wait(10)


def test_a_cancelled_task_closes_the_connection(server: OpenAIServer, model: RemoteModel) -> None:
    server.script = [Said(chunks=text_chunks("Hel", "lo"), pause=threading.Event())]

    async def main() -> None:
        task = asyncio.create_task(model.achat("Hi"))
        while not server.asked:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert server.client_left.wait(10)


def test_closing_the_model_ends_its_answers(server: OpenAIServer) -> None:
    server.script = [Said(chunks=text_chunks("Hel", "lo"), pause=threading.Event())]
    model = RemoteModel(server.url)
    events = model.stream("Hi")
    assert next(events).text == "Hel"
    model.close()
    *_, last = events
    assert isinstance(last, Finished)
    assert last.finish_reason == "cancelled"


def test_mistakes_are_seen_before_anything_is_sent(server: OpenAIServer, model: RemoteModel) -> None:
    with pytest.raises(InvalidOption, match="no option 'temprature'"):
        model.stream("Hi", temprature=1)
    with pytest.raises(InvalidMessages):
        model.astream([])
    assert server.asked == []


def test_tokens_are_counted_once(server: OpenAIServer, model: RemoteModel) -> None:
    model.chat("Hi")
    assert model.count_tokens("Hi") == 12
    assert len(server.asked) == 1
    assert model.count_tokens("Hello") == 12
    assert server.asked[-1]["max_tokens"] == 1


def test_which_model_it_is(server: OpenAIServer) -> None:
    server.models = [{"id": "tiny", "meta": {"n_params": 5, "n_ctx": 64, "ftype": "Q8_0"}}, {"id": "big"}]
    with RemoteModel(server.url, model="tiny") as model:
        card = model.card
        assert (card.name, card.num_parameters, card.context_length, card.number_format) == ("tiny", 5, 64, "Q8_0")
        assert card.engine.startswith("at 127.0.0.1:")
    with pytest.raises(InvalidOption, match="2 models, and none was named") as caught:
        RemoteModel(server.url)
    assert caught.value.hint == "name one: big, tiny"
    with pytest.raises(ModelNotFound, match="has no model 'tinny'") as not_found:
        RemoteModel(server.url, model="tinny")
    assert not_found.value.hint == "did you mean 'tiny'?"
    server.models = []
    with RemoteModel(server.url, model="any") as model:
        assert model.chat("Hi").text == "Hello you"


def test_the_key(server: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.key = "secret"
    with pytest.raises(RemoteFailed, match="answered 401: wrong API key"):
        RemoteModel(server.url, api_key="wrong")
    monkeypatch.setenv("KAIWA_API_KEY", "secret")
    with RemoteModel(server.url) as model:
        assert model.chat("Hi").text == "Hello you"
    assert "secret" not in repr(model)


def test_a_server_that_does_not_stream(server: OpenAIServer, model: RemoteModel) -> None:
    message = {"role": "assistant", "content": "Hello", "reasoning": "Hm.", "tool_calls": None}
    whole = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": USAGE}
    server.script = [Said(headers={"Content-Type": "application/json; charset=utf-8"}, body=whole)]
    reply = model.chat("Hi")
    assert (reply.text, reply.reasoning, reply.usage) == ("Hello", "Hm.", Usage(12, 8, 3))


def test_a_web_server_is_no_model(server: OpenAIServer, model: RemoteModel) -> None:
    page = b"<!doctype html><title>Welcome</title>"
    server.script = [Said(headers={"Content-Type": "text/html"}, body=page)]
    error = failure(model)
    assert str(error) == f"{server.url} answered with something that is no JSON: the web page 'Welcome'"
    assert error.hint == "is this the address of a server with OpenAI's API?"


def test_vectors(server: OpenAIServer, model: RemoteModel) -> None:
    rows = [{"index": 1, "embedding": [0, 2.0]}, {"index": 0, "embedding": [3, 4]}]
    server.script = [Said(body={"data": rows, "usage": {"prompt_tokens": 7}})]
    first, second = model.embed(["Hi", [1, 2]])
    assert list(first.vector) == pytest.approx([0.6, 0.8])
    assert list(second.vector) == [0.0, 1.0]
    assert (first.num_tokens, second.num_tokens) == (7, 0)
    assert server.asked[0]["path"] == "/v1/embeddings"
    assert server.asked[0]["input"] == ["Hi", [1, 2]]
    server.script = [Said(body={"data": [rows[1]], "usage": {"prompt_tokens": 7}})]
    assert asyncio.run(model.aembed(["Hi"]))[0].num_tokens == 7
    with pytest.raises(RemoteFailed, match="1 vectors for 2 texts"):
        model.embed(["a", "b"])
    server.script = [Said(body={"object": "list"})]
    with pytest.raises(RemoteFailed, match="has no vectors"):
        model.embed(["a"])
    with pytest.raises(InvalidMessages, match="a text is empty"):
        model.embed([""])
    with pytest.raises(InvalidMessages, match="a list of texts"):
        model.embed("text")
    with pytest.raises(InvalidOption, match="pooling='mean' is the server's"):
        model.embed(["a"], pooling="mean")


def test_a_server_keeps_its_tokens_to_itself(model: RemoteModel) -> None:
    for ask in (lambda: model.tokenize("Hi"), lambda: model.detokenize([1])):
        with pytest.raises(UnsupportedModel, match="OpenAI's API has no tokenizer"):
            ask()


def test_logprobs_of_plain_text(server: OpenAIServer, model: RemoteModel) -> None:
    logprobs = {"tokens": ["a", "é"], "token_logprobs": [-0.5, -1.0], "top_logprobs": [{"b": -2.0, "a": -0.5}, None]}
    chunk = {"choices": [{"index": 0, "text": "aé", "logprobs": logprobs, "finish_reason": "stop"}]}
    server.script = [Said(chunks=[chunk, "[DONE]"])]
    first, _ = model.stream_text("x", num_logprobs=2, client="somebody")
    assert isinstance(first, TextDelta)
    assert [(token.token, token.logprob) for token in first.logprobs] == [(b"a", -0.5), ("é".encode(), -1.0)]
    assert [token.token for token in first.logprobs[0].best] == [b"a", b"b"]
    assert server.asked[0]["logprobs"] == 2


@pytest.mark.parametrize("url", ["ftp://host/v1", "http://", "https://me:pw@host/v1", "https://host/v1?x=1", "host"])
def test_addresses_that_are_none(url: str) -> None:
    with pytest.raises(InvalidOption):
        RemoteModel(url)


def test_addresses_of_any_length(server: OpenAIServer) -> None:
    for url in (server.url + "/", server.url.removesuffix("/v1"), server.url + "/chat/completions"):
        with RemoteModel(url) as model:
            assert model.chat("Hi").text == "Hello you"
    assert is_address(server.url)
    assert not is_address("https://huggingface.co/org/name")
    assert not is_address("https://hf.co/org/name/tree/main")
    assert is_address("https://hf.company.com/v1")
    assert not is_address("org/name")


def test_an_address_is_a_model(server: OpenAIServer) -> None:
    with kw.LLM(server.url, model="tiny", temperature=0.5) as model:
        assert model.chat("Hi").text == "Hello you"
    assert server.asked[0]["temperature"] == 0.5


def test_options_of_models_on_this_machine_are_the_servers(server: OpenAIServer) -> None:
    with kw.LLM(server.url, threads=None, cache_dir=None, max_waiting=8, on_progress=print, api_key="k") as model:
        assert model.chat("Hi").text == "Hello you"
    for options in ({"threads": 2}, {"engine": "native"}, {"assistant_model": "small"}, {"speculation": False}):
        name = next(iter(options))
        with pytest.raises(InvalidOption, match=f"{name}=.* has no effect on a model on another server"):
            kw.LLM(server.url, **options)


def test_an_app_with_a_model_on_another_server(server: OpenAIServer) -> None:
    app = kw.App()
    model = kw.Model(server.url, load=None)

    @app.on_message
    async def answer(message: kw.Message) -> None:
        await kw.reply(model)

    with AppTester(app) as tester:
        chat = tester.start()
        chat.say("Hi")
        assert chat.last == "Hello you"
    assert server.asked[0]["messages"] == [{"role": "user", "content": "Hi"}]


def test_nobody_there() -> None:
    with pytest.raises(RemoteFailed, match=r"http://127\.0\.0\.1:9/v1 cannot be reached") as caught:
        RemoteModel("http://127.0.0.1:9/v1", max_retries=0)
    assert "whether the server is running" in caught.value.hint


def test_events_of_a_slow_reader_wait(server: OpenAIServer, model: RemoteModel) -> None:
    async def main() -> list[Event]:
        events = []
        async for event in model.astream("Hi"):
            await asyncio.sleep(0.02)
            events.append(event)
        return events

    assert "".join(event.text for event in asyncio.run(main())) == "Hello you"
    assert json.dumps(server.asked)
