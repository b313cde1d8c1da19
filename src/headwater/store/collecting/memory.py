"""What a collector leaves for its own next visit to a source: bytes that only it understands."""

from collections.abc import Sequence

from sqlalchemy import Connection, select

from headwater.store.core.bulk import insert_rows
from headwater.store.core.tables import source_memories


def read_memory(connection: Connection, source_id: int) -> bytes | None:
    query = select(source_memories.c.memory).where(source_memories.c.source_id == source_id)
    memory = connection.execute(query).scalar()
    return None if memory is None else bytes(memory)


def write_memories(connection: Connection, memories: Sequence[tuple[int, bytes]]) -> None:
    """Keep each source's memory, given as (source id, memory), in the place of the one before."""
    insert_rows(
        connection,
        source_memories,
        ("source_id", "memory"),
        memories,
        "ON CONFLICT (source_id) DO UPDATE SET memory = excluded.memory",
    )
