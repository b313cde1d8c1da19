"""A connection through a SOCKS 5 proxy (RFC 1928, RFC 1929), for programs that go out through ours."""

import asyncio

from headwater.fetch.url import Proxy

_VERSION, _CONNECT = 5, 1
_NO_LOGIN, _LOGIN = 0, 2
_NAME = 3
_ADDRESS_BYTES = {1: 4, 4: 16}


async def open_tunnel(
    proxy: Proxy, host: str, port: int
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection to `host`, whose name the proxy looks up; OSError when the proxy makes none."""
    reader, writer = await asyncio.open_connection(proxy.host, proxy.port)
    try:
        await _greet(reader, writer, proxy.login)
        name = host.encode("ascii")
        writer.write(bytes((_VERSION, _CONNECT, 0, _NAME, len(name))) + name + port.to_bytes(2))
        await _read_answer(reader)
    except (asyncio.IncompleteReadError, KeyError, ValueError) as error:
        writer.transport.abort()
        raise OSError("not a SOCKS 5 proxy") from error
    except BaseException:
        writer.transport.abort()
        raise
    return reader, writer


async def _read_answer(reader: asyncio.StreamReader) -> None:
    _, problem, _, kind = await reader.readexactly(4)
    if problem:
        raise OSError("the proxy refused")
    length = (await reader.readexactly(1))[0] if kind == _NAME else _ADDRESS_BYTES[kind]
    await reader.readexactly(length + 2)


async def _greet(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, login: tuple[str, str] | None
) -> None:
    writer.write(bytes((_VERSION, 1, _NO_LOGIN if login is None else _LOGIN)))
    version, method = await reader.readexactly(2)
    if version != _VERSION or method != (_NO_LOGIN if login is None else _LOGIN):
        raise OSError("the proxy wants another way to sign in")
    if login is not None:
        user, password = (part.encode() for part in login)
        writer.write(b"\1" + bytes((len(user),)) + user + bytes((len(password),)) + password)
        if (await reader.readexactly(2))[1]:
            raise OSError("the proxy does not let us in")
