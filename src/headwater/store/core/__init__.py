"""The database opened: tables, schema, migrations, transactions, and what every query shares."""

# Both, so that `metadata` knows every table, whichever module is imported first.
from headwater.store.core import reader_tables, tables

__all__ = ["reader_tables", "tables"]
