"""A model in a process of its own: the same answers, and what happens when that process, or this one, ends."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import children
from kaiwa.chat.tools import run_tools
from kaiwa.errors import (
    Cancelled,
    ContextOverflow,
    EngineCrashed,
    InvalidMessages,
    InvalidOption,
    KaiwaError,
    UnusableFile,
)
from kaiwa.events import Finished, Progress, TextDelta, ToolResult
from kaiwa.runtime.llm import LLM
from kaiwa.runtime.pool.model_pool import ModelPool
from kaiwa.runtime.pool.shelf import State as PoolState
from kaiwa.runtime.process import child, wire
from kaiwa.runtime.process.model_process import ModelProcess, in_child
from kaiwa.runtime.process.supervisor import State
from small_model import until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no socket pairs to hand to a process")
AT_ONCE = (0.0, 0.0, 0.0)


@pytest.fixture(autouse=True)
def nothing_stays_behind() -> Iterator[None]:
    """No descriptor stays open, and no child is left or unburied."""
    descriptors, others = len(descriptors_of("self")), own_children()
    yield
    until(lambda: len(descriptors_of("self")) <= descriptors)
    until(lambda: own_children() <= others)


def process(make: Callable[..., Any] = children.talking, **options: Any) -> ModelProcess:
    return ModelProcess("small", make=make, **options)


def text_of(events: Any) -> str:
    return "".join(event.text for event in events)


def test_it_answers_as_the_model_itself() -> None:
    seen: list[Progress] = []
    with process(on_progress=seen.append) as it:
        assert seen == [Progress("load", 1, 2, "tensors")]
        assert (it.card.name, it.card.engine, it.sampling.temperature) == ("small", "scripted", 0.7)
        assert it.pid != os.getpid()
        assert it.chat_template is not None
        assert "<|im_start|>" in it.chat_template
        reply = it.chat("Hi")
        assert (reply.text, reply.finish_reason) == ("Hello", "stop")
        events = list(it.stream("Hi", max_new_tokens=3))
        assert text_of(events) == "Hel"
        assert [type(event) for event in events] == [TextDelta] * 3 + [Finished]
        assert it.count_tokens("Hi") == reply.usage.prompt_tokens
        assert it.tokenize("Hi") == [72, 105]
        assert it.detokenize([72, 105]) == "Hi"
        assert text_of(it.stream_text("Hi")) == text_of(it.stream_text([72, 105])) == "Hello"
        [embedding] = it.embed(["Hi"], pooling="last")
        assert (len(embedding.vector), embedding.num_tokens) == (8, 2)
        assert asyncio.run(it.aembed(["Hi"], pooling="last")) == [embedding]
        assert asyncio.run(text_of_all(it.astream_text("Hi"))) == "Hello"
    assert not Path(f"/proc/{it.pid}").exists()


def test_functions_stay_here_and_their_calls_come_back() -> None:
    def get_weather(city: str) -> str:
        """The weather in a city."""
        return f"sunny in {city}"

    with process(children.calling) as it:
        (made,) = it.chat("Is it warm?", tools=[get_weather]).tool_calls
        assert (made.name, made.arguments) == ("get_weather", {"city": "Ulm"})
        results = [
            event for event in run_tools(it, "Warm?", [get_weather], max_rounds=2) if isinstance(event, ToolResult)
        ]
        assert [result.content for result in results] == ["sunny in Ulm"]


def test_all_logprobs_of_a_long_answer_cross() -> None:
    with process(text="x" * 2000) as it:
        *deltas, last = it.stream("Hi", num_logprobs=20)
        tokens = [entry for delta in deltas if isinstance(delta, TextDelta) for entry in delta.logprobs]
        assert [entry.token for entry in tokens] == [b"x"] * 2000
        assert tokens[0].best[0].token == b"x"
        assert isinstance(last, Finished)


def test_it_answers_tasks_and_never_holds_up_their_loop() -> None:
    async def main() -> None:
        lags = []
        with process(children.echoing, delay_s=0.002) as it:
            task = asyncio.gather(*(it.achat(f"question {number}") for number in range(10)))
            while not task.done():
                before = time.perf_counter()
                await asyncio.sleep(0.002)
                lags.append(time.perf_counter() - before)
            assert [reply.text for reply in await task] == [f"question {number}" for number in range(10)]
            assert sorted(lags)[len(lags) * 9 // 10] < 0.03

    asyncio.run(main())


def test_threads_and_tasks_at_once_each_get_their_own_answer() -> None:
    with process(children.echoing) as it:
        texts: dict[str, str] = {}

        def in_a_thread(name: str) -> None:
            texts[name] = it.chat(name).text

        async def in_tasks(names: list[str]) -> None:
            async def one(name: str) -> None:
                texts[name] = text_of([event async for event in it.astream(name)])

            await asyncio.gather(*(one(name) for name in names))

        threads = [threading.Thread(target=in_a_thread, args=(f"thread {number}",)) for number in range(20)]
        names = [f"task {number}" for number in range(20)]
        threads.append(threading.Thread(target=asyncio.run, args=(in_tasks(names),)))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    assert texts == {name: name for name in texts}
    assert len(texts) == 40


def test_refusals_come_with_their_type_words_and_hint() -> None:
    with process() as it:
        with pytest.raises(InvalidOption, match="'temprature'") as caught:
            it.stream("Hi", temprature=0.5)
        assert caught.value.hint == "did you mean 'temperature'?"
        with pytest.raises(InvalidMessages, match="role 'robot'"):
            it.chat([{"role": "robot", "content": "Hi"}])
        with pytest.raises(ContextOverflow) as overflow:
            it.stream("x" * 5000)
        assert overflow.value.prompt_tokens > 5000
        assert overflow.value.context_length == 4096
        with pytest.raises(AttributeError) as foreign:
            it.tokenize(3)  # type: ignore[arg-type]
        assert "in the model's process: Traceback" in foreign.value.__notes__[-1]
        with pytest.raises((TypeError, AttributeError)):
            it.stream("Hi", stop=lambda: None)
        assert it.chat("Hi").text == "Hello"

        async def main() -> None:
            with pytest.raises(InvalidOption, match="'temprature'"):
                await it.achat("Hi", temprature=0.5)

        asyncio.run(main())


def test_a_load_that_fails_raises_what_it_raised() -> None:
    with pytest.raises(UnusableFile, match="cut short") as caught:
        process(children.refusing)
    assert (caught.value.path, caught.value.hint) == ("x.gguf", "download it again")
    with pytest.raises(ZeroDivisionError, match="a mistake of ours"):
        process(children.mistaken)
    with pytest.raises(EngineCrashed, match="the process of small was killed by SIGKILL while it loaded") as crash:
        process(children.crashing)
    assert crash.value.exit_code == -signal.SIGKILL
    with pytest.raises(InvalidOption, match="no option 'context_lenght'") as option:
        ModelProcess("nothing.gguf", context_lenght=3)
    assert option.value.hint == "did you mean 'context_length'?"


def test_another_version_on_disk_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "VERSION", "0.0.0/0")
    with pytest.raises(KaiwaError, match="changed on disk") as caught:
        process()
    assert caught.value.hint == "start the program again"


def test_an_answer_can_be_cancelled_and_left() -> None:
    with process(text="x" * 1000, delay_s=0.01) as it:
        stream = it.stream("Hi")
        next(stream)
        stream.cancel()
        *_, last = stream
        assert isinstance(last, Finished)
        assert last.finish_reason == "cancelled"
        stream = it.stream("Hi")
        next(stream)
        stream.close()
        assert list(stream) == []
        it.stream("Hi")  # and forgotten
        started = time.monotonic()
        assert it.chat("Hi", max_new_tokens=2).text == "xx"
        assert time.monotonic() - started < 1, "the model does nothing else any more"


def test_a_task_that_is_cancelled_ends_the_work_in_the_middle_of_a_prompt() -> None:
    async def main() -> None:
        with process(delay_s=0.05, context_length=100_000) as it:
            task = asyncio.create_task(it.achat("x" * 50_000))
            await asyncio.sleep(0.3)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            started = time.monotonic()
            assert (await it.achat("Hi")).text == "Hello"
            assert time.monotonic() - started < 1.5, "the prompt alone would take five seconds"

    asyncio.run(main())


def test_a_slow_reader_holds_up_nobody_and_loses_nothing() -> None:
    length = 3 * wire.WINDOW
    with process(text="x" * length) as it:
        slow = it.stream("Hi")
        next(slow)
        time.sleep(0.1)
        assert it.chat("Hi").text == "x" * length
        assert len(text_of(slow)) == length - 1


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_a_crash_ends_what_is_answered_and_the_next_request_works(number: signal.Signals) -> None:
    with process(text="x" * 1000, delay_s=0.01) as it:
        first_pid, stream = it.pid, it.stream("Hi")
        next(stream)
        os.kill(first_pid, number)
        with pytest.raises(EngineCrashed, match=f"killed by {number.name} in the middle of an answer") as caught:
            list(stream)
        assert caught.value.exit_code == -number
        assert "starts again by itself" in caught.value.hint
        assert it.chat("Hi", max_new_tokens=3).text == "xxx"
        assert it.pid != first_pid
        assert it.state is State.READY


def test_a_process_that_talks_nonsense_is_started_again() -> None:
    with process(children.garbled) as it:
        first_pid = it.pid
        with pytest.raises(EngineCrashed, match="ended with the exit code 0 in the middle of an answer"):
            it.detokenize([72])
        assert it.chat("Hi").text == "Hello"
        assert it.pid != first_pid


def test_requests_that_come_while_it_starts_again_wait_for_it() -> None:
    async def main() -> None:
        with process(back_off_s=(0.2,)) as it:
            os.kill(it.pid, signal.SIGKILL)
            while it.state is State.READY:
                await asyncio.sleep(0.001)
            left = asyncio.create_task(it.achat("Hi"))
            replies = asyncio.gather(*(it.achat("Hi") for _ in range(5)))
            await asyncio.sleep(0.01)
            left.cancel()
            assert it.state is State.STARTING
            assert [reply.text for reply in await replies] == ["Hello"] * 5

    asyncio.run(main())


def test_a_model_that_crashes_on_each_load_is_given_up(tmp_path: Path) -> None:
    loads = tmp_path / "loads"
    with process(children.crashing_later, loads=str(loads), back_off_s=AT_ONCE) as it:
        os.kill(it.pid, signal.SIGKILL)
        until(lambda: it.state is not State.READY)
        with pytest.raises(EngineCrashed, match="killed by SIGABRT while it loaded"):
            it.chat("Hi")
        assert it.state is State.LOST
        assert len(loads.read_text()) == 1 + len(AT_ONCE)
        with pytest.raises(EngineCrashed):
            it.count_tokens("Hi")


def test_an_answer_sets_the_count_of_crashes_back() -> None:
    with process(back_off_s=(0.0, 0.0)) as it:
        for _ in range(4):
            os.kill(it.pid, signal.SIGKILL)
            until(lambda: it.state is State.STARTING)
            assert it.chat("Hi").text == "Hello"


def test_closing_ends_what_is_answered_and_what_waits() -> None:
    it = process(text="x" * 1000, delay_s=0.01)
    stream = it.stream("Hi")
    next(stream)
    it.close()
    it.close()
    for use in (lambda: list(stream), lambda: it.chat("Hi"), lambda: it.tokenize("Hi")):
        with pytest.raises(KaiwaError, match="the model was closed"):
            use()
    it = process(back_off_s=(60,))
    os.kill(it.pid, signal.SIGKILL)
    until(lambda: it.state is State.STARTING)
    started = time.monotonic()
    it.close()
    assert time.monotonic() - started < 1


def test_a_process_that_does_not_react_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kaiwa.runtime.process.supervisor.PATIENCE_S", 0.1)
    monkeypatch.setattr(child, "PATIENCE_S", 0.1)
    it = process()
    os.kill(it.pid, signal.SIGSTOP)
    it.close()
    assert not Path(f"/proc/{it.pid}").exists()


def test_it_ignores_the_terminal_and_a_services_stop_signal() -> None:
    with process(text="x" * 20, delay_s=0.01) as it:
        assert os.getsid(it.pid) != os.getsid(0), "Ctrl-C goes to the terminal's session only"
        stream = it.stream("Hi")
        next(stream)
        os.kill(it.pid, signal.SIGINT)
        os.kill(it.pid, signal.SIGTERM)
        assert text_of(stream) == "x" * 19


def test_it_inherits_no_listening_socket() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.set_inheritable(True)
        with process() as it:
            names = descriptors_of(it.pid)
            assert f"socket:[{os.fstat(server.fileno()).st_ino}]" not in names
            assert len([name for name in names if name.startswith("socket:")]) == 1


def test_it_ends_when_this_process_is_killed() -> None:
    script = (
        "import children\n"
        "from kaiwa.runtime.process.model_process import ModelProcess\n"
        "it = ModelProcess('small', make=children.talking, text='x' * 100_000, delay_s=0.01)\n"
        "stream = it.stream('Hi'); next(stream)\n"
        "print(it.pid, flush=True)\n"
        "input()\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert is_running(pid)
        parent.kill()
    until(lambda: not is_running(pid))


def test_a_program_may_forget_to_close_it() -> None:
    script = (
        "import children\n"
        "from kaiwa.runtime.process.model_process import ModelProcess\n"
        "it = ModelProcess('small', make=children.talking)\n"
        "print(it.pid, it.chat('Hi').text)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], capture_output=True, env=environment, text=True, check=True
    )
    pid, text = ran.stdout.split()
    assert (text, ran.stderr) == ("Hello", "")
    assert not is_running(int(pid))


def test_it_has_all_that_a_model_here_has() -> None:
    names = {name for name in dir(LLM) if not name.startswith("_")}
    of_this_process = {"from_parts", "drafter_for"}  # they take or give what another process does not have
    assert names - set(dir(ModelProcess)) == of_this_process


def test_whoever_only_speaks_to_a_process_imports_no_more_than_that() -> None:
    script = "import sys, kaiwa.runtime.pool, kaiwa.runtime.process; print(*sys.modules)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, env=environment, text=True, check=True)
    heavy = {"asyncio", "jinja2", "tokenizers", "kaiwa.runtime.llm", "kaiwa.runtime.loading.loader", "kaiwa.weights"}
    assert not heavy & set(ran.stdout.split())


def test_a_pool_of_processes() -> None:
    async def main() -> None:
        seen: list[Progress] = []
        async with ModelPool(memory_bytes=1_500_000) as pool:
            pool.add("a", in_child("small", make=children.hungry))
            pool.add("b", in_child("small", make=children.hungry))
            async with pool.use("a") as it:
                assert (await it.achat("Hi")).text == "1500000 750000"
                task = asyncio.create_task(pool.load("b", on_progress=seen.append))
                while not seen:
                    await asyncio.sleep(0.001)
                assert seen == [Progress("waiting", 0, 0)]
            await task
            assert [status.num_bytes for status in pool.models()] == [None, 1_000_000]

    asyncio.run(main())


def test_a_pool_ends_a_process_that_loads() -> None:
    with ModelPool() as pool:
        pool.add("a", in_child("small", make=children.slow_to_load))
        timer = threading.Timer(0.5, pool.unload, ["a"])
        timer.start()
        with pytest.raises(Cancelled):
            pool.using("a").__enter__()
        timer.join()


def test_a_pool_loads_anew_what_was_given_up(tmp_path: Path) -> None:
    loads = tmp_path / "loads"
    with ModelPool() as pool:
        pool.add("a", in_child("small", make=children.crashing_later, loads=str(loads), back_off_s=()))
        with pool.using("a") as it:
            assert isinstance(it, ModelProcess)
            os.kill(it.pid, signal.SIGKILL)
            until(lambda: pool.status("a").error)
        until(lambda: pool.status("a").state is PoolState.FAILED)
        loads.unlink()
        with pool.using("a") as again:
            assert again.chat("Hi").text == "Hello"


async def text_of_all(events: Any) -> str:
    return text_of([event async for event in events])


def descriptors_of(pid: int | str) -> list[str]:
    """What a process holds open, but for the listing itself."""
    names = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            names.append(str(entry.readlink()))
    return names


def own_children() -> set[int]:
    """The processes that this one has started, until it has buried them."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if stat.read_text().rpartition(") ")[2].split()[1] == str(os.getpid()):
                found.add(int(stat.parent.name))
    return found


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except OSError:
        return False
