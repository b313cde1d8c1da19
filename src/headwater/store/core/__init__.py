"""The database opened: tables, schema, migrations, transactions, and what every query shares."""
