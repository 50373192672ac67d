"""user_session: what an app keeps for one chat."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from kaiwa.apps.context import current
from kaiwa.apps.work.session import Session
from kaiwa.errors import InvalidOption

T = TypeVar("T")

_RESERVED: dict[str, Callable[[Session], Any]] = {
    "id": lambda session: session.chat_id,
    "user": lambda session: session.user,
    "chat_profile": lambda session: session.profile,
    "chat_settings": lambda session: dict(session.settings),
    "languages": lambda session: session.language,
    "client_type": lambda session: session.client_type,
    "env": lambda session: {},
}
"""What Kaiwa itself says of a chat."""


class UserSession:
    """Values by name, for the chat that the calling code belongs to. They go when the chat ends.

    `id`, `user`, `chat_profile`, `chat_settings`, `languages`, `client_type` and `env` are Kaiwa's own.
    """

    def get(self, key: str, default: Any = None) -> Any:
        """The value, or `default` where there is none."""
        session = current().session
        if key in _RESERVED:
            value = _RESERVED[key](session)
            return default if value is None else value
        return session.variables.get(key, default)

    def set(self, key: str, value: Any) -> None:
        """Keep a value. Raises `InvalidOption` for a name that is Kaiwa's own."""
        if key in _RESERVED:
            raise InvalidOption(
                f"user_session says by itself what {key!r} is", hint="keep your value under another name"
            )
        current().session.variables[key] = value

    def create_accessor(self, key: str, default: T, *, apply_fn: Callable[[T], T] | None = None) -> SessionAccessor[T]:
        """An object that reads and writes one value; `apply_fn` is what `apply` does to it."""
        return SessionAccessor(self, key, default, apply_fn)


class SessionAccessor(Generic[T]):
    """One value of `user_session`."""

    def __init__(self, session: UserSession, key: str, default: T, apply_fn: Callable[[T], T] | None) -> None:
        self._session = session
        self._key = key
        self._default = default
        self._apply = apply_fn

    def get(self) -> T:
        """The value, or its default."""
        value: T = self._session.get(self._key, self._default)
        return value

    def set(self, value: T) -> None:
        """Keep another value."""
        self._session.set(self._key, value)

    def apply(self) -> T:
        """Keep what `apply_fn` makes of the value, and return it."""
        if self._apply is None:
            raise InvalidOption(f"the accessor of {self._key!r} has no apply_fn", hint="pass one to create_accessor")
        self.set(self._apply(self.get()))
        return self.get()

    def reset(self) -> None:
        """Go back to the default."""
        self.set(self._default)


user_session = UserSession()
