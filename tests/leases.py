"""Which sources a worker is visiting, or was when it was killed."""

from sqlalchemy import select

from headwater.store.core.database import Store
from headwater.store.core.tables import source_leases


def leases(store: Store) -> dict[int, float]:
    """Until when each source is leased; of one that is not there is nothing."""
    query = select(source_leases.c.source_id, source_leases.c.lease_until)
    with store.reading() as connection:
        return {row.source_id: row.lease_until for row in connection.execute(query)}
