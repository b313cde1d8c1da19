"""Undoing Content-Encoding while streaming, with a cap on what comes out.

A decoder is fed what arrived and hands back what it means, never more than it was allowed at once, so that a
few kilobytes cannot become gigabytes. It notices a stream that ends early, which HTTP alone does not.
"""

import sys
import zlib
from typing import Protocol

import brotli

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

ACCEPT_ENCODING = "gzip, deflate, br, zstd"

# RFC 9659: a sender may ask for 8 MB of window and no more; the format itself would allow gigabytes.
_ZSTD_OPTIONS: dict[int, int] = {zstd.DecompressionParameter.window_log_max: 23}

# How much is decoded at once: larger pieces only mean larger buffers that grow by copying.
_PIECE = 1 << 18


class TooLargeError(Exception):
    """More would come out than allowed."""


class UndecodableError(Exception):
    """The data is not what Content-Encoding says, or ends too early. The message says which."""


class Decoder(Protocol):
    def feed(self, data: bytes, room: int) -> list[bytes]:
        """What `data` decodes to; TooLargeError when it is more than `room` bytes."""
        ...

    def finish(self) -> None:
        """UndecodableError when the stream is not complete."""
        ...


def make_decoder(content_encoding: str) -> Decoder | None:
    """The decoder for a Content-Encoding header, None for identity; UndecodableError when there is none."""
    names = [name for part in content_encoding.lower().split(",") if (name := part.strip())]
    names = [name for name in names if name not in ("identity", "none", "utf-8")]
    if not names:
        return None
    if len(names) > 3:
        raise UndecodableError(content_encoding[:50])
    decoders = [_make_one(name) for name in reversed(names)]
    return decoders[0] if len(decoders) == 1 else _Chain(decoders)


def _make_one(name: str) -> Decoder:
    if name in ("gzip", "x-gzip", "deflate"):
        return _Zlib(name)
    if name == "br":
        return _Brotli()
    if name in ("zstd", "zst"):
        return _Zstd()
    raise UndecodableError(name[:50])


class _Zlib:
    """gzip of one or more members, and deflate with or without its zlib header.

    What says gzip and does not begin like it is passed through: some servers announce an encoding that an
    intermediary has already undone.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._plain = False
        self._started = False
        self._head = b""
        self._members = 0
        self._engine = zlib.decompressobj(wbits=31)

    def feed(self, data: bytes, room: int) -> list[bytes]:
        if not self._started:
            data = self._head + data
            if len(data) < 2:
                self._head = data
                return []
            self._start(data)
        if self._plain:
            if len(data) > room:
                raise TooLargeError
            return [data]
        parts: list[bytes] = []
        full = False
        while data or full:
            if self._engine.eof:
                if self._name == "deflate" or data[:1] != b"\x1f":
                    break  # padding after the end is common and means nothing
                self._members += 1
                if self._members > 1000:
                    raise UndecodableError(self._name)
                self._engine = zlib.decompressobj(wbits=31)
            most = min(room + 1, _PIECE)
            try:
                part = self._engine.decompress(data, most)
            except zlib.error:
                raise UndecodableError(self._name) from None
            room -= len(part)
            if room < 0:
                raise TooLargeError
            if part:
                parts.append(part)
            data = self._engine.unused_data if self._engine.eof else self._engine.unconsumed_tail
            # When the room given was used up, more may be waiting inside although all input is taken.
            full = len(part) == most and not self._engine.eof
        return parts

    def finish(self) -> None:
        if self._plain or (not self._started and not self._head):
            return
        if not self._started or not self._engine.eof:
            raise UndecodableError(self._name)

    def _start(self, data: bytes) -> None:
        self._started = True
        if self._name != "deflate":
            self._plain = data[:2] != b"\x1f\x8b"
        elif data[0] & 0x0F == 8 and int.from_bytes(data[:2], "big") % 31 == 0:
            self._engine = zlib.decompressobj(wbits=15)
        else:
            self._engine = zlib.decompressobj(wbits=-15)


class _Brotli:
    def __init__(self) -> None:
        self._engine = brotli.Decompressor()
        self._fed = False

    def feed(self, data: bytes, room: int) -> list[bytes]:
        self._fed = self._fed or bool(data)
        parts: list[bytes] = []
        full = False
        try:
            # When the room given was used up, more may be waiting inside although all input is taken.
            while (data or full) and not self._engine.is_finished():
                most = min(room + 1, _PIECE)
                part = self._engine.process(data, output_buffer_limit=most)
                data = b""
                room -= len(part)
                if room < 0:
                    raise TooLargeError
                if part:
                    parts.append(part)
                full = len(part) >= most or not self._engine.can_accept_more_data()
        except brotli.error:
            raise UndecodableError("br") from None
        return parts

    def finish(self) -> None:
        if self._fed and not self._engine.is_finished():
            raise UndecodableError("br")


class _Zstd:
    def __init__(self) -> None:
        self._engine = zstd.ZstdDecompressor(options=_ZSTD_OPTIONS)
        self._fed = False
        self._frames = 0

    def feed(self, data: bytes, room: int) -> list[bytes]:
        self._fed = self._fed or bool(data)
        parts: list[bytes] = []
        try:
            while data or not (self._engine.needs_input or self._engine.eof):
                if self._engine.eof:
                    self._frames += 1
                    if self._frames > 1000:
                        raise UndecodableError("zstd")
                    self._engine = zstd.ZstdDecompressor(options=_ZSTD_OPTIONS)
                part = self._engine.decompress(data, min(room + 1, _PIECE))
                room -= len(part)
                if room < 0:
                    raise TooLargeError
                if part:
                    parts.append(part)
                data = self._engine.unused_data if self._engine.eof else b""
        except zstd.ZstdError:
            raise UndecodableError("zstd") from None
        return parts

    def finish(self) -> None:
        if self._fed and not self._engine.eof:
            raise UndecodableError("zstd")


class _Chain:
    """Encodings applied one over the other, undone in reverse."""

    def __init__(self, decoders: list[Decoder]) -> None:
        self._decoders = decoders

    def feed(self, data: bytes, room: int) -> list[bytes]:
        parts = [data]
        for decoder in self._decoders:
            left = room
            following: list[bytes] = []
            for part in parts:
                decoded = decoder.feed(part, left)
                left -= sum(map(len, decoded))
                following += decoded
            parts = following
        return parts

    def finish(self) -> None:
        for decoder in self._decoders:
            decoder.finish()
