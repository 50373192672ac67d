"""Settings that a person may change while they talk: `kaiwa run sampling.py`."""

import kaiwa as kw

model = kw.Model("smollm2:135m", preload=True)


@kw.on_chat_start
async def start():
    await kw.ChatSettings(
        [
            kw.Slider("temperature", "Temperature", initial=0.7, min=0, max=2, step=0.1),
            kw.TextInput("system", "System prompt", initial="Answer in one sentence."),
        ]
    ).send()


@kw.on_settings_update
async def changed(settings):
    await kw.context.emitter.send_toast(f"The temperature is {settings['temperature']} now.")


@kw.on_message
async def answer():
    settings = kw.user_session.get("chat_settings")
    await kw.reply(model, system=settings["system"], temperature=settings["temperature"], max_new_tokens=200)
