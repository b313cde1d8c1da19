"""Settings come from four places, the later wins, and a wrong one is one clear line."""

from pathlib import Path
from typing import Any

import pytest

from headwater.collectors.types import intervals_by_type
from headwater.config import Settings, load_settings, read_dotenv, without_password
from headwater.errors import SettingError, StoreError
from headwater.settings import SETTINGS
from headwater.store.core.database import Store


def load(
    directory: Path,
    environment: dict[str, str] | None = None,
    *,
    toml: str | None = None,
    dotenv: str | None = None,
    **overrides: Any,
) -> Settings:
    if toml is not None:
        (directory / "headwater.toml").write_text(toml)
    if dotenv is not None:
        (directory / ".env").write_text(dotenv)
    return load_settings(directory=directory, environment=environment or {}, overrides=overrides)


def test_defaults(tmp_path: Path) -> None:
    settings = load(tmp_path)
    assert settings.collector_tick == 60
    assert settings.collector_concurrency == 20
    assert settings.visit_timeout_seconds == 300
    assert settings.database.startswith("sqlite:///")
    assert set(settings.origins.values()) == {"default"}


def test_the_later_place_wins(tmp_path: Path) -> None:
    toml, dotenv = "port = 1001", "HEADWATER_PORT=1002"
    environment = {"HEADWATER_PORT": "1003"}
    seen = [
        load(tmp_path),
        load(tmp_path, toml=toml),
        load(tmp_path, toml=toml, dotenv=dotenv),
        load(tmp_path, environment, toml=toml, dotenv=dotenv),
        load(tmp_path, environment, toml=toml, dotenv=dotenv, port="1004"),
    ]
    assert [settings.port for settings in seen] == [8626, 1001, 1002, 1003, 1004]
    assert [settings.origins["port"] for settings in seen] == [
        "default",
        "headwater.toml",
        ".env",
        "environment",
        "command line",
    ]


def test_collector_interval_is_the_old_name_of_collector_tick(tmp_path: Path) -> None:
    assert load(tmp_path, {"COLLECTOR_INTERVAL": "300"}).collector_tick == 300
    assert load(tmp_path, {"COLLECTOR_INTERVAL": "300", "COLLECTOR_TICK": "30"}).collector_tick == 30


def test_fetch_intervals_from_everywhere(tmp_path: Path) -> None:
    settings = load(
        tmp_path,
        {"FETCH_INTERVAL_HACKERNEWS": "30"},
        toml="[fetch_interval]\nsitemap = 10\nrss.feed = 20",
        dotenv="FETCH_INTERVAL_RSS=120",
    )
    assert settings.fetch_intervals == {"sitemap": 10, "rss.feed": 20, "rss": 120, "hackernews": 30}
    assert settings.origins["fetch_interval.hackernews"] == "environment"


def test_of_two_names_of_one_type_the_later_place_wins(tmp_path: Path) -> None:
    toml, dotenv, environment = (
        "fetch_interval.rss = 5",
        "FETCH_INTERVAL_RSS_FEED=10",
        {"FETCH_INTERVAL_RSS": "20"},
    )
    for settings, minutes in (
        (load(tmp_path, toml=toml), 5),
        (load(tmp_path, toml=toml, dotenv=dotenv), 10),
        (load(tmp_path, environment, toml=toml, dotenv=dotenv), 20),
        (load(tmp_path, environment, toml=toml, dotenv=dotenv, **{"fetch_interval.rss.feed": 40}), 40),
    ):
        assert intervals_by_type(settings.fetch_intervals, {})["rss.feed"] == minutes


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        (
            {"COLLECTOR_TICK": "soon"},
            "COLLECTOR_TICK = soon is not allowed (environment): it takes a number from",
        ),
        (
            {"COLLECTOR_CONCURRENCY": "0"},
            "COLLECTOR_CONCURRENCY = 0 is not allowed (environment): it takes a whole",
        ),
        ({"COLLECTOR_CONCURRENCY": "2.5"}, "COLLECTOR_CONCURRENCY = 2.5 is not allowed"),
        ({"COLLECTOR_TICK": "nan"}, "COLLECTOR_TICK = nan is not allowed"),
        ({"HEADWATER_LOG_LEVEL": "loud"}, "it takes one of debug, info, warning, error"),
        ({"HEADWATER_HOST": "127.999.1.1"}, "it takes an address of this machine"),
        ({"COLLECTOR_CONCURENCY": "3"}, "did you mean COLLECTOR_CONCURRENCY?"),
        ({"HEADWATER_FOO": "1"}, "`headwater config` lists them all"),
        ({"HEADWATER_HOST": "everywhere"}, "it takes an address of this machine"),
        (
            {"FETCH_INTERVAL_RSS": "never"},
            "FETCH_INTERVAL_RSS = never is not allowed (environment): it takes minutes",
        ),
        (
            {"HEADWATER_DATABSE_URL": "x"},
            "no setting HEADWATER_DATABSE_URL (environment); did you mean HEADWATER_DATABASE",
        ),
        ({"HEADWATER_DATABASE_URL": "x.db"}, "HEADWATER_DATABASE_URL = x.db is not allowed"),
        ({"HEADWATER_DATABASE_URL": "mysql://u:secret@h/d"}, "HEADWATER_DATABASE_URL = *** is not allowed"),
        ({"HEADWATER_DATABASE_URL": "postgresql://u:sec@ret@h/d"}, "with %40 for an @ in a password"),
    ],
)
def test_a_wrong_value_names_setting_value_and_what_is_allowed(
    tmp_path: Path, environment: dict[str, str], message: str
) -> None:
    with pytest.raises(SettingError) as caught:
        load(tmp_path, environment)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_wrong_toml(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"cannot read .*headwater\.toml"):
        load(tmp_path, toml="port = ")
    with pytest.raises(SettingError, match=r"no setting prot \(headwater.toml\); did you mean port"):
        load(tmp_path, toml="prot = 1")
    with pytest.raises(SettingError, match="port = True is not allowed"):
        load(tmp_path, toml="port = true")


def test_a_named_settings_file_must_exist(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"cannot read .*missing\.toml"):
        load_settings(directory=tmp_path, environment={}, toml_file=tmp_path / "missing.toml")


def test_dotenv_forms(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(
        "# a comment\nexport A=1\nB = two words # said\nC='# kept'\nD=\"x=y\"\nnonsense\nE=\n",
        encoding="utf-8",
    )
    assert read_dotenv(tmp_path / ".env") == {"A": "1", "B": "two words", "C": "# kept", "D": "x=y", "E": ""}
    assert read_dotenv(tmp_path / "none") == {}


def test_a_settings_file_that_cannot_be_read_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".env").write_bytes("HEADWATER_CONTACT_URL=https://café.example".encode("latin-1"))
    with pytest.raises(SettingError, match=r"cannot read .*\.env: not UTF-8"):
        load(tmp_path)

    def refuse(path: Path, **options: str) -> str:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_text", refuse)
    with pytest.raises(SettingError, match=r"cannot read .*\.env: Permission denied"):
        read_dotenv(tmp_path / ".env")
    with pytest.raises(SettingError, match=r"cannot read .*\.toml: Permission denied"):
        load(tmp_path)


def test_a_directory_named_dotenv_and_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / ".env").mkdir()
    assert load(tmp_path).port == 8626
    (tmp_path / "with-mark").write_text("HEADWATER_PORT=1", encoding="utf-8-sig")
    assert read_dotenv(tmp_path / "with-mark") == {"HEADWATER_PORT": "1"}


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ann:secret@db:5432/x", "postgresql://ann:***@db:5432/x"),
        ("postgresql://ann:123@db:5432/x?a=1", "postgresql://ann:***@db:5432/x?a=1"),
        ("postgresql://ann:s#ecret@db/x", "postgresql://ann:***@db/x"),
        ("postgresql://ann:s?ecret@db/x", "postgresql://ann:***@db/x"),
        ("postgresql://ann:s/ecret@db/x", "postgresql://ann:***@db/x"),
        ("postgresql://ann:s[ecret@[::1]:5432/x", "postgresql://ann:***@[::1]:5432/x"),
        ("postgresql://:secret@db/x", "postgresql://:***@db/x"),
        ("postgresql://ann:sec@ret@db/x", "postgresql://***"),
        ("postgresql://ann:12/secret@db/x", "postgresql://***"),
        ("postgresql://db:5432/x?password=sec@ret", "postgresql://***"),
        ("postgresql://db/x?password=sec@ret", "postgresql://***"),
        ("postgresql://[::1]:5432/x?password=sec@ret", "postgresql://***"),
        ("postgresql:///x?host=/run&password=sec@ret", "postgresql:///x?host=/run&password=***"),
        (
            "postgresql://ann@db/x?p%61ssword=secret&sslmode=require&sslpassword=secret",
            "postgresql://ann@db/x?p%61ssword=***&sslmode=require&sslpassword=***",
        ),
        ("postgresql://[db/x", "postgresql://[db/x"),
        ("sqlite:///file.db", "sqlite:///file.db"),
        ("sqlite:////home/ann@work/a:b.db", "sqlite:////home/ann@work/a:b.db"),
        ("http://ann:secret@proxy:8080", "http://ann:***@proxy:8080"),
        ("ann:secret@db/x", "***"),
        ("nonsense", "nonsense"),
        ("", ""),
    ],
)
def test_passwords_are_not_shown(url: str, shown: str) -> None:
    assert without_password(url) == shown


@pytest.mark.parametrize("password", ["s#ecret", "s?ecret", "s/ecret", "s[ecret", "s]ecret", "1/ecret"])
def test_no_piece_of_a_password_is_in_a_database_error(password: str) -> None:
    for url in (
        f"postgresql://ann:{password}@127.0.0.1:9/x",
        f"postgresql://127.0.0.1:9/x?password={password}",
    ):
        assert "cret" not in without_password(url)
        try:
            with Store(url) as store, store.reading():
                pass
        except StoreError as error:
            assert "cret" not in str(error)


def test_every_setting_is_a_field_and_the_reverse(tmp_path: Path) -> None:
    fields = set(Settings.__dataclass_fields__) - {"fetch_intervals", "origins", "secrets"}
    assert fields == {setting.name for setting in SETTINGS}


def test_a_dotenv_line_without_a_value_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="HEADWATER_PORT has no value; write HEADWATER_PORT=VALUE"):
        load(tmp_path, dotenv="HEADWATER_PORT")
    assert load(tmp_path, dotenv="OTHER").port == 8626


def test_a_comment_may_follow_a_quoted_value(tmp_path: Path) -> None:
    assert load(tmp_path, dotenv='HEADWATER_PORT="9000" # c').port == 9000


def test_names_of_others_are_left_alone(tmp_path: Path) -> None:
    load(tmp_path, {"COLLECTOR_ENDPOINT": "x", "COLLECTOR_OTLP_ENABLED": "true"})


def test_a_language_may_be_written_as_a_locale(tmp_path: Path) -> None:
    assert load(tmp_path, {"HEADWATER_LANGUAGE": "zh_CN"}).language == "zh"
    assert load(tmp_path, {"HEADWATER_LANGUAGE": "en-US"}).language == "en"
    with pytest.raises(SettingError, match="one of en, zh"):
        load(tmp_path, {"HEADWATER_LANGUAGE": "fr"})
