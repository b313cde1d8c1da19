"""An OpenID Connect provider on loopback: it publishes keys, gives codes, checks PKCE and signs identity tokens.

`claims` is whom it signs in; `change` alters a token's claims before it is signed, to play a provider that lies.
"""

import base64
import hashlib
import json
import secrets
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwk, jwt

from tests.origin import Answer, Origin, Received

CLIENT_ID = "headwater"
CLIENT_SECRET = "a client's secret"


class OidcProvider:
    def __init__(self, origin: Origin, clock: Callable[[], float] = time.time) -> None:
        self._origin = origin
        self.requests = origin.requests
        self._clock = clock
        self._key = jwk.RSAKey.generate_key(2048, parameters={"kid": "one"})
        self.signing_key = self._key
        self._codes: dict[str, dict[str, str]] = {}
        self.claims: dict[str, Any] = {"sub": "248289761001", "preferred_username": "Li"}
        self.change: Callable[[dict[str, Any]], None] = lambda claims: None
        self.issuer = origin.url("").rstrip("/")
        origin.route("/.well-known/openid-configuration", self._json(self._configuration))
        origin.route("/keys", self._json(lambda: {"keys": [self._key.as_dict(private=False)]}))
        origin.route("/token", self._token)

    def sign_in(self, address: str) -> str:
        """Do what a person does at the provider's page; the address that the browser is sent back to."""
        query = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        assert query["client_id"] == CLIENT_ID and query["response_type"] == "code"
        assert "openid" in query["scope"].split() and query["code_challenge_method"] == "S256"
        code = secrets.token_urlsafe()
        self._codes[code] = query
        return f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state']})}"

    def _configuration(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "token_endpoint_auth_methods_supported": ["client_secret_basic"],
        }

    def _token(self, request: Received) -> Answer:
        form = {name: values[0] for name, values in parse_qs(request.body.decode()).items()}
        expected = base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()
        if request.headers.get("authorization") != f"Basic {expected}":
            return _json_answer({"error": "invalid_client"}, 401)
        asked = self._codes.pop(form.get("code", ""), None)  # a code works once
        challenge = base64.urlsafe_b64encode(hashlib.sha256(form.get("code_verifier", "").encode()).digest())
        if (
            asked is None
            or asked["redirect_uri"] != form["redirect_uri"]
            or asked["code_challenge"] != challenge.decode().rstrip("=")
        ):
            return _json_answer({"error": "invalid_grant"}, 400)
        now = int(self._clock())
        claims = {
            "iss": self.issuer,
            "aud": CLIENT_ID,
            "iat": now,
            "exp": now + 300,
            "nonce": asked["nonce"],
            **self.claims,
        }
        self.change(claims)
        token = jwt.encode({"alg": "RS256", "kid": "one"}, claims, self.signing_key)
        return _json_answer({"id_token": token, "access_token": "x", "token_type": "Bearer"})

    def _json(self, make: Callable[[], Any]) -> Callable[[Received], Answer]:
        return lambda request: _json_answer(make())


def _json_answer(value: Any, status: int = 200) -> Answer:
    return Answer(body=json.dumps(value), status=status, content_type="application/json")
