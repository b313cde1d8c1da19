"""The only door to the database: tables, migrations, and queries by subject."""
