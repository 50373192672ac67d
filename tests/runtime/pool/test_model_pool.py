"""What many threads and tasks get from one pool: one load, everybody's progress, a second chance, room for all."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

import pytest

from kaiwa.errors import Cancelled, InvalidOption, KaiwaError, ModelNotFound, OutOfMemory, UnusableFile
from kaiwa.events import Progress
from kaiwa.runtime.llm import LLM
from kaiwa.runtime.pool.admission import Admission, Load, PooledModel, ready
from kaiwa.runtime.pool.model_pool import ModelPool
from kaiwa.runtime.pool.shelf import State
from small_model import model, says, until


class Shop:
    """Loads that a test lets go on when it wants to, and what became of them."""

    def __init__(self, num_bytes: int = 0, *, is_open: bool = True) -> None:
        self.num_bytes = num_bytes
        self.num_loads = 0
        self.problems: list[Exception] = []
        """What the next loads fail with."""
        self.gate = threading.Event()
        self.models: list[LLM] = []
        self.admission: Admission | None = None
        if is_open:
            self.gate.set()

    def load(self, admission: Admission) -> PooledModel:
        self.num_loads += 1
        self.admission = admission
        admission.admit(self.num_bytes)
        admission.report(Progress("load", 1, 2, "tensors"))
        while not self.gate.wait(0.005):
            admission.check()
        if self.problems:
            raise self.problems.pop()
        self.models.append(model(says("Hi")))
        return self.models[-1]


def small(**options: object) -> Load:
    return ready(lambda: model(says("Hi")))


def is_in(pool: ModelPool, name: str, state: State) -> Callable[[], bool]:
    return lambda: pool.status(name).state is state


def test_threads_and_tasks_that_come_together_cause_one_load_and_share_the_model() -> None:
    shop, got = Shop(is_open=False), []
    with ModelPool() as pool:
        pool.add("a", shop.load)

        def in_a_thread() -> None:
            with pool.using("a") as it:
                got.append(it)

        async def in_a_task() -> None:
            async with pool.use("a") as it:
                got.append(it)

        async def many_tasks() -> None:
            await asyncio.gather(*(in_a_task() for _ in range(20)))

        people = [threading.Thread(target=in_a_thread) for _ in range(20)]
        people += [threading.Thread(target=asyncio.run, args=(many_tasks(),)) for _ in range(3)]
        for person in people:
            person.start()
        time.sleep(0.05)
        assert not got
        shop.gate.set()
        for person in people:
            person.join(10)
        assert got == shop.models * 80
        assert shop.num_loads == 1


def test_everybody_sees_the_progress_and_who_comes_late_does_at_once() -> None:
    shop = Shop(is_open=False)

    async def main() -> None:
        async with ModelPool() as pool:
            pool.add("a", shop.load)
            early: list[Progress] = []
            late: list[Progress] = []

            async def come(seen: list[Progress]) -> None:
                async with pool.use("a", on_progress=seen.append):
                    pass

            first = asyncio.create_task(come(early))
            while not early:
                await asyncio.sleep(0.001)
            second = asyncio.create_task(come(late))
            while not late:
                await asyncio.sleep(0.001)
            assert early[-1] == late[-1] == pool.status("a").progress == Progress("load", 1, 2, "tensors")
            assert pool.status("a").state is State.LOADING
            assert shop.admission is not None
            shop.admission.report(Progress("load", 2, 2, "tensors"))
            while len(early) + len(late) < 4:
                await asyncio.sleep(0.001)
            shop.gate.set()
            await asyncio.gather(first, second)
            assert [progress.done for progress in early] == [1, 2]

    asyncio.run(main())


def test_loading_never_holds_up_the_event_loop() -> None:
    def load(admission: Admission) -> PooledModel:
        time.sleep(0.3)
        return model(says("Hi"))

    async def main() -> None:
        lags = []
        async with ModelPool() as pool:
            pool.add("a", load)
            task = asyncio.create_task(pool.load("a"))
            while not task.done():
                before = time.perf_counter()
                await asyncio.sleep(0.005)
                lags.append(time.perf_counter() - before)
        assert len(lags) > 10
        assert sorted(lags)[len(lags) // 2] < 0.05

    asyncio.run(main())


def test_a_failed_load_is_raised_to_all_who_waited_and_can_be_tried_again() -> None:
    shop, errors = Shop(is_open=False), []
    shop.problems.append(UnusableFile("x.gguf", "GGUF", "it is cut short"))
    with ModelPool() as pool:
        pool.add("a", shop.load)

        def come() -> None:
            try:
                with pool.using("a"):
                    pass
            except UnusableFile as error:
                errors.append(str(error))

        people = [threading.Thread(target=come) for _ in range(5)]
        for person in people:
            person.start()
        until(lambda: pool.status("a").num_waiting == 5)
        shop.gate.set()
        for person in people:
            person.join(10)
        assert errors == ["x.gguf is not a usable GGUF file: it is cut short"] * 5
        status = pool.status("a")
        assert (status.state, status.num_users) == (State.FAILED, 0)
        assert isinstance(status.error, UnusableFile)
        with pool.using("a") as it:
            assert it is shop.models[0]
        assert (shop.num_loads, pool.status("a").error) == (2, None)


def test_the_least_recently_used_makes_place() -> None:
    with ModelPool(max_models=2) as pool:
        for name in ("a", "b", "c"):
            pool.add(name, small())
        for name in ("a", "b", "a", "c"):
            with pool.using(name):
                pass
        assert [status.state for status in pool.models()] == [State.READY, State.UNLOADED, State.READY]


def test_a_model_in_use_stays_and_who_needs_its_place_is_told_that_they_wait() -> None:
    a, b = Shop(), Shop()
    seen: list[Progress] = []

    async def main() -> None:
        async with ModelPool(max_models=1) as pool:
            pool.add("a", a.load)
            pool.add("b", b.load)

            async def use_b() -> str:
                async with pool.use("b", on_progress=seen.append) as it:
                    return it.card.name

            async with pool.use("a"):
                task = asyncio.create_task(use_b())
                while not seen:
                    await asyncio.sleep(0.001)
                await asyncio.sleep(0.02)
                assert seen == [Progress("waiting", 0, 0)]
                assert (b.models, pool.status("a").num_users) == ([], 1)
            assert await task == "small"
            assert is_in(pool, "a", State.UNLOADED)()
            async with pool.use("a"):
                assert (a.num_loads, len(a.models)) == (2, 2)

    asyncio.run(main())


def test_memory_is_a_budget() -> None:
    with ModelPool(memory_bytes=100) as pool:
        assert pool.memory_bytes == 100
        pool.add("small", Shop(40).load)
        pool.add("large", Shop(70).load)
        pool.add("huge", Shop(101).load)
        with pool.using("small"):
            assert pool.status("small").num_bytes == 40
        with pool.using("large"):
            assert [status.num_bytes for status in pool.models()] == [None, 70, None]
        with pytest.raises(OutOfMemory, match=r"huge needs 0 MB, and all models together may take 0 MB"):
            pool.using("huge").__enter__()
        assert is_in(pool, "large", State.READY)(), "nobody leaves for what will not fit"


def test_keep_alive_ends_by_itself_and_a_pinned_model_stays() -> None:
    with ModelPool(keep_alive_s=0.02) as pool:
        for name, pinned in (("a", False), ("b", True)):
            pool.add(name, small(), pinned=pinned)
            with pool.using(name):
                assert pool.status(name).expires_in_s is None
        until(is_in(pool, "a", State.UNLOADED))
        with pool.using("a", keep_alive_s=60):
            pass
        assert 59 < (pool.status("a").expires_in_s or 0) <= 60
        time.sleep(0.04)
        assert [status.state for status in pool.models()] == [State.READY, State.READY]
        pool.pin("b", pinned=False)
        until(is_in(pool, "b", State.UNLOADED))


def test_load_and_unload_on_request() -> None:
    async def main() -> None:
        async with ModelPool() as pool:
            pool.add("a", small(), pinned=True)
            await pool.load("a")
            card = pool.status("a").card
            assert card is not None
            assert card.name == "small"
            async with pool.use("a") as it:
                pool.unload("a")
                assert is_in(pool, "a", State.LEAVING)()
                assert await it.achat("Hi")
            while not is_in(pool, "a", State.UNLOADED)():
                await asyncio.sleep(0.001)
            with pytest.raises(KaiwaError, match="the model was closed"):
                await it.achat("Hi")

    asyncio.run(main())


def test_a_load_can_be_stopped() -> None:
    shop = Shop(is_open=False)
    with ModelPool() as pool:
        pool.add("a", shop.load)
        timer = threading.Timer(0.05, pool.unload, ["a"])
        timer.start()
        with pytest.raises(Cancelled, match="the load of a was stopped"):
            pool.using("a").__enter__()
        timer.join()
        shop.gate.set()
        with pool.using("a"):
            assert shop.num_loads == 2


def test_who_leaves_while_a_model_loads_holds_nothing_up() -> None:
    shop = Shop(is_open=False)

    async def main() -> None:
        async with ModelPool(max_models=1) as pool:
            pool.add("a", shop.load)
            pool.add("b", small())
            task = asyncio.create_task(pool.load("a"))
            await asyncio.sleep(0.02)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            shop.gate.set()
            await pool.load("b")
            assert (shop.num_loads, pool.status("a").state) == (1, State.UNLOADED)

    asyncio.run(main())


def test_a_lost_model_is_loaded_anew_by_the_next() -> None:
    shop = Shop()
    with ModelPool() as pool:
        pool.add("a", shop.load)
        with pool.using("a"):
            assert shop.admission is not None
            shop.admission.lost(error := KaiwaError("it crashed"))
            assert pool.status("a").error is error
        with pool.using("a") as it:
            assert it is shop.models[1]


def test_closing_a_pool_ends_loads_and_answers() -> None:
    shop, errors = Shop(is_open=False), []
    pool = ModelPool()
    pool.add("a", shop.load)
    pool.add("b", small())

    def come() -> None:
        try:
            with pool.using("a"):
                pass
        except KaiwaError as error:
            errors.append(str(error))

    person = threading.Thread(target=come)
    person.start()
    with pool.using("b") as it:
        until(lambda: pool.status("a").progress)
        pool.close()
        person.join(10)
        assert errors == ["the pool of models was closed"]
        with pytest.raises(KaiwaError, match="the model was closed"):
            it.count_tokens("Hi"), list(it.stream("Hi"))
    with pytest.raises(KaiwaError, match="the pool of models was closed"):
        pool.using("b").__enter__()


def test_mistakes_are_named() -> None:
    with pytest.raises(InvalidOption, match="max_models=0 is impossible"):
        ModelPool(max_models=0)
    with pytest.raises(InvalidOption, match="memory_bytes=0"):
        ModelPool(memory_bytes=0)
    with pytest.raises(InvalidOption, match="keep_alive_s=-1"):
        ModelPool(keep_alive_s=-1)
    with ModelPool() as pool:
        pool.add("smollm2:135m", small())
        with pytest.raises(InvalidOption, match="has a model 'smollm2:135m' already"):
            pool.add("smollm2:135m", small())
        with pytest.raises(ModelNotFound, match="no model 'smollm2:13m'") as caught:
            pool.using("smollm2:13m").__enter__()
        assert caught.value.hint == "did you mean 'smollm2:135m'?"


def test_many_people_many_models_and_little_room() -> None:
    """Threads and tasks that come and go at random: everybody is served, and no limit is exceeded."""
    shops = {name: Shop(30) for name in ("a", "b", "c", "d")}
    with ModelPool(max_models=2, memory_bytes=70, keep_alive_s=0.005) as pool:
        for name, shop in shops.items():
            pool.add(name, shop.load)
        served: list[str] = []

        def come(number: int) -> None:
            for turn in range(10):
                name = "abcd"[(number * 7 + turn * number) % 4]
                with pool.using(name) as it:
                    served.append(it.card.name)
                    in_memory = [status for status in pool.models() if status.num_bytes is not None]
                    assert len(in_memory) <= 2

        people = [threading.Thread(target=come, args=(number,)) for number in range(12)]
        for person in people:
            person.start()
        for person in people:
            person.join(30)
        assert served == ["small"] * 120


def test_who_holds_what_has_to_leave_for_the_second_model_is_told() -> None:
    async def main() -> None:
        async with ModelPool(memory_bytes=10_000_000) as pool:
            pool.add("a", Shop(6_000_000).load)
            pool.add("b", Shop(7_000_000).load)
            async with pool.use("a"):
                with pytest.raises(OutOfMemory, match="before a leaves, which whoever asks holds") as caught:
                    async with pool.use("b"):
                        pass
                assert "a takes 6 MB, b needs 7 MB, and all models together may take 10 MB" in str(caught.value)
                async with pool.use("a"):
                    pass  # it stays for whoever holds it, though it is to leave
            async with pool.use("b"):
                assert pool.status("a").state is State.UNLOADED

    asyncio.run(main())


def test_of_threads_that_would_wait_for_ever_one_is_told() -> None:
    got: list[str] = []
    told: list[str] = []
    with ModelPool(max_models=2) as pool:
        for name in "abcd":
            pool.add(name, small())
        both = threading.Barrier(2)

        def take(first: str, second: str) -> None:
            try:
                with pool.using(first):
                    both.wait()
                    with pool.using(second):
                        got.append(second)
            except OutOfMemory as error:
                told.append(str(error))

        people = [threading.Thread(target=take, args=pair) for pair in ("ac", "bd")]
        for person in people:
            person.start()
        for person in people:
            person.join(10)
            assert not person.is_alive()
    assert len(got) + len(told) == 2
    assert "of the models, 2 may be in memory at once" in told[0]


def test_who_waits_for_somebody_else_to_finish_is_not_told_that_it_is_in_vain() -> None:
    async def main() -> None:
        async with ModelPool(max_models=2) as pool:
            for name in "abc":
                pool.add(name, small())
            b_is_free = asyncio.Event()

            async def hold_b() -> None:
                async with pool.use("b"):
                    await b_is_free.wait()

            async with pool.use("a"):
                holding = asyncio.create_task(hold_b())
                while pool.status("b").state is not State.READY:
                    await asyncio.sleep(0.001)
                async with pool.use("a"):
                    pass  # so that b is the one that was used least recently
                asyncio.get_running_loop().call_later(0.1, b_is_free.set)
                async with pool.use("c"):
                    assert pool.status("b").state is State.UNLOADED
                await holding

    asyncio.run(main())
