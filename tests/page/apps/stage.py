"""An app whose scenes the tests of the page play: the first word of a message chooses one."""

import asyncio
import json
import time
from pathlib import Path

import kaiwa as kw
from kaiwa.apps.content import widgets

RICH = Path(__file__).with_name("answer.md").read_text(encoding="utf-8")
HOSTILE = Path(__file__).with_name("hostile.md").read_text(encoding="utf-8")
PROSE = [f"Word {number} of a long answer, " + ("\n\n" if number % 40 == 39 else "") for number in range(2000)]
CODE = [
    "```python\n",
    *(f"    value_{number} = compute({number})  # step\n" + ("```\n\n```python\n" if number % 80 == 79 else "")
      for number in range(1998)),
    "```\n",
]  # fmt: skip
gates: dict[str, asyncio.Event] = {}


@kw.set_starters
async def starters(user=None):
    return [kw.Starter(label="Explain something", message="rich explain heat pumps"),
            kw.Starter(label="静かな場所", message="rich 京都の静かな場所を教えてください。")]  # fmt: skip


@kw.on_chat_start
async def begin():
    kw.user_session.set("count", 0)


@kw.on_message
async def play(message):
    scene = message.content.split()[0] if message.content else ""
    await SCENES.get(scene, echo)(message)


async def echo(message):
    chosen = f" (/{message.command})" if message.command else ""
    mode = f" [{message.modes['effort']}]" if message.modes else ""
    await kw.Message(f"You said: {message.content}{chosen}{mode}").send()


async def rich(message):
    await stream([RICH[start : start + 12] for start in range(0, len(RICH), 12)])


async def hostile(message):
    await stream([HOSTILE[start : start + 7] for start in range(0, len(HOSTILE), 7)])


async def slow(message):
    """One word every 40 ms, sixty of them."""
    answer = kw.Message("")
    for number in range(60):
        await answer.stream_token(f"w{number} ")
        await asyncio.sleep(0.04)
    await answer.send()


async def endless(message):
    """A word every 40 ms, for longer than any test waits: until somebody stops it."""
    answer = kw.Message("")
    for number in range(3000):
        await answer.stream_token(f"w{number} ")
        await asyncio.sleep(0.04)
    await answer.send()


async def steps(message):
    async with kw.Step(name="Research", type="tool", default_open=True):
        async with kw.Step(name="search", type="tool") as search:
            search.input = {"query": "heat pumps", "limit": 3}
            search.progress(1, 4, stage="Reading", unit="pages")
            await asyncio.sleep(0.6)
            search.output = "Three **pages** found."
        try:
            async with kw.Step(name="read page", type="tool"):
                raise FileNotFoundError("404")
        except FileNotFoundError:
            pass
    await kw.Message("Done.").send()


async def ask(message):
    answer = await kw.AskUserMessage("What is your name?", timeout=60).send()
    await kw.Message(f"Hello, {answer['output'] if answer else 'nobody'}!").send()


async def choose(message):
    actions = [kw.Action(name="yes", payload={}, label="Yes, go on"), kw.Action(name="no", payload={}, label="No")]
    chosen = await kw.AskActionMessage("Shall I go on?", actions=actions, timeout=60).send()
    await kw.Message(f"Chosen: {chosen['name'] if chosen else 'nothing'}").send()


async def file(message):
    files = await kw.AskFileMessage("A text, please.", accept=["text/plain"], timeout=60).send()
    await kw.Message(f"Read: {Path(files[0].path).read_text() if files else 'nothing'}").send()


class Table:
    """What polars and Kaiwa say to each other about a data frame."""

    columns = ("place", "value")

    def rows(self):
        return [(f"station {n}", n * 1.5) for n in range(25)]


class Figure:
    """What plotly and Kaiwa say to each other about a figure."""

    def to_json(self):
        bars = {"type": "bar", "x": ["a", "b", "c"], "y": [3, 1, 2]}
        return json.dumps({"data": [bars], "layout": {"title": {"text": "Bars"}, "template": {}}})


async def elements(message):
    await kw.Message(
        "Look:",
        elements=[
            kw.Dataframe(Table(), name="measurements"),
            kw.Plotly(Figure(), name="chart"),
            kw.Text(name="notes.md", content="# Notes\n\nBeside the chat.", display="side"),
            kw.File(name="report.csv", content=b"a,b\n1,2\n"),
        ],
        actions=[kw.Action(name="more", payload={"n": 1}, label="Tell me more")],
    ).send()


@kw.action_callback("more")
async def more(action):
    await kw.Message(f"More, as you wish: {action.payload['n']}").send()


async def settings(message):
    await kw.ChatSettings([
        widgets.Slider(id="temperature", label="Temperature", initial=0.7, min=0, max=2, step=0.1),
        widgets.Switch(id="stream", label="Stream", initial=True),
        widgets.Select(id="model", label="Model", values=["small", "large"], initial_index=0),
    ]).send()  # fmt: skip
    await kw.Message("There are settings now.").send()


@kw.on_settings_update
async def changed(values):
    await kw.Message(f"Temperature {values['temperature']}, stream {values['stream']}.").send()


async def flood(message):
    """2,000 tokens as fast as they go; then how long that took."""
    tokens = CODE if "code" in message.content else PROSE
    started = time.perf_counter()
    await stream(tokens)
    await kw.Message(f"server took {time.perf_counter() - started:.3f} s").send()


async def around(message):
    """What stands around the conversation."""
    emitter = kw.context.emitter
    await emitter.set_commands([{"id": "search", "description": "Search the web"}, {"id": "draw", "button": True}])
    options = [kw.ModeOption(id="fast", name="Fast", default=True), kw.ModeOption(id="deep", name="Deep")]
    await emitter.set_modes([kw.Mode(id="effort", name="Effort", options=options)])
    await emitter.send_toast("There you are.", "success")
    done, running = kw.TaskStatus.DONE, kw.TaskStatus.RUNNING
    await kw.TaskList([kw.Task("Read", done), kw.Task("Think", running), kw.Task("Write")], status="Working").send()
    await kw.ElementSidebar.set_title("Notes")
    await kw.ElementSidebar.set_elements([kw.Text(name="note", content="A **note** beside the chat.")])
    await kw.Message("Look around.").send()


async def form(message):
    element = kw.CustomElement("Order", {"dish": "soup", "plates": 2, "is_hot": True})
    answer = await kw.AskElementMessage("What shall it be?", element=element, timeout=60).send()
    await kw.Message(f"{answer['plates']} x {answer['dish']}, hot: {answer['is_hot']}").send()


@kw.on_feedback
async def rated(feedback):
    await kw.Message(f"Feedback {feedback.value}: {feedback.comment or 'nothing more'}").send()


async def error(message):
    raise ValueError("the coffee is cold")


async def large(message):
    """Two megabytes of Markdown at once."""
    await kw.Message(("A line of a **large** text, and `code`.\n" * 25 + "\n") * 2000).send()


async def many(message):
    """A thousand messages."""
    for number in range(1000):
        await kw.Message(f"Message **{number}** of many, with `code`.").send()


async def stream(tokens):
    answer = kw.Message("")
    for token in tokens:
        await answer.stream_token(token)
    await answer.send()


SCENES = {
    scene.__name__: scene
    for scene in (
        *(rich, hostile, slow, endless, steps, ask, choose, file, elements),
        *(settings, flood, around, form, error, large, many),
    )
}
