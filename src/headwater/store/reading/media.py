"""Files that are kept of items: found by their hash, used by items, deleted when no item uses them any more."""

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select

from headwater.store.core.bulk import insert_rows, run_by, select_by
from headwater.store.core.settings import get_setting, set_setting
from headwater.store.core.tables import media_files, media_uses

SECRET_KEY = "media.secret"  # noqa: S105 - the name under which it is stored


@dataclass(frozen=True, slots=True)
class MediaFile:
    sha256: str
    media_type: str
    size_bytes: int


def use_media(connection: Connection, used: Sequence[tuple[int, Sequence[MediaFile]]], now: float) -> None:
    """Let items use exactly these files: (item, files)."""
    if not used:
        return
    run_by(
        connection,
        "DELETE FROM media_uses WHERE item_id {values}",
        sorted({item_id for item_id, _ in used}),
        "bigint",
    )
    insert_rows(
        connection,
        media_files,
        ("sha256", "media_type", "size_bytes", "stored_at"),
        sorted({(file.sha256, file.media_type, file.size_bytes, now) for _, files in used for file in files}),
        "ON CONFLICT (sha256) DO UPDATE SET stored_at = excluded.stored_at",
    )
    insert_rows(
        connection,
        media_uses,
        ("sha256", "item_id"),
        sorted({(file.sha256, item_id) for item_id, files in used for file in files}),
        "ON CONFLICT (sha256, item_id) DO NOTHING",
    )


def read_media(data: Any) -> list[MediaFile]:
    """The files in a result of the kind media."""
    files = data.get("files") if isinstance(data, dict) else None
    return [
        MediaFile(str(each["sha256"]), str(each["media_type"]), int(each["size_bytes"]))
        for each in files or ()
        if isinstance(each, dict) and each.get("sha256")
    ]


def find_media(connection: Connection, sha256: str) -> MediaFile | None:
    column = media_files.c
    query = select(column.sha256, column.media_type, column.size_bytes).where(column.sha256 == sha256)
    row = connection.execute(query).first()
    return None if row is None else MediaFile(*row)


def unused_media(connection: Connection, before: float, limit: int) -> list[str]:
    """Files that no item uses and that were stored before then."""
    column = media_files.c
    used = select(media_uses.c.sha256).where(media_uses.c.sha256 == column.sha256).exists()
    query = select(column.sha256).where(~used, column.stored_at < before).order_by(column.sha256)
    return list(connection.execute(query.limit(limit)).scalars())


def forget_media(connection: Connection, hashes: Iterable[str]) -> list[str]:
    """Forget these files unless an item has come to use them; those that were forgotten may be deleted."""
    wanted = list(hashes)
    kept = {
        row[0]
        for row in select_by(
            connection, "SELECT sha256 FROM media_uses WHERE sha256 {values}", wanted, "text"
        )
    }
    gone = [each for each in wanted if each not in kept]
    run_by(connection, "DELETE FROM media_files WHERE sha256 {values}", gone, "text")
    return gone


def known_media(connection: Connection, hashes: Iterable[str]) -> set[str]:
    rows = select_by(connection, "SELECT sha256 FROM media_files WHERE sha256 {values}", hashes, "text")
    return {row[0] for row in rows}


def media_secret(connection: Connection) -> str | None:
    """What addresses of files are signed with; None: no file was ever stored."""
    secret: str | None = get_setting(connection, SECRET_KEY)
    return secret


def make_media_secret(connection: Connection, now: float) -> str:
    known = media_secret(connection)
    if known is None:
        set_setting(connection, SECRET_KEY, known := secrets.token_urlsafe(32), now)
    return known
