"""An app that wants to know who somebody is."""

import kaiwa as kw


@kw.password_auth_callback
async def log_in(username, password):
    return kw.User(username, display_name=username.title()) if password == "right" else None


@kw.on_message
async def answer(message):
    await kw.Message(f"You are {kw.user_session.get('user').identifier}.").send()
