"""The tables of chats. `migrations` makes them; a test compares the two."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Float, ForeignKey, Index, Integer, MetaData, String, Table, Text

METADATA = MetaData()


def _chat() -> Column[str]:
    return Column("chat_id", String(64), ForeignKey("chats.id", ondelete="CASCADE"), primary_key=True)


CHATS = Table(
    "chats",
    METADATA,
    Column("id", String(64), primary_key=True),
    Column("owner", String(320), nullable=False),
    Column("title", String(200), nullable=False),
    Column("profile", String(200)),
    Column("created_at", Float(53), nullable=False),
    Column("updated_at", Float(53), nullable=False),
    Column("num_messages", Integer, nullable=False),
    Column("num_events", BigInteger, nullable=False),
    Column("run_state", String(16), nullable=False),
    Index("chats_by_owner", "owner", "updated_at"),
    Index("chats_by_run_state", "run_state"),
)
"""One row for each chat. Everything but the owner and a title that a person chose follows from its events."""

EVENTS = Table(
    "events",
    METADATA,
    _chat(),
    Column("offset", BigInteger, primary_key=True, autoincrement=False),
    Column("body", Text, nullable=False),
)
"""What happened, as JSON. Offsets begin at 1 and have no gaps."""

TEXTS = Table(
    "texts",
    METADATA,
    _chat(),
    Column("message_id", String(64), primary_key=True),
    Column("body", Text, nullable=False),
)
"""What messages say, for the search."""

PAYLOADS = Table(
    "payloads",
    METADATA,
    _chat(),
    Column("action_id", String(64), primary_key=True),
    Column("body", Text, nullable=False),
)
"""What a button means, which no page is told."""

FILES = Table(
    "files",
    METADATA,
    Column("id", String(64), primary_key=True),
    Column("chat_id", String(64), ForeignKey("chats.id", ondelete="CASCADE"), nullable=False),
    Column("name", String(255), nullable=False),
    Column("mime", String(255), nullable=False),
    Column("num_bytes", BigInteger, nullable=False),
    Index("files_by_chat", "chat_id"),
)
"""Uploaded files and elements' contents; the bytes are in a folder, by id."""
