"""What an app is made of: its hooks, its models, and what its page says of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, overload
from urllib.parse import urlsplit

from kaiwa.apps.hooks import Hooks
from kaiwa.apps.languages import Text
from kaiwa.errors import InvalidOption

if TYPE_CHECKING:  # an app may have no models
    from kaiwa.runtime.pool.admission import Load
    from kaiwa.runtime.pool.model_pool import ModelPool

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Uploads:
    """What people may send along with a message. Without `accept`, any kind of file."""

    is_enabled: bool = True
    accept: Sequence[str] = ()
    max_files: int = 20
    max_bytes: int = 500_000_000


class Declared(Protocol):
    """A model as an app declares it."""

    name: str
    options: dict[str, Any]
    preload: bool
    own_load: Load | None

    @property
    def key(self) -> str: ...

    def bind(self, pool: ModelPool) -> None: ...

    async def load(self) -> None: ...


class _Decorator:
    """A decorator of an app: registers a function at the hook of its name, and leaves it as it is."""

    def __set_name__(self, owner: type[Definition], name: str) -> None:
        self._name = name

    @overload
    def __get__(self, app: None, owner: type[Definition]) -> _Decorator: ...

    @overload
    def __get__(self, app: Definition, owner: type[Definition]) -> Callable[[F], F]: ...

    def __get__(self, app: Definition | None, owner: type[Definition]) -> Any:
        if app is None:
            return self
        hooks, hook_name = app.hooks, self._name

        def register(function: F) -> F:
            hooks.register(hook_name, function)
            return function

        return register


class Definition:
    """What an app is made of: hooks, models, and what its page says of it. `App` explains the arguments."""

    on_app_startup = _Decorator()
    on_app_shutdown = _Decorator()
    on_chat_start = _Decorator()
    on_message = _Decorator()
    on_stop = _Decorator()
    on_chat_end = _Decorator()
    on_chat_resume = _Decorator()
    on_settings_update = _Decorator()
    on_settings_edit = _Decorator()
    on_feedback = _Decorator()
    on_logout = _Decorator()
    on_window_message = _Decorator()
    set_starters = _Decorator()
    set_starter_categories = _Decorator()
    set_chat_profiles = _Decorator()
    author_rename = _Decorator()
    password_auth_callback = _Decorator()
    header_auth_callback = _Decorator()
    oauth_callback = _Decorator()
    data_layer = _Decorator()

    def __init__(
        self,
        name: str = "Kaiwa",
        *,
        description: Text = "",
        author: str | None = None,
        uploads: Uploads | None = None,
        sources: Sequence[str] = (),
        allowed_origins: Sequence[str] = (),
    ) -> None:
        self.name = name
        self.description = description
        self.author = author or name
        self.uploads = uploads or Uploads()
        self.sources = [_checked_origin(source) for source in sources]
        self.allowed_origins = [_checked_origin(origin) for origin in allowed_origins]
        self.hooks = Hooks()
        self.models: list[Declared] = []
        """Those that the app declares, for `preload` and for people to see."""

    def action_callback(self, name: str) -> Callable[[F], F]:
        """Call the function when somebody presses a button of this name."""

        def register(function: F) -> F:
            self.hooks.register("action_callback", function, name=name)
            return function

        return register

    @property
    def needs_login(self) -> bool:
        """Whether people have to say who they are."""
        return self.hooks.has("password_auth_callback", "header_auth_callback", "oauth_callback")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


_default: list[Definition] = []


def default_app() -> Definition:
    """The app that the decorators of the module act on: the one whose file is being read, or one for all."""
    if not _default:
        _default.append(Definition())
    return _default[-1]


@contextmanager
def as_default(app: Definition) -> Iterator[Definition]:
    """Let the decorators of the module act on this app."""
    _default.append(app)
    try:
        yield app
    finally:
        _default.remove(app)


def _checked_origin(origin: str) -> str:
    parts = urlsplit(origin)
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.path.strip("/") or parts.query:
        raise InvalidOption(f"{origin!r} is no origin", hint='write it like "https://example.org"')
    return f"{parts.scheme}://{parts.netloc}".lower()
