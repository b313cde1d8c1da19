"""Secrets by reference: filled in for a visit, from variables meant for it and no others, and shown nowhere."""

from pathlib import Path

import pytest
from pydantic import Field

from headwater.collectors.base import SECRET, SourceConfig, shown_config
from headwater.collectors.secrets import fill_references, hide_secrets
from headwater.config import load_settings
from headwater.errors import FailureKind, VisitError


class TheirConfig(SourceConfig):
    """A collector's own keys."""

    api_key: str = ""
    pin: str = Field(default="", json_schema_extra=SECRET)
    note: str = ""


def test_every_secret_key_of_every_type_may_refer() -> None:
    config = TheirConfig(
        headers={"Authorization": "Bearer ${TOKEN}", "X": "plain"},
        cookies={"session": "${COOKIE}"},
        password="${PASSWORD}",
        bearer_token="${TOKEN}",
        proxy="http://me:${PASSWORD}@proxy.example",
        api_key="${TOKEN}-${PASSWORD}",
        pin="${HEADWATER_SECRET_TOKEN}",
        note="${TOKEN}",
        user="${TOKEN}",
    )
    filled = fill_references(config, {"TOKEN": "t0ken", "COOKIE": "c00kie", "PASSWORD": "pa$$"})
    assert filled.headers == {"Authorization": "Bearer t0ken", "X": "plain"}
    assert (filled.cookies, filled.password, filled.bearer_token) == ({"session": "c00kie"}, "pa$$", "t0ken")
    assert (filled.proxy, filled.api_key, filled.pin) == (
        "http://me:pa$$@proxy.example",
        "t0ken-pa$$",
        "t0ken",
    )
    assert (filled.note, filled.user) == ("${TOKEN}", "${TOKEN}"), "what is shown refers to nothing"
    assert config.password == "${PASSWORD}", "what is stored is the reference"


def test_what_looks_like_a_reference_but_is_none_stays() -> None:
    config = SourceConfig(password="pa$s{w}$rd ${} $NAME ${a b}")
    assert fill_references(config, {}) is config


@pytest.mark.parametrize("secrets", [{}, {"NAME": ""}, {"OTHER": "x"}])
def test_a_missing_variable_is_an_error_that_names_it(secrets: dict[str, str]) -> None:
    with pytest.raises(VisitError) as caught:
        fill_references(SourceConfig(headers={"X-Key": "${NAME}"}), secrets)
    assert caught.value.kind is FailureKind.UNAUTHORIZED
    assert "HEADWATER_SECRET_NAME in headers.X-Key" in str(caught.value)


def test_only_variables_meant_for_it_can_be_referred_to(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("HEADWATER_SECRET_FILE=in a file\nHEADWATER_SECRET_BOTH=file\n")
    settings = load_settings(
        directory=tmp_path,
        environment={
            "HEADWATER_DATABASE_URL": "postgresql://me:hush@db.example/x",
            "AWS_SECRET_ACCESS_KEY": "hush",
            "HEADWATER_SECRET_TOKEN": "t0ken",
            "HEADWATER_SECRET_BOTH": "environment",
        },
    )
    assert settings.secrets == {"FILE": "in a file", "BOTH": "environment", "TOKEN": "t0ken"}
    assert "t0ken" not in repr(settings)
    for name in ("HEADWATER_DATABASE_URL", "AWS_SECRET_ACCESS_KEY", "PATH"):
        with pytest.raises(VisitError):
            fill_references(SourceConfig(password=f"${{{name}}}"), settings.secrets)


def test_a_reference_may_be_seen_a_secret_may_not() -> None:
    shown = shown_config({"password": "${NAME}", "bearer_token": "x${NAME}", "headers": {"X": "${NAME}"}})
    assert shown == {"password": "${NAME}", "bearer_token": "***", "headers": "***"}


def test_secrets_are_hidden_in_every_spelling() -> None:
    secrets = {"A": "a b/c+d", "SHORT": "x", "LONGER": "a b/c+d-and-more"}
    text = "a b/c+d a%20b/c%2Bd a%20b%2Fc%2Bd a+b%2Fc%2Bd a b/c+d-and-more x"
    assert hide_secrets(text, secrets) == "*** *** *** *** *** x"
