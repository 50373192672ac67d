"""What one chat in a terminal holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kaiwa import paths
from kaiwa.chat.conversation import Chat
from kaiwa.chat.model import ChatModel
from kaiwa.events import Finished
from kaiwa.sampling import Sampling
from kaiwa.terminal.examples import EXAMPLES


@dataclass(slots=True)
class ChatState:
    """The model, the conversation so far, and the sampling `options` that a person chose beside the model's own."""

    model: ChatModel
    chat: Chat = field(default_factory=Chat)
    options: dict[str, Any] = field(default_factory=dict)
    user: str = ""
    """What the person is called at the prompt."""
    folder: Path = field(default_factory=paths.chats)
    """Where conversations are kept whose path nobody chose."""
    examples: Mapping[str, str] = field(default_factory=lambda: EXAMPLES)
    """Questions by the names that `!example` knows them by."""
    last: Finished | None = None
    """How the last answer went."""
    question: str = ""
    """What a command wants to have asked."""
    set_aside: Chat | None = None
    """The conversation that was cleared or replaced last; undoing brings it back."""
    saved_to: Path | None = None
    """The file that this session wrote, which it may replace without asking."""
    saved_chat: Chat | None = None
    """The conversation as it was written there."""

    @property
    def prompt(self) -> str:
        """What stands before a person's line."""
        return f"{self.user}> "

    @property
    def sampling(self) -> Sampling:
        """The options as they are in force."""
        return self.model.sampling.updated(self.options)

    def replace_chat(self, chat: Chat) -> None:
        """Go on with another conversation, and keep this one for undoing."""
        if self.chat.turns:
            self.set_aside = self.chat
        self.chat = chat
        self.last = None
        self.saved_to = None
