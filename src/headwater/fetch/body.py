"""Taking the body of an answer from the network, decoded and within its cap, or letting it go for good."""

from aiohttp import ClientResponse

from headwater.errors import FailureKind, FetchError
from headwater.fetch.decode import TooLargeError, UndecodableError, make_decoder


async def read_body(
    answer: ClientResponse, encoding: str | None, limit: int, shown: str
) -> tuple[bytes, int]:
    """The decoded body and its size on the wire. Neither grows past the cap, whatever is sent."""
    try:
        parts, size = await _read(answer, encoding, limit)
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
    finally:
        drop(answer)
    return (parts[0] if len(parts) == 1 else b"".join(parts)), size


async def _read(answer: ClientResponse, encoding: str | None, limit: int) -> tuple[list[bytes], int]:
    decoder = make_decoder(encoding) if encoding else None
    content = answer.content
    parts: list[bytes] = []
    size, room = 0, limit
    while chunk := await content.readany():
        size += len(chunk)
        # What is compressed must not be larger either: an encoding can hold any amount of nothing.
        if size > limit:
            raise TooLargeError
        if decoder is None:
            parts.append(chunk)
        else:
            for part in decoder.feed(chunk, room):
                room -= len(part)
                parts.append(part)
    if decoder is not None:
        decoder.finish()
    return parts, size


def drop(answer: ClientResponse) -> None:
    """Have done with an answer, read or not. The connection is kept only if it was read to its end."""
    if answer.connection is not None:
        answer.close()
