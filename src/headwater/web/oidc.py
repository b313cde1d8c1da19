"""An OpenID Connect provider to sign in with: the authorization code flow with PKCE, state and nonce.

The identity token is checked before anything of it is believed: its signature by the provider's published keys, its
issuer, audience, time and nonce. Needs the extra `oidc`.
"""

import base64
import hashlib
import secrets
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import orjson

from headwater.config import Settings
from headwater.errors import FetchError, InputError, Text
from headwater.fetch.client import Fetcher, make_fetcher
from headwater.fetch.message import BasicAuth, Request
from headwater.web.api.problems import Refusal

ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
LEEWAY_SECONDS: Final = 60
MOST_BYTES = 1_000_000
PATIENCE_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Attempt:
    """A sign-in under way: what the browser keeps in a cookie until the provider sends it back."""

    state: str
    nonce: str
    verifier: str
    next: str
    invitation: str = ""

    @classmethod
    def begin(cls, next: str, invitation: str = "") -> "Attempt":
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        return cls(state, nonce, verifier, next, invitation)

    def dump(self) -> str:
        fields = [self.state, self.nonce, self.verifier, self.next, self.invitation]
        return base64.urlsafe_b64encode(orjson.dumps(fields)).decode()

    @classmethod
    def load(cls, text: str) -> "Attempt | None":
        try:
            fields = orjson.loads(base64.urlsafe_b64decode(text))
            if len(fields) == 5 and all(isinstance(field, str) for field in fields):
                return cls(*fields)
        except (ValueError, TypeError):
            pass
        return None


@dataclass(frozen=True, slots=True)
class Identity:
    """Whom the provider has signed in."""

    subject: str  # unique among all providers
    name: str  # proposed as user name
    email: str | None


class Provider:
    """The provider that the settings name."""

    def __init__(self, settings: Settings) -> None:
        if settings.oidc_issuer is None or settings.oidc_client_id is None:
            raise InputError(
                "set HEADWATER_OIDC_ISSUER and HEADWATER_OIDC_CLIENT_ID to sign in with a provider"
            )
        if find_spec("joserfc") is None:
            raise InputError(
                "{step} needs more than is installed: pip install 'headwater[{extra}]'",
                step="OpenID Connect",
                extra="oidc",
            )
        self._issuer = settings.oidc_issuer.rstrip("/")
        self._client_id = settings.oidc_client_id
        self._client_secret = settings.oidc_client_secret
        # The operator names the issuer, which may be in a private network; what it points to elsewhere may not.
        host = urlsplit(self._issuer).netloc.rpartition("@")[2]
        self._settings = replace(
            settings, allow_hosts=(*settings.allow_hosts, host), host_spacing_seconds=0.0
        )

    async def address(self, attempt: Attempt, redirect_uri: str) -> str:
        """Where the browser is sent to sign in."""
        async with make_fetcher(self._settings) as fetcher:
            found = await self._discover(fetcher)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(attempt.verifier.encode()).digest())
        query = {
            "response_type": "code",
            "client_id": self._client_id,
            "redirect_uri": redirect_uri,
            "scope": "openid profile email",
            "state": attempt.state,
            "nonce": attempt.nonce,
            "code_challenge": challenge.decode().rstrip("="),
            "code_challenge_method": "S256",
        }
        endpoint = _endpoint(found, "authorization_endpoint")
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query)}"

    async def identify(self, attempt: Attempt, code: str, redirect_uri: str, now: float) -> Identity:
        """Whom the provider has signed in, by the code that it gave the browser."""
        async with make_fetcher(self._settings) as fetcher:
            found = await self._discover(fetcher)
            token = await self._exchange(fetcher, found, attempt, code, redirect_uri)
            keys = await _get_json(fetcher, _endpoint(found, "jwks_uri"))
        claims = self._verified(token, keys, attempt.nonce, now)
        name = claims.get("preferred_username") or str(claims.get("email") or "").partition("@")[0]
        email = claims.get("email") if claims.get("email_verified") in (True, "true") else None
        return Identity(
            f"{self._issuer}#{claims['sub']}",
            str(name or claims["sub"]),
            email if isinstance(email, str) else None,
        )

    async def _discover(self, fetcher: Fetcher) -> dict[str, Any]:
        found = await _get_json(fetcher, f"{self._issuer}/.well-known/openid-configuration")
        if str(found.get("issuer", "")).rstrip("/") != self._issuer:
            raise _wrong(f"issuer {found.get('issuer')}")
        return found

    async def _exchange(
        self, fetcher: Fetcher, found: dict[str, Any], attempt: Attempt, code: str, redirect_uri: str
    ) -> str:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": attempt.verifier,
            "client_id": self._client_id,
        }
        auth = None
        if self._client_secret is not None:
            ways = found.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
            if "client_secret_basic" in ways:
                auth = BasicAuth(self._client_id, self._client_secret)
            else:
                form["client_secret"] = self._client_secret
        request = Request(
            _endpoint(found, "token_endpoint"),
            headers={"Content-Type": "application/x-www-form-urlencoded"},
            auth=auth,
            accept="application/json",
            body=urlencode(form).encode(),
            max_bytes=MOST_BYTES,
            total_seconds=PATIENCE_SECONDS,
        )
        try:
            answer = _read_json((await fetcher.post(request)).body)
        except FetchError as error:
            raise _failed(error) from None
        token = answer.get("id_token")
        if not isinstance(token, str):
            raise _wrong("no id_token")
        return token

    def _verified(self, token: str, keys: dict[str, Any], nonce: str, now: float) -> dict[str, Any]:
        """The claims of an identity token that is the provider's, for us, of now, and of this attempt."""
        from joserfc import jwk, jwt
        from joserfc.errors import JoseError

        try:
            known = jwk.KeySet.import_key_set({"keys": keys.get("keys", [])})
            claims = jwt.decode(token, known, algorithms=ALGORITHMS).claims
            jwt.JWTClaimsRegistry(
                now=int(now),
                leeway=LEEWAY_SECONDS,
                iss={"essential": True},
                sub={"essential": True},
                aud={"essential": True, "value": self._client_id},
                exp={"essential": True},
                nonce={"essential": True, "value": nonce},
            ).validate(claims)
        except (JoseError, ValueError, KeyError, TypeError) as error:
            raise _wrong(type(error).__name__) from None
        if str(claims["iss"]).rstrip("/") != self._issuer:
            raise _wrong("iss")
        audience = claims["aud"]
        if isinstance(audience, list) and len(audience) > 1 and claims.get("azp") != self._client_id:
            raise _wrong("azp")
        return dict(claims)


async def _get_json(fetcher: Fetcher, url: str) -> dict[str, Any]:
    request = Request(url, accept="application/json", max_bytes=MOST_BYTES, total_seconds=PATIENCE_SECONDS)
    try:
        return _read_json((await fetcher.get(request)).body)
    except FetchError as error:
        raise _failed(error) from None


def _read_json(body: bytes) -> dict[str, Any]:
    try:
        found = orjson.loads(body)
    except ValueError:
        raise _wrong("JSON") from None
    if not isinstance(found, dict):
        raise _wrong("JSON")
    return found


def _endpoint(found: dict[str, Any], name: str) -> str:
    url = found.get(name)
    if not isinstance(url, str) or urlsplit(url).scheme not in ("http", "https"):
        raise _wrong(name)
    return url


def _failed(error: FetchError) -> Refusal:
    return Refusal(
        502, Text("the sign-in provider failed: {problem}", problem=Text(error.template, **error.values))
    )


def _wrong(what: str) -> Refusal:
    return Refusal(502, Text("the sign-in provider gave a wrong answer ({problem})", problem=what[:200]))
