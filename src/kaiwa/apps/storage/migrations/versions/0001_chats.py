"""Chats, their events, texts, payloads and files."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "chats",
        sa.Column("id", sa.String(64), primary_key=True),
        sa.Column("owner", sa.String(320), nullable=False),
        sa.Column("title", sa.String(200), nullable=False),
        sa.Column("profile", sa.String(200)),
        sa.Column("created_at", sa.Float(53), nullable=False),
        sa.Column("updated_at", sa.Float(53), nullable=False),
        sa.Column("num_messages", sa.Integer, nullable=False),
        sa.Column("num_events", sa.BigInteger, nullable=False),
        sa.Column("run_state", sa.String(16), nullable=False),
    )
    op.create_index("chats_by_owner", "chats", ["owner", "updated_at"])
    op.create_index("chats_by_run_state", "chats", ["run_state"])
    op.create_table(
        "events",
        _chat(),
        sa.Column("offset", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_table(
        "texts",
        _chat(),
        sa.Column("message_id", sa.String(64), primary_key=True),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_table(
        "payloads",
        _chat(),
        sa.Column("action_id", sa.String(64), primary_key=True),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_table(
        "files",
        sa.Column("id", sa.String(64), primary_key=True),
        sa.Column("chat_id", sa.String(64), sa.ForeignKey("chats.id", ondelete="CASCADE"), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("mime", sa.String(255), nullable=False),
        sa.Column("num_bytes", sa.BigInteger, nullable=False),
    )
    op.create_index("files_by_chat", "files", ["chat_id"])


def downgrade() -> None:
    """Drop them, with every chat."""
    for table in ("files", "payloads", "texts", "events", "chats"):
        op.drop_table(table)


def _chat() -> sa.Column[str]:
    return sa.Column("chat_id", sa.String(64), sa.ForeignKey("chats.id", ondelete="CASCADE"), primary_key=True)
