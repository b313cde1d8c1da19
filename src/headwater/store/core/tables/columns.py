"""What all tables share: their metadata, the types of ids and times, and columns with defaults."""

from typing import Any

from sqlalchemy import REAL, BigInteger, Column, Double, Integer, MetaData, text
from sqlalchemy.types import TypeEngine

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# SQLite numbers rows only in a column spelt INTEGER; PostgreSQL's INTEGER is too small for either use.
Id = BigInteger().with_variant(Integer, "sqlite")
Seconds: TypeEngine[float] = Double().with_variant(REAL, "sqlite")


def column(
    name: str,
    kind: TypeEngine[Any] | type[TypeEngine[Any]],
    default: str | None = None,
    *,
    null: bool = False,
) -> Column[Any]:
    return Column(name, kind, nullable=null, server_default=None if default is None else text(default))
