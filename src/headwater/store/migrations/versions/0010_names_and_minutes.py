"""Sources by name in a table of their own, visits by the minute, sources by their last visit, answers of 304 counted.

A source's row changes at every visit, and on PostgreSQL each of its indexes with it; its name hardly ever does. So
what is found by name is kept apart, by triggers: whoever writes sources, and however, need not know.

Revision ID: 0010
"""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"

Id = sa.BigInteger().with_variant(sa.Integer, "sqlite")
Seconds: sa.types.TypeEngine[float] = sa.Double().with_variant(sa.REAL, "sqlite")

_NAMES = "INSERT INTO source_names (source_id, name_key, search_text) SELECT {id}, {key}, {text} {where}"
_OF_NEW = {"id": "new.id", "key": "lower(new.name)", "text": "lower(new.name || {line} || new.url)"}
_OF_STORED = {"id": "id", "key": "lower(name)", "text": "lower(name || {line} || url)"}


def upgrade() -> None:
    sqlite = op.get_context().dialect.name == "sqlite"
    op.create_table(
        "source_names",
        sa.Column("source_id", Id, autoincrement=False, nullable=False),
        sa.Column("name_key", sa.Text(), nullable=False),
        sa.Column("search_text", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["source_id"], ["sources.id"], ondelete="CASCADE", name="fk_source_names_source_id_sources"
        ),
        sa.PrimaryKeyConstraint("source_id", name="pk_source_names"),
    )
    op.create_index("ix_source_names_name_key", "source_names", ["name_key", "source_id"])
    line = "char(10)" if sqlite else "chr(10)"
    statement = _NAMES.format(where="FROM sources WHERE NOT is_deleted", **_OF_STORED)
    op.execute(statement.format(line=line))
    statement = _NAMES.format(where="WHERE NOT new.is_deleted", **_OF_NEW).format(line=line)
    if sqlite:
        op.execute(f"CREATE TRIGGER source_named AFTER INSERT ON sources BEGIN {statement}; END")
        op.execute(
            "CREATE TRIGGER source_renamed AFTER UPDATE OF name, url, is_deleted ON sources"
            f" BEGIN DELETE FROM source_names WHERE source_id = old.id; {statement}; END"
        )
    else:
        op.execute(
            "CREATE OR REPLACE FUNCTION headwater_name_source() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            " IF TG_OP = 'UPDATE' THEN DELETE FROM source_names WHERE source_id = old.id; END IF;"
            f" {statement}; RETURN NULL; END $$"
        )
        for name, when in (("source_named", "INSERT"), ("source_renamed", "UPDATE OF name, url, is_deleted")):
            op.execute(
                f"CREATE TRIGGER {name} AFTER {when} ON sources FOR EACH ROW"
                " EXECUTE FUNCTION headwater_name_source()"
            )
    op.drop_index("ix_sources_name", "sources")
    op.drop_index("ix_sources_template", "sources")
    attached = sa.text("pipeline_template_id IS NOT NULL")
    op.create_index(
        "ix_sources_template",
        "sources",
        ["pipeline_template_id", "is_deleted"],
        sqlite_where=attached,
        postgresql_where=attached,
    )
    # A place in line is written at every visit anyway; the time beside it comes nearly free.
    op.drop_index("ix_sources_due", "sources")
    op.create_index("ix_sources_due", "sources", ["due_at", "last_fetched_at"])
    if not sqlite:  # which would look at every row all the same, and writes all indexes at every visit anyway
        op.create_index("ix_sources_last_fetched_at", "sources", ["last_fetched_at"])
    op.create_table(
        "collection_minutes",
        sa.Column("slot_at", Seconds, nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("error_kind", sa.Text(), nullable=False),
        *(
            sa.Column(name, Id, server_default=sa.text("0"), nullable=False)
            for name in (
                "visits",
                "items_found",
                "items_new",
                "items_updated",
                "requests",
                "bytes_received",
                "not_modified",
            )
        ),
        sa.PrimaryKeyConstraint("slot_at", "status", "error_kind", name="pk_collection_minutes"),
    )
    op.add_column(
        "collection_hours", sa.Column("not_modified", Id, server_default=sa.text("0"), nullable=False)
    )
