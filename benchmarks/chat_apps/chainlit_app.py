"""Says as many words as it is asked for: "300" as fast as it can, "300:0.005" with pauses of so many seconds."""

import asyncio

import chainlit as cl


@cl.on_message
async def answer(message):
    """Say so many words."""
    number, _, pause_s = message.content.partition(":")
    said = cl.Message(content="")
    for word in range(int(number)):
        await said.stream_token(f"word{word % 1000} ")
        if pause_s:
            await asyncio.sleep(float(pause_s))
    await said.send()
