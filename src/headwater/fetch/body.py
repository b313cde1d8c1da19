"""The body of a response as it arrives: decoded, and never larger than its cap."""

from io import BytesIO

from headwater.fetch.decode import Decoder, TooLargeError, make_decoder


class Body:
    """Takes what comes over the wire. Neither that nor what it decodes to grows past the cap, whatever is sent."""

    __slots__ = ("_decoder", "_limit", "_room", "_size", "_written")

    def __init__(self, limit: int) -> None:
        self._limit = self._room = limit
        self._size = 0
        self._decoder: Decoder | None = None
        self._written: BytesIO | None = None

    def decode(self, encoding: str) -> None:
        """Undo a Content-Encoding; UndecodableError when it is unknown."""
        self._decoder = make_decoder(encoding)

    def feed(self, data: bytes) -> None:
        self._size += len(data)
        # What is compressed must not be larger either: an encoding can hold any amount of nothing.
        if self._size > self._limit:
            raise TooLargeError
        if self._written is None:
            # A list of parts would cost many times what is in them when they come byte by byte.
            self._written = BytesIO()
        if self._decoder is None:
            self._written.write(data)
        else:
            for part in self._decoder.feed(data, self._room):
                self._room -= len(part)
                self._written.write(part)

    @property
    def size(self) -> int:
        """How much has come, or what it is decoded to, whichever is more."""
        return max(self._size, self._limit - self._room)

    def finish(self) -> None:
        """UndecodableError when an encoded body is not complete."""
        if self._decoder is not None:
            self._decoder.finish()

    @property
    def value(self) -> bytes:
        return b"" if self._written is None else self._written.getvalue()
