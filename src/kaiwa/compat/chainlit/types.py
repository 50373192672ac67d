"""`chainlit.types`: what apps annotate with."""

from __future__ import annotations

from typing import Any

from kaiwa.apps.content.ask import AskFileResponse as AskFileResponse
from kaiwa.apps.content.feedback import Feedback as Feedback

ThreadDict = dict[str, Any]
"""What `on_chat_resume` is called with."""
CommandDict = dict[str, Any]
"""What `set_commands` takes."""
StepDict = dict[str, Any]
"""What `Message.to_dict` gives."""
