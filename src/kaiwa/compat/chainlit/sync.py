"""`chainlit.sync`."""

from __future__ import annotations

from kaiwa.apps.asynchrony import make_async as make_async
from kaiwa.apps.asynchrony import run_sync as run_sync
from kaiwa.apps.asynchrony import sleep as sleep
