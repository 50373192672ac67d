"""An app that wants to know who somebody is."""

import kaiwa as kw


@kw.password_auth_callback
async def log_in(username, password):
    return kw.User(username, display_name=username.title()) if password == "right" else None


@kw.set_chat_profiles
async def profiles(user):
    return [
        kw.ChatProfile("cook", "Knows **recipes**.", display_name="Cook", default=True),
        kw.ChatProfile("poet", "Knows **verse**.", display_name="Poet", starters=[kw.Starter("A verse", "One verse.")]),
    ]


@kw.on_message
async def answer(message):
    await kw.Message(f"I am the {kw.user_session.get('chat_profile')}.").send()
    await kw.Message(f"You are {kw.user_session.get('user').identifier}.").send()
