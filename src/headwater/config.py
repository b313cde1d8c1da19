"""Settings: defaults < headwater.toml < environment (and .env) < command line.

Reads files and the environment when `load_settings` is called, and at no other time. Which settings there are is in
`headwater.settings`.
"""

import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote

from headwater.errors import SettingError, Text
from headwater.language import Language
from headwater.settings import MINUTES_ALLOWED, SETTINGS, Setting, read_minutes
from headwater.wording import NOTHING

TOML_NAME = "headwater.toml"
INTERVAL_VARIABLE = "FETCH_INTERVAL_"  # in the environment
INTERVAL_NAME = "fetch_interval."  # everywhere else
OUR_PREFIXES = ("HEADWATER_", "COLLECTOR_", INTERVAL_VARIABLE)
SECRET_PREFIX = "HEADWATER_SECRET_"  # in the environment: what ${NAME} in a config may stand for  # noqa: S105
FOREIGN_PREFIX = "HEADWATER_TEST_"  # ours, but read by the test suite only

_BY_NAME = {setting.name: setting for setting in SETTINGS}
_BY_ENV = {env: setting for setting in SETTINGS for env in setting.env}


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings, each with where it came from in `origins`."""

    database_url: str | None
    sqlite_durability: str
    data_dir: Path
    collector_tick: float
    collector_concurrency: int
    slow_visits: int
    processes: int
    visit_timeout_seconds: float
    policy: str
    budget_visits_per_day: float
    freshness_minutes: float | None
    freshness_percent: float | None
    backoff: Literal["cadence", "pipeline", "refresh"]
    pause_after_failures: int
    error_after_failures: int
    min_interval_seconds: float
    max_interval_seconds: float
    dormant_interval_seconds: float | None
    max_body_megabytes: int
    max_items: int
    allow_hosts: tuple[str, ...]
    host_concurrency: int
    host_spacing_seconds: float
    retention_days: float
    retention_items: int
    retention_visit_days: float
    pipeline_concurrency: int
    step_limits: tuple[str, ...]
    model_requests_per_day: int
    model_tokens_per_day: int
    smtp_host: str | None
    smtp_port: int
    smtp_security: Literal["starttls", "tls", "none"]
    smtp_user: str | None
    smtp_password: str | None = field(repr=False)
    mail_sender: str | None
    mail_listen: str | None
    mail_domain: str | None
    mail_max_megabytes: int
    contact_url: str | None
    public_url: str | None
    trusted_proxies: tuple[str, ...]
    auth_header: str | None
    registration: Literal["closed", "provider", "open"]
    unsubscribed_sources: Literal["keep", "remove"]
    oidc_issuer: str | None
    oidc_client_id: str | None
    oidc_client_secret: str | None = field(repr=False)
    proxy: str | None
    ca_file: Path | None
    address_rules: Path | None
    password: str | None
    host: str
    port: int
    log_level: str
    log_format: Literal["text", "json"]
    language: Language | None
    # Minutes by type, spelt as the user spelt it, lower case. Of two names of one type, the later one counts.
    fetch_intervals: Mapping[str, float]
    origins: Mapping[str, str]
    # By name without SECRET_PREFIX.
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def database(self) -> str:
        """The database URL in force."""
        return self.database_url or f"sqlite:///{self.data_dir / 'headwater.db'}"


def load_settings(
    *,
    directory: Path | None = None,
    environment: Mapping[str, str] | None = None,
    toml_file: Path | None = None,
    overrides: Mapping[str, Any] | None = None,
    shown_names: Mapping[str, str] | None = None,
) -> Settings:
    """Read every setting from all its places; the later place wins. The first wrong one is a SettingError.

    `shown_names` are what the user wrote for an override, where that is not its name.
    """
    directory = directory or Path.cwd()
    environment = os.environ if environment is None else environment
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    intervals: dict[str, float] = {}
    secrets: dict[str, str] = {}
    for setting in SETTINGS:
        values[setting.name] = setting.default() if callable(setting.default) else setting.default
        origins[setting.name] = "default"

    def take(setting: Setting, raw: Any, shown_name: str, origin: str) -> None:
        try:
            values[setting.name] = setting.read(raw)
        except (ValueError, TypeError, OverflowError):
            # Where nothing in it can part a password from the rest, it is a file's name and helps to be seen.
            shown = "***" if setting.secret and re.search(r"[@=:?\s]", str(raw)) else raw
            raise SettingError(
                "{name} = {value} is not allowed ({origin}): it takes {allowed}",
                name=shown_name,
                value=shown,
                origin=Text(origin),
                allowed=setting.allowed,
            ) from None
        origins[setting.name] = origin

    def take_interval(type_name: str, raw: Any, shown_name: str, origin: str) -> None:
        # Taken out first: the later place is to stand last, whichever of a type's names it used.
        intervals.pop(type_name.lower(), None)
        try:
            intervals[type_name.lower()] = read_minutes(raw)
        except (ValueError, TypeError, OverflowError):
            raise SettingError(
                "{name} = {value} is not allowed ({origin}): it takes {allowed}",
                name=shown_name,
                value=raw,
                origin=Text(origin),
                allowed=MINUTES_ALLOWED,
            ) from None
        origins[INTERVAL_NAME + type_name.lower()] = origin

    for name, raw, origin in _toml_values(toml_file, directory):
        if name.startswith(INTERVAL_NAME):
            take_interval(name.removeprefix(INTERVAL_NAME), raw, name, origin)
        elif name in _BY_NAME:
            take(_BY_NAME[name], raw, name, origin)
        else:
            raise _unknown(name, _BY_NAME, origin)

    for variables, origin in ((read_dotenv(directory / ".env"), ".env"), (environment, "environment")):
        for env in reversed([env for setting in SETTINGS for env in setting.env]):
            # Reversed, so that a setting's first name is taken last and wins over its old ones.
            if variables.get(env):
                take(_BY_ENV[env], variables[env], env, origin)
        for env, raw in variables.items():
            if env.upper().startswith(INTERVAL_VARIABLE) and raw:
                take_interval(env[len(INTERVAL_VARIABLE) :], raw, env, origin)
            elif env.startswith(SECRET_PREFIX):
                secrets[env.removeprefix(SECRET_PREFIX)] = raw
            elif env in _BY_ENV or env.startswith(FOREIGN_PREFIX):
                continue
            elif env.startswith("HEADWATER_") or (env.startswith("COLLECTOR_") and _nearest(env, _BY_ENV)):
                # COLLECTOR_ is a word others use too: only what looks like a slip of ours is refused.
                raise _unknown(env, _BY_ENV, origin)

    for name, raw in (overrides or {}).items():
        if name.startswith(INTERVAL_NAME):
            take_interval(name.removeprefix(INTERVAL_NAME), raw, name, "command line")
        elif name in _BY_NAME:
            take(_BY_NAME[name], raw, (shown_names or {}).get(name, name), "command line")
        else:
            raise _unknown(name, _BY_NAME, "command line")

    return Settings(**values, fetch_intervals=intervals, origins=origins, secrets=secrets)


def _toml_values(toml_file: Path | None, directory: Path) -> Iterable[tuple[str, Any, str]]:
    """The file's keys, dotted: the one named, else headwater.toml in `directory` if there is one."""
    path = toml_file or directory / TOML_NAME
    try:
        text = _read_file(path)
    except (FileNotFoundError, IsADirectoryError) as error:
        if toml_file is None and isinstance(error, FileNotFoundError):
            return
        raise SettingError("cannot read {path}: {problem}", path=path, problem=error.strerror) from None
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingError("cannot read {path}: {problem}", path=path, problem=error) from None
    for name, value in table.items():
        if name == "fetch_interval" and isinstance(value, dict):
            for type_name, minutes in _flatten(value):
                yield INTERVAL_NAME + type_name, minutes, path.name
        else:
            yield name, value, path.name


def _read_file(path: Path) -> str:
    """A settings file's text. That there is none is for the caller to judge; any other trouble is a SettingError."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except (FileNotFoundError, IsADirectoryError):
        raise
    except OSError as error:
        raise SettingError(
            "cannot read {path}: {problem}", path=path, problem=error.strerror or error
        ) from None
    except UnicodeDecodeError:
        raise SettingError("cannot read {path}: {problem}", path=path, problem="not UTF-8") from None


def _flatten(table: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    """`rss.feed = 30` in TOML is a table in a table; types are dotted names."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flatten(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def read_dotenv(path: Path) -> dict[str, str]:
    """KEY=VALUE lines; `export`, comments and quotes as shells have them.

    A missing file is empty, and so is a directory: some keep a virtual environment under this name.
    """
    try:
        text = _read_file(path)
    except (FileNotFoundError, IsADirectoryError):
        return {}
    variables: dict[str, str] = {}
    for line in text.splitlines():
        name, equals, value = line.strip().removeprefix("export ").partition("=")
        name, value = name.strip(), value.strip()
        if not name or name.startswith("#"):
            continue
        if not equals:
            if name.startswith(OUR_PREFIXES):  # what else stands in the file is for others to judge
                raise SettingError("{path}: {name} has no value; write {name}=VALUE", path=path, name=name)
            continue
        if quoted := re.fullmatch(r"""(["'])(.*?)\1(\s+#.*)?""", value):
            value = quoted[2]
        else:
            value = re.split(r"\s#", value, maxsplit=1)[0].rstrip()
        variables[name] = value
    return variables


def _nearest(name: str, known: Iterable[str]) -> str | None:
    # Compared without what all have in common, which would make any two look alike.
    endings = {_ending(each): each for each in known}
    near = get_close_matches(_ending(name), list(endings), n=1, cutoff=0.75)
    return endings[near[0]] if near else None


def _ending(name: str) -> str:
    return name.removeprefix("HEADWATER_").removeprefix("COLLECTOR_")


def _unknown(name: str, known: Iterable[str], origin: str) -> SettingError:
    near = _nearest(name, known)
    if near:
        return SettingError(
            "there is no setting {name} ({origin}); did you mean {near}?",
            name=name,
            origin=Text(origin),
            near=near,
        )
    return SettingError(
        "there is no setting {name} ({origin}); `headwater config` lists them all",
        name=name,
        origin=Text(origin),
    )


def shown_value(setting: Setting, value: Any) -> Any:
    """A setting's value as it may be shown: secrets are starred out, in addresses only their passwords."""
    if setting.secret and isinstance(value, str):
        return without_password(value) if "://" in value else "***"
    if isinstance(value, tuple):
        return list(value)
    return str(value) if isinstance(value, Path) else value


def tell_value(value: Any) -> str:
    """A shown value in words, for people."""
    if value is None or value in ("", []):
        return NOTHING
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) and abs(value) < 1_000_000 else str(value)


_SECRET_KEY = re.compile(r"pass|pwd|secret|key|token|auth|cred", re.IGNORECASE)
_PORT_AND_MORE = re.compile(r"\d*[/?]")  # then the "user" may be a host, and the @ stand in a parameter


def without_password(url: str) -> str:
    """`url` with its secrets starred out, for messages; where it can be read in two ways, all but its scheme.

    Database URLs are not web addresses: `/`, `?`, `#` and `[` may stand in a password as they are.
    """
    scheme, slashes, rest = url.partition("://")
    if not slashes:
        return "***" if re.search(r"[@=:?]", url) else url
    shown = f"{scheme}://"
    if "@" in rest and not rest.startswith("/"):  # with a slash first there is no host and no user
        user_and_password, _, rest = rest.rpartition("@")
        user, colon, password = user_and_password.partition(":")
        doubtful = re.search(r"[/?#@\[\]]", user) or "@" in password or _PORT_AND_MORE.match(password)
        if doubtful:
            return f"{shown}***"
        shown += f"{user}:***@" if colon else f"{user}@"
    place, question, query = rest.partition("?")
    parts = (_without_secret(part) for part in query.split("&"))
    return f"{shown}{place}{question}{'&'.join(parts)}"


def _without_secret(parameter: str) -> str:
    name, equals, value = parameter.partition("=")
    return f"{name}=***" if value and _SECRET_KEY.search(unquote(name)) else f"{name}{equals}{value}"
