"""An app that asks: for text, for a choice, and once more where nobody answers. `kaiwa run dinner.py`."""

import kaiwa as kw

DISHES = {"soup": "12 minutes", "curry": "40 minutes", "rice": "20 minutes"}


@kw.on_chat_start
async def start():
    await kw.Message("I cook. Say anything to begin.").send()


@kw.on_message
async def cook():
    name = await kw.AskUserMessage("Who eats with us?", timeout=120).send()
    if name is None:
        await kw.Message("Nobody? Then another time.").send()
        return
    buttons = [kw.Action(dish, {"time": time}, label=dish.title()) for dish, time in DISHES.items()]
    chosen = await kw.AskActionMessage("What shall it be?", buttons).send()
    if chosen is None:
        return
    with kw.Step(f"Cook {chosen['name']}", type="tool") as step:
        for minute in range(1, 11):
            step.progress(minute, 10, stage="cook", unit="minutes")
            await kw.sleep(0.1)
        step.output = f"{chosen['name']} takes {chosen['payload']['time']}"
    await kw.Message(f"{chosen['name'].title()} for {name['output']}!").send()
