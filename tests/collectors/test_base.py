"""A source's config: text stays text, and no secret is ever shown."""

from typing import Any, Self

import pytest
from pydantic import Field, model_validator

from headwater.collectors.base import SECRET, SourceConfig, is_secret, read_config, read_text, shown_config
from headwater.collectors.types import config_model_of
from headwater.errors import InputError


class TheirConfig(SourceConfig):
    """A collector's own keys."""

    pin: str = Field(default="", json_schema_extra=SECRET)
    key_count: int = Field(default=0, json_schema_extra={"secret": False})
    api_key: str = ""
    limits: dict[str, int] = Field(default_factory=dict)

    @model_validator(mode="after")
    def check(self) -> Self:
        if self.limits and not self.pin:
            raise ValueError("limits need a pin")
        return self


def test_secrets_are_starred_by_mark_and_by_name() -> None:
    config: dict[str, Any] = {
        "user": "ann",
        "password": "hush",
        "headers": {"X": "hush"},
        "cookies": {},
        "bearer_token": None,
        "proxy": "http://ann:hush@proxy",
        "pin": "hush",
        "key_count": 3,
        "api_key": "hush",
        "someSecretThing": "hush",
        "Authorization": "hush",
        "nested": {"access_token": "hush", "page": 1, "list": [{"passphrase": "hush"}]},
        "author": "Ann",
        "keywords": ["a"],
    }
    shown = shown_config(config, TheirConfig)
    assert "hush" not in str(shown)
    assert (shown["user"], shown["key_count"], shown["author"], shown["keywords"]) == ("ann", 3, "Ann", ["a"])
    assert shown["nested"] == {"access_token": "***", "page": 1, "list": [{"passphrase": "***"}]}
    assert (shown["cookies"], shown["bearer_token"]) == ({}, None), "that there is none may be seen"


def test_every_key_of_ours_that_can_hold_a_secret_is_marked() -> None:
    assert [key for key in SourceConfig.model_fields if is_secret(key)] == [
        "headers",
        "cookies",
        "password",
        "bearer_token",
        "proxy",
    ]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"password": ["hush"]}, "password = *** is wrong"),
        ({"headers": {"X-Key": 77_777}}, "headers.X-Key = *** is wrong"),
        ({"pin": 77_777}, "pin = *** is wrong"),
        ({"limits": {"token": "hush"}}, "limits.token = *** is wrong"),
        ({"limits": {"day": 1}, "api_key": "hush"}, "* = *** is wrong"),
        ({"fetch_interval_minutes": "often"}, "fetch_interval_minutes = often is wrong"),
        ({"fetch_interval_minutes": {"token": "hush"}}, "fetch_interval_minutes = {'token': '***'} is wrong"),
    ],
)
def test_an_error_never_shows_a_secret(config: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_config(TheirConfig, config, "their.type")
    assert message in str(caught.value)
    assert "hush" not in str(caught.value)
    assert "77777" not in str(caught.value)


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("password", "12345", "12345"),
        ("password", "true", "true"),
        ("password", '"quoted"', '"quoted"'),
        ("user", "null", "null"),
        ("fetch_interval_minutes", "5", 5),
        ("headers", '{"X": "1"}', {"X": "1"}),
        ("headers", "nonsense", "nonsense"),
        ("unknown", "5", 5),
    ],
)
def test_text_stays_text_where_a_key_takes_text(key: str, text: str, value: object) -> None:
    assert read_text(SourceConfig, key, text) == value


def test_unknown_type_has_the_keys_of_every_source() -> None:
    assert config_model_of("brand.new") is SourceConfig
    assert issubclass(config_model_of("api.reddit"), SourceConfig)
