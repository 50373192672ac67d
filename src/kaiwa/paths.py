"""Where Kaiwa keeps its files.

`KAIWA_HOME` names the folder; without it, it is the platform's folder for a person's application data.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


def home() -> Path:
    """The folder of everything that Kaiwa keeps. It may not exist yet."""
    chosen = os.environ.get("KAIWA_HOME")
    if chosen:
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    else:
        base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base) / "kaiwa"


def models() -> Path:
    """Downloaded models, one folder each."""
    return home() / "models"


def cache() -> Path:
    """What Kaiwa can make again at any time, and keeps to save that time."""
    return home() / "cache"


def chats() -> Path:
    """Conversations that a person saved in the terminal."""
    return home() / "chats"


def apps() -> Path:
    """Chats of apps, one folder for each app."""
    return home() / "apps"


def history() -> Path:
    """The terminal's line history."""
    return home() / "history"
