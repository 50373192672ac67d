"""The smallest chat app: `kaiwa run smallest.py`."""

import kaiwa as kw

model = kw.Model("smollm2:135m")


@kw.on_message
async def answer(message):
    await kw.reply(model)
