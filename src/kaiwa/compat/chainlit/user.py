"""`chainlit.user`."""

from __future__ import annotations

from kaiwa.apps.user import User as User
