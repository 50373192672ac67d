"""What Alembic runs: the steps that a database lacks, over the connection that `database` hands in."""

from __future__ import annotations

from alembic import context

from kaiwa.apps.storage.tables import METADATA

context.configure(connection=context.config.attributes["connection"], target_metadata=METADATA)
with context.begin_transaction():
    context.run_migrations()
