"""What kind of file some bytes are. Pure."""

from typing import Final

_MAGIC: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"ID3", "audio/mpeg"),
    (b"OggS", "application/ogg"),
    (b"fLaC", "audio/flac"),
)


def sniff_media_type(body: bytes, said: str | None) -> str:
    """The type of a file by its first bytes; else what its server said, unless that is text."""
    for magic, media_type in _MAGIC:
        if body.startswith(magic):
            return media_type
    if body[:4] == b"RIFF" and body[8:12] in (b"WEBP", b"WAVE"):
        return "image/webp" if body[8:12] == b"WEBP" else "audio/wav"
    if body[4:8] == b"ftyp":
        if body[8:12] == b"avif":
            return "image/avif"
        return _said(said) if _said(said).startswith(("audio/", "video/")) else "video/mp4"
    if b"<svg" in body[:1_000].lower():
        return "image/svg+xml"
    if body[:200].lstrip().lower().startswith((b"<!doctype html", b"<html")):
        return "text/html"
    return _said(said)


def _said(said: str | None) -> str:
    return (said or "application/octet-stream").partition(";")[0].strip().lower()
