"""Alembic's entry: runs migrations on the connection handed over by `store.core.migrate`, in its transaction."""

from alembic import context

connection = context.config.attributes["connection"]
context.configure(connection=connection, transactional_ddl=False, render_as_batch=True)
context.run_migrations()
