"""The signature of what Headwater sends to webhooks, and how a receiver checks it.

    X-Headwater-Signature: t=1767225600,v1=5257a869…

`v1` is the HMAC-SHA256, in hex, of the time, a full stop and the body's bytes, under the shared secret. A receiver
that refuses old times cannot be fooled with a recorded request. Pure.
"""

import hmac
from hashlib import sha256

HEADER = "X-Headwater-Signature"
TOLERANCE_SECONDS = 300


def sign(secret: str, body: bytes, at: int) -> str:
    """The header's value for a body sent at that time."""
    return f"t={at},v1={_digest(secret, body, at)}"


def is_genuine(
    secret: str, header: str, body: bytes, *, now: float, tolerance_seconds: float = TOLERANCE_SECONDS
) -> bool:
    """Whether the body was signed with this secret, not long ago."""
    parts = dict(part.strip().partition("=")[::2] for part in header.split(","))
    time_text = parts.get("t", "")
    if not (time_text.isascii() and time_text.isdigit()) or abs(now - int(time_text)) > tolerance_seconds:
        return False
    return hmac.compare_digest(_digest(secret, body, int(time_text)).encode(), parts.get("v1", "").encode())


def _digest(secret: str, body: bytes, at: int) -> str:
    return hmac.new(secret.encode(), b"%d." % at + body, sha256).hexdigest()
