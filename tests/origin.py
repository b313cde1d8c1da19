"""A scriptable web server on loopback for tests: it answers as told, and misbehaves as told.

    with Origin() as origin:
        origin.route("/feed", body="<rss/>", etag='"x"')         # answers 304 to If-None-Match: "x"
        origin.route("/moved", status=301, location="/feed")
        origin.route("/flaky", [Answer(status=503), Answer(body="ok")])  # one after the other, the last stays
        origin.route("/echo", lambda request: request.headers.get("user-agent", ""))
        origin.route("/evil", body="x" * 99, fault="cut-body")
        fetch(origin.url("/feed"))
        assert origin.requests[0].headers["if-none-match"] == '"x"'

It speaks HTTP over raw sockets (a web framework would not let it lie) on a separate thread and loop, so
synchronous tests and other processes can use it too. Everything it received is in `origin.requests`.
"""

import asyncio
import contextlib
import datetime
import functools
import gzip
import ipaddress
import socket
import ssl
import struct
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

import brotli

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Encoding = Literal["gzip", "deflate", "br", "zstd"]
Headers = Mapping[str, str | bytes] | Sequence[tuple[str, str | bytes]]
Body = bytes | str | Iterable[bytes]
Fault = Literal[
    "hang",  # takes the request and never answers
    "close",  # takes the request and closes the connection
    "reset",  # takes the request and resets the connection
    "garbage",  # answers something that is not HTTP
    "header-flood",  # sends headers for ever
    "long-header",  # sends one header of 10 MB
    "cut-body",  # promises the whole body, sends half, closes
    "long-length",  # promises 1,000 bytes more than there are, then closes
    "short-length",  # promises 10 bytes less than it sends
    "no-length",  # no Content-Length; the end of the connection ends the body
    "cut-chunk",  # chunked; the connection ends inside a chunk
    "bad-chunk",  # chunked; a chunk size that is not a number
    "drip",  # sends the body one byte per `drip_seconds`
    "drip-headers",  # sends the status line and headers so
    "endless",  # repeats the body for ever, chunked
]


@dataclass
class Answer:
    """What a route says. `etag` and `last_modified` also make it answer 304 to a matching condition."""

    body: Body = b""
    status: int = 200
    headers: Headers = ()
    etag: str | bytes | None = None
    last_modified: str | bytes | None = None
    location: str | None = None
    content_type: str | None = "application/xml"
    encoding: Encoding | None = None
    chunked: bool = False
    delay: float = 0.0
    fault: Fault | None = None
    drip_seconds: float = 1.0
    keep_alive: bool = True


@dataclass(frozen=True)
class Received:
    """One request as it came in. Header names are lower case; `raw_headers` keeps bytes and repetitions."""

    method: str
    target: str
    headers: Mapping[str, str]
    raw_headers: Sequence[tuple[bytes, bytes]]
    body: bytes
    at: float
    connection: int

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]


Script = Callable[[Received], "Answer | Body"]
Reply = Answer | Body | Script


class Origin:
    """The server. `tls` serves https with a certificate of that quality; `ca_file` is what signed it."""

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        tls: Literal["trusted", "self-signed", "expired", "wrong-host"] | None = None,
    ) -> None:
        self.host = host
        self.tls = tls
        self.port = 0
        self.requests: list[Received] = []
        self.connections = 0
        self.open_connections = 0
        self.most_at_once = 0
        self.bytes_sent = 0
        self.ca_file: Path | None = None
        self._at_work = 0
        self._routes: dict[str, list[Reply]] = {}
        self._default: Reply = Answer(status=404, body="no such route")
        self._loop = asyncio.new_event_loop()
        self._thread: threading.Thread | None = None
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    # -- scripting ---------------------------------------------------------------------------------------

    def route(
        self,
        path: str,
        reply: Reply | list[Answer] | None = None,
        *,
        body: Body = b"",
        status: int = 200,
        headers: Headers = (),
        etag: str | bytes | None = None,
        last_modified: str | bytes | None = None,
        location: str | None = None,
        content_type: str | None = "application/xml",
        encoding: Encoding | None = None,
        chunked: bool = False,
        delay: float = 0.0,
        fault: Fault | None = None,
        drip_seconds: float = 1.0,
        keep_alive: bool = True,
    ) -> str:
        """Say how `path` answers (with its query, or without for any query), and return its URL.

        `reply` is an Answer, a body, a function of the request to either, or a list of Answers given one
        after the other, the last for ever. Without it the keywords make the one Answer.
        """
        if reply is None:
            replies: list[Reply] = [
                Answer(
                    body=body,
                    status=status,
                    headers=headers,
                    etag=etag,
                    last_modified=last_modified,
                    location=location,
                    content_type=content_type,
                    encoding=encoding,
                    chunked=chunked,
                    delay=delay,
                    fault=fault,
                    drip_seconds=drip_seconds,
                    keep_alive=keep_alive,
                )
            ]
        elif isinstance(reply, list):
            replies = list(reply)
        else:
            replies = [reply]
        self._routes[path] = replies
        return self.url(path)

    def otherwise(self, reply: Reply) -> None:
        """How every path without a route answers (404 unless said)."""
        self._default = reply

    def url(self, path: str = "/", *, host: str | None = None, userinfo: str | None = None) -> str:
        scheme = "https" if self.tls else "http"
        name = host or (f"[{self.host}]" if ":" in self.host else self.host)
        return f"{scheme}://{userinfo + '@' if userinfo else ''}{name}:{self.port}{path}"

    def received(self, path: str) -> list[Received]:
        """The requests for one path, in order."""
        return [request for request in self.requests if request.path == path or request.target == path]

    # -- life --------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        context = None
        if self.tls:
            self._folder = tempfile.TemporaryDirectory()
            context, self.ca_file = tls_context(self.tls, Path(self._folder.name))
        started: threading.Event = threading.Event()
        failed: list[BaseException] = []

        async def serve() -> None:
            try:
                self._server = await asyncio.start_server(
                    self._accept, self.host, 0, ssl=context, limit=1 << 20, backlog=1024
                )
                self.port = self._server.sockets[0].getsockname()[1]
            except BaseException as error:  # noqa: BLE001  (handed to the thread that waits)
                failed.append(error)
            started.set()

        def run() -> None:
            asyncio.set_event_loop(self._loop)
            self._loop.create_task(serve())
            self._loop.run_forever()

        self._loop.set_exception_handler(lambda _loop, _context: None)
        self._thread = threading.Thread(target=run, name="origin", daemon=True)
        self._thread.start()
        started.wait()
        if failed:
            self.close()
            raise failed[0]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        async def stop() -> None:
            if self._server is not None:
                self._server.close()
            # Connections just accepted need some turns of the loop to begin; each is ended after it began,
            # because one that never begins never closes its socket.
            deadline = self._loop.time() + 5
            while (others := asyncio.all_tasks() - {asyncio.current_task()}) and self._loop.time() < deadline:
                for task in list(self._tasks):
                    task.cancel()
                await asyncio.wait(others, timeout=0.05)
            await asyncio.sleep(0)  # lets transports report their end

        if self._thread is not None:
            asyncio.run_coroutine_threadsafe(stop(), self._loop).result(10)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(10)
            self._thread = None
        self._loop.close()
        if self._folder is not None:
            self._folder.cleanup()

    # -- serving -----------------------------------------------------------------------------------------

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        self.open_connections += 1
        try:
            with contextlib.suppress(
                ConnectionError, asyncio.IncompleteReadError, ssl.SSLError, TimeoutError
            ):
                await self._serve(reader, writer, self.connections)
        except asyncio.CancelledError:
            pass  # the origin is closing
        finally:
            self.open_connections -= 1
            self._tasks.discard(task)
            if not writer.transport.is_closing():
                # What is left in the buffer is sent, and a peer that does not read holds nothing up.
                writer.close()
            with contextlib.suppress(BaseException):
                await asyncio.wait_for(asyncio.shield(writer.wait_closed()), 0.5)
            writer.transport.abort()

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: int
    ) -> None:
        while (request := await self._read(reader, connection)) is not None:
            self.requests.append(request)
            self._at_work += 1
            self.most_at_once = max(self.most_at_once, self._at_work)
            try:
                if request.method == "CONNECT" and request.target not in self._routes:
                    await self._tunnel(request.target, reader, writer)
                    return
                answer = self._answer(request)
                await asyncio.sleep(answer.delay)
                going_on = await self._send(writer, request, answer)
            finally:
                self._at_work -= 1
            if not going_on or request.headers.get("connection", "").lower() == "close":
                return

    async def _read(self, reader: asyncio.StreamReader, connection: int) -> Received | None:
        start = await reader.readexactly(1)
        if start == b"\x16":
            raise ConnectionError("a TLS handshake on a plain port")
        head = start + await reader.readuntil(b"\r\n\r\n")
        first, *lines = head[:-4].split(b"\r\n")
        method, target, _version = first.decode("latin-1").split(" ", 2)
        raw = [(name.strip(), value.strip()) for name, _, value in (line.partition(b":") for line in lines)]
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in raw}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        return Received(method, target, headers, raw, body, time.monotonic(), connection)

    def _answer(self, request: Received) -> Answer:
        replies = self._routes.get(request.target) or self._routes.get(request.path) or [self._default]
        reply = replies.pop(0) if len(replies) > 1 else replies[0]
        if callable(reply):
            reply = reply(request)
        return reply if isinstance(reply, Answer) else Answer(body=reply)

    async def _tunnel(self, target: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Be a forwarding proxy: CONNECT reaches whatever is asked for."""
        host, _, port = target.rpartition(":")
        there_reader, there_writer = await asyncio.open_connection(host.strip("[]"), int(port))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")

        async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
            with contextlib.suppress(ConnectionError):
                while data := await source.read(65536):
                    sink.write(data)
                    await sink.drain()

        pumps = [
            asyncio.ensure_future(pump(reader, there_writer)),
            asyncio.ensure_future(pump(there_reader, writer)),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for running in pumps:
                running.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            there_writer.transport.abort()

    async def _send(self, writer: asyncio.StreamWriter, request: Received, answer: Answer) -> bool:
        """Send the answer; False when the connection must not be used again."""
        fault = answer.fault
        if fault == "hang":
            await asyncio.Event().wait()
        if fault == "close":
            return False
        if fault == "reset":
            linger = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            writer.transport.abort()
            return False
        if fault == "garbage":
            await self._write(writer, b"\x16\x03\x01 220 mail.example ESMTP\r\nHELO\r\n\r\n")
            return False

        status, body = answer.status, answer.body
        if isinstance(body, str):
            body = body.encode()
        if status == 200 and _matches(request, answer):
            status, body = 304, b""
        if answer.encoding and isinstance(body, bytes) and status != 304:
            body = compress(body, answer.encoding)
        streamed = not isinstance(body, bytes) or answer.chunked or fault == "endless"

        head = [f"HTTP/1.1 {status} {_phrase(status)}".encode("latin-1")]
        head += _header_lines(answer, status, request)
        if status in (204, 304) or request.method == "HEAD":
            body, streamed = b"", False
        elif fault in ("cut-chunk", "bad-chunk") or (streamed and fault != "no-length"):
            head.append(b"Transfer-Encoding: chunked")
        elif fault != "no-length":
            assert isinstance(body, bytes)
            wrong = {"long-length": 1000, "short-length": -10}.get(fault or "", 0)
            head.append(b"Content-Length: %d" % (len(body) + wrong))
        if not answer.keep_alive or fault == "no-length":
            head.append(b"Connection: close")

        if fault == "header-flood":
            await self._write(writer, b"\r\n".join(head) + b"\r\n")
            number = 0
            while True:
                number += 1
                await self._write(writer, b"X-Flood-%d: %s\r\n" % (number, b"x" * 1000))
        if fault == "long-header":
            head.append(b"X-Long: " + b"x" * 10_000_000)
        start = b"\r\n".join(head) + b"\r\n\r\n"
        if fault == "drip-headers":
            await self._drip(writer, start, answer.drip_seconds)
            start = b""
        return await self._send_body(writer, start, body, answer, streamed=streamed)

    async def _send_body(
        self, writer: asyncio.StreamWriter, start: bytes, body: Body, answer: Answer, *, streamed: bool
    ) -> bool:
        fault = answer.fault
        if isinstance(body, bytes) and fault not in ("endless", "drip", "cut-chunk", "bad-chunk"):
            if streamed:
                size = max(1, len(body) // 3)
                parts = (body[at : at + size] for at in range(0, len(body), size))
                await self._write(writer, start + b"".join(_chunk(part) for part in parts) + b"0\r\n\r\n")
            else:
                await self._write(writer, start + (body[: len(body) // 2] if fault == "cut-body" else body))
            return fault not in ("cut-body", "long-length", "no-length") and answer.keep_alive
        await self._write(writer, start)
        if fault in ("cut-chunk", "bad-chunk"):
            await asyncio.sleep(0.05)  # so that the reader is already waiting for the body
        if fault == "cut-chunk":
            assert isinstance(body, bytes)
            await self._write(writer, b"%x\r\n%s" % (len(body), body[: len(body) // 2]))
            return False
        if fault == "bad-chunk":
            await self._write(writer, b"zz\r\nwhat\r\n0\r\n\r\n")
            return False
        if fault == "drip":
            assert isinstance(body, bytes)
            await self._drip(writer, body, answer.drip_seconds)
            return answer.keep_alive
        if fault == "endless":
            assert isinstance(body, bytes)
            while True:
                await self._write(writer, _chunk(body or b"x" * 65536))
        assert not isinstance(body, bytes | str)
        for part in body:
            if part:
                await self._write(writer, part if fault == "no-length" else _chunk(part))
        if fault == "no-length":
            return False
        await self._write(writer, b"0\r\n\r\n")
        return answer.keep_alive

    async def _write(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        self.bytes_sent += len(data)  # before the peer can look
        writer.write(data)
        await writer.drain()
        await asyncio.sleep(0)  # drain alone does not let the loop see that the peer has gone
        if writer.transport.is_closing():
            raise ConnectionResetError

    async def _drip(self, writer: asyncio.StreamWriter, data: bytes, seconds: float) -> None:
        for at in range(len(data)):
            await self._write(writer, data[at : at + 1])
            await asyncio.sleep(seconds)


def compress(data: bytes, encoding: Encoding) -> bytes:
    if encoding == "gzip":
        return gzip.compress(data, mtime=0)
    if encoding == "deflate":
        return zlib.compress(data)
    if encoding == "br":
        return bytes(brotli.compress(data, quality=5))
    return bytes(zstd.compress(data))


def bomb(encoding: Encoding, size: int) -> bytes:
    """`size` zero bytes, compressed without ever holding them."""
    block = bytes(1 << 20)

    def blocks() -> Iterator[bytes]:
        for _ in range(size >> 20):
            yield block

    if encoding == "br":
        brotli_compressor = brotli.Compressor(quality=3)
        return b"".join([*(brotli_compressor.process(data) for data in blocks()), brotli_compressor.finish()])
    if encoding == "zstd":
        zstd_compressor = zstd.ZstdCompressor()
        return b"".join([*(zstd_compressor.compress(data) for data in blocks()), zstd_compressor.flush()])
    zlib_compressor = zlib.compressobj(9, wbits=31 if encoding == "gzip" else 15)
    return b"".join([*(zlib_compressor.compress(data) for data in blocks()), zlib_compressor.flush()])


def _bytes(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode("latin-1")


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Something"


def _matches(request: Received, answer: Answer) -> bool:
    """Whether the request's condition holds, comparing bytes exactly as a strict origin does."""
    sent = {name.lower(): value for name, value in request.raw_headers}
    if answer.etag is not None and b"if-none-match" in sent:
        return sent[b"if-none-match"] == _bytes(answer.etag)
    if answer.last_modified is not None and b"if-modified-since" in sent:
        return sent[b"if-modified-since"] == _bytes(answer.last_modified)
    return False


def _header_lines(answer: Answer, status: int, request: Received) -> list[bytes]:
    headers: list[tuple[str, str | bytes]] = []
    if answer.content_type and status not in (204, 304):
        headers.append(("Content-Type", answer.content_type))
    if answer.etag is not None:
        headers.append(("ETag", answer.etag))
    if answer.last_modified is not None:
        headers.append(("Last-Modified", answer.last_modified))
    if answer.location is not None:
        headers.append(("Location", answer.location))
    if answer.encoding and status != 304:
        headers.append(("Content-Encoding", answer.encoding))
    headers += answer.headers.items() if isinstance(answer.headers, Mapping) else answer.headers
    return [name.encode("latin-1") + b": " + _bytes(value) for name, value in headers]


@functools.cache
def make_certificate(
    quality: str, hosts: tuple[str, ...] = (), kind: Literal["ECDSA", "RSA"] = "ECDSA"
) -> tuple[bytes, bytes]:
    """A key with its certificate, for `hosts` too, and the certificate of the CA the client may trust.

    `cryptography` is imported here because it is slow to import and few tests need it.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    now = datetime.datetime.now(datetime.UTC)
    day = datetime.timedelta(days=1)

    def name(text: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])

    def host(text: str) -> x509.GeneralName:
        try:
            return x509.IPAddress(ipaddress.ip_address(text))
        except ValueError:
            return x509.DNSName(text)

    ca_key = ec.generate_private_key(ec.SECP256R1())
    key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
    key = rsa.generate_private_key(65537, 2048) if kind == "RSA" else ec.generate_private_key(ec.SECP256R1())
    ca = (
        x509.CertificateBuilder()
        .subject_name(name("Test CA"))
        .issuer_name(name("Test CA"))
        .public_key(ca_key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - 400 * day)
        .not_valid_after(now + 400 * day)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key()), critical=False)
        .add_extension(
            x509.KeyUsage(
                digital_signature=True,
                content_commitment=False,
                key_encipherment=False,
                data_encipherment=False,
                key_agreement=False,
                key_cert_sign=True,
                crl_sign=True,
                encipher_only=False,
                decipher_only=False,
            ),
            critical=True,
        )
        .sign(ca_key, hashes.SHA256())
    )
    self_signed = quality == "self-signed"
    names: list[x509.GeneralName] = [
        x509.DNSName("localhost"),
        x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
        x509.IPAddress(ipaddress.ip_address("::1")),
        *map(host, hosts),
    ]
    if quality == "wrong-host":
        names = [x509.DNSName("elsewhere.example")]
    leaf = (
        x509.CertificateBuilder()
        .subject_name(name("localhost"))
        .issuer_name(name("localhost" if self_signed else "Test CA"))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - 30 * day)
        .not_valid_after(now - day if quality == "expired" else now + 30 * day)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key((key if self_signed else ca_key).public_key()),
            critical=False,
        )
        .sign(key if self_signed else ca_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return private + leaf.public_bytes(pem), ca.public_bytes(pem)


def tls_context(quality: str, folder: Path, hosts: tuple[str, ...] = ()) -> tuple[ssl.SSLContext, Path]:
    leaf, ca = make_certificate(quality, hosts)
    (folder / "leaf.pem").write_bytes(leaf)
    (folder / "ca.pem").write_bytes(ca)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "leaf.pem")
    return context, folder / "ca.pem"
