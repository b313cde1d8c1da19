"""Taking the body of an answer from the network, decoded and within its cap."""

from io import BytesIO

from headwater.errors import FailureKind, FetchError
from headwater.fetch.decode import TooLargeError, UndecodableError, make_decoder
from headwater.fetch.wire import Connection


async def read_body(answer: Connection, encoding: str | None, limit: int, shown: str) -> bytes:
    """The decoded body. It does not grow past the cap, and nor does what is read for it, whatever is sent."""
    try:
        return await _read(answer, encoding, limit)
    except TooLargeError:
        raise FetchError(
            FailureKind.TOO_LARGE,
            "{url}: the answer is larger than the {limit} bytes allowed.",
            http_status=answer.status,
            url=shown,
            limit=limit,
        ) from None
    except UndecodableError as error:
        raise FetchError(
            FailureKind.BROKEN,
            "{url}: the compressed answer cannot be read, or is cut off ({encoding}).",
            http_status=answer.status,
            url=shown,
            encoding=str(error),
        ) from None


async def _read(answer: Connection, encoding: str | None, limit: int) -> bytes:
    decoder = make_decoder(encoding) if encoding else None
    body = BytesIO()  # a list of parts would cost many times what is in them when they come byte by byte
    size, room = 0, limit
    while chunk := await answer.read():
        size += len(chunk)
        # What is compressed must not be larger either: an encoding can hold any amount of nothing.
        if size > limit:
            raise TooLargeError
        if decoder is None:
            body.write(chunk)
        else:
            for part in decoder.feed(chunk, room):
                room -= len(part)
                body.write(part)
    if decoder is not None:
        decoder.finish()
    return body.getvalue()
