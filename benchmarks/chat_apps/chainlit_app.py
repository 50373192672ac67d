"""Says as many words as it is asked for, as fast as it can."""

import chainlit as cl


@cl.on_message
async def answer(message):
    said = cl.Message(content="")
    for number in range(int(message.content)):
        await said.stream_token(f"word{number % 1000} ")
    await said.send()
