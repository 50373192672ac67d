"""An app that another site shows in its own pages."""

import os

import kaiwa as kw

app = kw.App("Embedded", allowed_origins=[os.environ["EMBEDDING_SITE"]])


@app.on_message
async def answer(message):
    total = await kw.CopilotFunction("add", {"a": 2, "b": 3}).acall()
    await kw.send_window_message({"total": total})
    await kw.Message(f"The site says {total}.").send()
