"""Letters of many shapes, made from a seed: what programs that write letters really do, and what breaks readers."""

from email.message import EmailMessage
from email.mime.base import MIMEBase
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from email.utils import formatdate
from random import Random

WORDS = ["river", "stone", "bridge", "garden", "morning", "letter", "harbour", "winter", "paper", "cloud"]
HAN = "春天的花园里有一座小桥流水人家清晨阳光"
HOSTILE = (
    "<script>alert(1)</script>",
    '<img src="x" onerror="alert(1)">',
    '<a href="javascript:alert(1)">x</a>',
    '<img src="https://count.example/open.gif" width="1" height="1">',
    "<iframe src='https://e.example'></iframe>",
)


def make_letter(number: int, seed: int = 0) -> bytes:
    """Letter `number`: its Message-ID and subject say which one it is."""
    rng = Random(seed * 1_000_003 + number)
    shapes = (_plain, _html, _alternative, _chinese, _related, _attached, _base64, _broken, _bare, _nested)
    return shapes[number % len(shapes)](number, rng)


def _head(message: object, number: int, subject: str | None = None) -> None:
    headers = {
        "From": "Garden Letters <news@garden.example>",
        "To": "garden@news.example",
        "Subject": subject or f"Letter {number}",
        "Date": formatdate(1_790_000_000 + 60 * number),
        "Message-ID": f"<letter-{number}@garden.example>",
    }
    for name, value in headers.items():
        message[name] = value  # type: ignore[index]


def _text(rng: Random) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(rng.randint(5, 200)))


def _page(number: int, rng: Random) -> str:
    paragraphs = "".join(f"<p>{_text(rng)}</p>" for _ in range(rng.randint(1, 5)))
    return f"<html><body><h1>Letter {number}</h1>{paragraphs}{rng.choice(HOSTILE)}</body></html>"


def _plain(number: int, rng: Random) -> bytes:
    message = EmailMessage()
    _head(message, number)
    message.set_content(_text(rng) + "\n.\n..\n" + _text(rng))
    return message.as_bytes()


def _html(number: int, rng: Random) -> bytes:
    message = EmailMessage()
    _head(message, number)
    message.set_content(_page(number, rng), subtype="html")
    return message.as_bytes()


def _alternative(number: int, rng: Random) -> bytes:
    message = EmailMessage()
    _head(message, number)
    message.set_content(_text(rng))
    message.add_alternative(_page(number, rng), subtype="html")
    return message.as_bytes()


def _chinese(number: int, rng: Random) -> bytes:
    text = "".join(rng.choice(HAN) for _ in range(200))
    part = MIMEText(text, "plain", rng.choice(("gb18030", "utf-8", "big5hkscs")))
    _head(part, number, f"第 {number} 封信 {number}")
    return part.as_bytes()


def _related(number: int, rng: Random) -> bytes:
    message = MIMEMultipart("related")
    _head(message, number)
    message.attach(MIMEText(_page(number, rng) + '<img src="cid:one">', "html"))
    picture = MIMEBase("image", "png")
    picture.set_payload(rng.randbytes(500).hex())
    picture["Content-ID"] = "<one>"
    message.attach(picture)
    return message.as_bytes()


def _attached(number: int, rng: Random) -> bytes:
    message = EmailMessage()
    _head(message, number)
    message.set_content(_text(rng))
    message.add_attachment(
        rng.randbytes(50_000), maintype="application", subtype="pdf", filename=f"第{number}号.pdf"
    )
    return message.as_bytes()


def _base64(number: int, rng: Random) -> bytes:
    part = MIMEText(_page(number, rng), "html", "utf-8")
    _head(part, number, f"Grüße {number}")
    return part.as_bytes()


def _broken(number: int, rng: Random) -> bytes:
    """A boundary that never ends, a charset that does not exist, bytes that fit no charset."""
    head = (
        f"From: Garden <news@garden.example>\r\nSubject: Letter {number}\r\n"
        f"Message-ID: <letter-{number}@garden.example>\r\nDate: yesterday\r\n"
        'Content-Type: multipart/mixed; boundary="b"\r\n\r\n--b\r\nContent-Type: text/html; charset=x-none\r\n\r\n'
    )
    return head.encode() + b"<p>" + rng.randbytes(300).replace(b"\r", b"").replace(b"\n", b"")


def _bare(number: int, rng: Random) -> bytes:
    return (
        f"From: news@garden.example\r\nSubject: Letter {number}\r\n"
        f"Message-ID: <letter-{number}@garden.example>\r\n\r\n{_text(rng)}"
    ).encode()


def _nested(number: int, rng: Random) -> bytes:
    outer = MIMEMultipart("mixed")
    _head(outer, number)
    inner = MIMEMultipart("alternative")
    inner.attach(MIMEText(_text(rng)))
    inner.attach(MIMEText(_page(number, rng), "html"))
    outer.attach(inner)
    outer.attach(MIMEText("-- \nfooter"))
    return outer.as_bytes()
