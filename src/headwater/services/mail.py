"""Sending one e-mail through an SMTP server, with the guard on the connection unless it is the operator's. Blocking."""

import smtplib
import socket
import ssl
from dataclasses import dataclass, field
from email.message import EmailMessage
from typing import Literal

from headwater.errors import PassingStepError, StepError
from headwater.fetch.guard import Guard, RefusedError

Security = Literal["starttls", "tls", "none"]
_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class MailServer:
    host: str
    port: int
    security: Security = "starttls"
    user: str | None = None
    password: str | None = field(default=None, repr=False)


def send_mail(server: MailServer, message: EmailMessage, guard: Guard | None) -> None:
    """Hand the message over; PassingStepError when the server cannot take it now."""
    try:
        with _connect(server, guard) as session:
            if server.security == "starttls":
                session.starttls(context=ssl.create_default_context())
            if server.user is not None:
                session.login(server.user, server.password or "")
            session.send_message(message, *_envelope(message))
    except RefusedError as error:
        raise StepError(
            "the mail server {host}:{port}: {address} is not a public address, so it was not contacted. "
            "An operator can allow it with HEADWATER_ALLOW_HOSTS={host}:{port}.",
            host=server.host,
            port=server.port,
            address=error.address,
        ) from None
    except smtplib.SMTPResponseException as error:
        raise _refusal(server, error.smtp_code, error.smtp_error) from None
    except smtplib.SMTPRecipientsRefused as error:
        code, words = next(iter(error.recipients.values()))
        raise _refusal(server, code, words) from None
    except smtplib.SMTPNotSupportedError as error:
        raise StepError(
            "the mail server {host} cannot do what was asked: {problem}", host=server.host, problem=error
        ) from None
    except (smtplib.SMTPException, OSError) as error:
        raise PassingStepError(
            "the mail server {host}:{port} cannot be reached: {problem}",
            host=server.host,
            port=server.port,
            problem=str(error) or type(error).__name__,
        ) from None


def _envelope(message: EmailMessage) -> tuple[str, list[str]]:
    """Who sends it to whom, by the headers' own addresses and nothing that is written in them."""
    sender, recipients = message["From"].addresses[0], message["To"].addresses
    return sender.addr_spec, [each.addr_spec for each in recipients]


def _refusal(server: MailServer, code: int, words: bytes | str) -> StepError:
    text = words.decode("utf-8", "replace") if isinstance(words, bytes) else words
    # 4xx is SMTP's "not now".
    kind = PassingStepError if 400 <= code < 500 else StepError
    return kind(
        "the mail server {host} refused with {code}: {answer}",
        host=server.host,
        code=code,
        answer=" ".join(text.split())[:300],
    )


def _connect(server: MailServer, guard: Guard | None) -> smtplib.SMTP:
    def open_socket(host: str, port: int, timeout: float) -> socket.socket:
        """As the library's own, to an address that the guard has seen."""
        infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        failure = OSError("no address")
        for *_, address in infos:
            if guard is not None:
                guard.check_address(host, str(address[0]), port)
            try:
                return socket.create_connection((str(address[0]), port), timeout)
            except OSError as error:
                failure = error
        raise failure

    context = ssl.create_default_context()

    class Plain(smtplib.SMTP):
        def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
            return open_socket(host, port, timeout)

    class Secure(smtplib.SMTP_SSL):
        def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
            return context.wrap_socket(open_socket(host, port, timeout), server_hostname=host)

    if server.security == "tls":
        return Secure(server.host, server.port, timeout=_SECONDS, context=context)
    return Plain(server.host, server.port, timeout=_SECONDS)
