"""Settings: defaults < headwater.toml < environment (and .env) < command line.

`SETTINGS` is the one table from which the loader, `headwater config`, `.env.example` and the reference in
docs/ are made. Reads files and the environment when `load_settings` is called, and at no other time.
"""

import ipaddress
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote

from headwater.errors import SettingError, Text
from headwater.language import Language

TOML_NAME = "headwater.toml"
INTERVAL_VARIABLE = "FETCH_INTERVAL_"  # in the environment
INTERVAL_NAME = "fetch_interval."  # everywhere else
OUR_PREFIXES = ("HEADWATER_", "COLLECTOR_", INTERVAL_VARIABLE)
SECRET_PREFIX = "HEADWATER_SECRET_"  # in the environment: what ${NAME} in a config may stand for  # noqa: S105
FOREIGN_PREFIX = "HEADWATER_TEST_"  # ours, but read by the test suite only


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting. `read` turns text or a TOML value into the value, or raises ValueError."""

    name: str
    env: tuple[str, ...]
    default: Any
    read: Callable[[Any], Any]
    allowed: Text
    help: str
    secret: bool = False


def _whole(low: int, high: int) -> tuple[Callable[[Any], int], Text]:
    def read(value: Any) -> int:
        if (isinstance(value, bool | float) and value != int(value)) or isinstance(value, bool):
            raise ValueError
        number = int(value)
        if not low <= number <= high:
            raise ValueError
        return number

    return read, Text("a whole number from {low} to {high}", low=low, high=high)


def _number(low: float, high: float) -> tuple[Callable[[Any], float], Text]:
    def read(value: Any) -> float:
        if isinstance(value, bool):
            raise ValueError  # noqa: TRY004 - the loader turns every ValueError into the same clear line
        number = float(value)
        if not low <= number <= high:
            raise ValueError
        return number

    return read, Text("a number from {low:g} to {high:g}", low=low, high=high)


def _choice(*choices: str) -> tuple[Callable[[Any], str], Text]:
    def read(value: Any) -> str:
        if value not in choices:
            raise ValueError
        return str(value)

    return read, Text("one of {choices}", choices=", ".join(choices))


def _text(pattern: str, allowed: str) -> tuple[Callable[[Any], str | None], Text]:
    def read(value: Any) -> str | None:
        if not isinstance(value, str) or (value and not re.fullmatch(pattern, value)):
            raise ValueError
        return value or None

    return read, Text(allowed)


def _language(value: Any) -> str:
    language = re.split(r"[-_.]", str(value))[0].lower()  # zh_CN.UTF-8, as locales are written
    if language not in ("en", "zh"):
        raise ValueError
    return language


def _names(value: Any) -> tuple[str, ...]:
    names = re.split(r"[,\s]+", value.strip()) if isinstance(value, str) else list(value)
    if not all(isinstance(name, str) for name in names):
        raise ValueError
    return tuple(name for name in names if name)


def _address(value: Any) -> str:
    return value if value == "localhost" else str(ipaddress.ip_address(str(value)))


def _limits(value: Any) -> tuple[str, ...]:
    limits = _names(value)
    if not all(re.fullmatch(r"[a-z][a-z0-9_.]*=[1-9]\d{0,8}(/(s|min|h|d))?", limit) for limit in limits):
        raise ValueError
    return limits


def _path(value: Any) -> Path:
    if not isinstance(value, str) or not value:
        raise ValueError
    return Path(value).expanduser()


def _default_data_dir() -> Path:
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "headwater"


SETTINGS: tuple[Setting, ...] = (
    Setting(
        "database_url",
        ("HEADWATER_DATABASE_URL",),
        None,
        # One @ at most: with two, a part of the password is taken for the host, and the driver names hosts.
        *_text(
            r"(postgresql(\+psycopg)?|postgres)://(?!.*@.*@).+|sqlite:///.+",
            "postgresql://… (with %40 for an @ in a password) or sqlite:///FILE",
        ),
        "The database. Unset: a SQLite file named headwater.db in the data directory.",
        secret=True,
    ),
    Setting(
        "data_dir",
        ("HEADWATER_DATA_DIR",),
        _default_data_dir,
        _path,
        Text("a directory"),
        "Where Headwater keeps its files.",
    ),
    Setting(
        "collector_tick",
        ("COLLECTOR_TICK", "COLLECTOR_INTERVAL"),
        60.0,
        *_number(0.05, 86_400),
        "Seconds after which the loop looks for due sources at the latest. Old name: COLLECTOR_INTERVAL.",
    ),
    Setting(
        "collector_concurrency",
        ("COLLECTOR_CONCURRENCY",),
        20,
        *_whole(1, 1_000),
        "How many sources are visited at once.",
    ),
    Setting(
        "visit_timeout_seconds",
        ("HEADWATER_VISIT_TIMEOUT_SECONDS",),
        300.0,
        *_number(1, 3_600),
        "The longest one visit may take in all.",
    ),
    Setting(
        "policy",
        ("HEADWATER_POLICY",),
        "adaptive",
        *_choice("adaptive", "cadence", "interval"),
        "How visits are planned, for every source that has no policy of its own.",
    ),
    Setting(
        "budget_visits_per_day",
        ("HEADWATER_BUDGET_VISITS_PER_DAY",),
        6.0,
        *_number(0.01, 288),
        "What the adaptive policy may spend: visits a source and day, on average over all sources.",
    ),
    Setting(
        "freshness_minutes",
        ("HEADWATER_FRESHNESS_MINUTES",),
        None,
        *_number(0.1, 10_080),
        "The mean delay the adaptive policy aims at, instead of a budget.",
    ),
    Setting(
        "backoff",
        ("HEADWATER_BACKOFF",),
        "cadence",
        *_choice("cadence", "pipeline", "refresh"),
        "How long a failing source is left alone: which table of waits.",
    ),
    Setting(
        "pause_after_failures",
        ("HEADWATER_PAUSE_AFTER_FAILURES",),
        5,
        *_whole(1, 1_000),
        "Failures in a row after which a source is paused and tried once a day.",
    ),
    Setting(
        "error_after_failures",
        ("HEADWATER_ERROR_AFTER_FAILURES",),
        10,
        *_whole(1, 1_000),
        "Failures in a row after which a source is in error and tried once a week.",
    ),
    Setting(
        "min_interval_seconds",
        ("HEADWATER_MIN_INTERVAL_SECONDS",),
        300.0,
        *_number(0.1, 86_400),
        "The adaptive and cadence policies plan no visit sooner than this after the last.",
    ),
    Setting(
        "max_interval_seconds",
        ("HEADWATER_MAX_INTERVAL_SECONDS",),
        86_400.0,
        *_number(60, 604_800),
        "The adaptive and cadence policies plan no visit later than this, unless the publisher asks for it.",
    ),
    Setting(
        "max_body_megabytes",
        ("HEADWATER_MAX_BODY_MEGABYTES",),
        20,
        *_whole(1, 1_024),
        "The largest answer that is read, after decompression.",
    ),
    Setting(
        "allow_hosts",
        ("HEADWATER_ALLOW_HOSTS",),
        (),
        _names,
        Text("host names, host:port or networks, separated by commas"),
        "Private addresses that may be visited all the same. Everything private is refused by default.",
    ),
    Setting(
        "host_concurrency",
        ("HEADWATER_HOST_CONCURRENCY",),
        2,
        *_whole(1, 100),
        "How many requests one host gets at once.",
    ),
    Setting(
        "host_spacing_seconds",
        ("HEADWATER_HOST_SPACING_SECONDS",),
        0.5,
        *_number(0, 3_600),
        "The time between two requests to one host.",
    ),
    Setting(
        "retention_days",
        ("HEADWATER_RETENTION_DAYS",),
        0.0,
        *_number(0, 36_500),
        "Days items are kept after they were first seen, unless their source says otherwise; 0 keeps them for ever.",
    ),
    Setting(
        "retention_items",
        ("HEADWATER_RETENTION_ITEMS",),
        0,
        *_whole(0, 1_000_000_000),
        "Items that are kept of a source, the newest, unless it says otherwise; 0 keeps all.",
    ),
    Setting(
        "retention_visit_days",
        ("HEADWATER_RETENTION_VISIT_DAYS",),
        30.0,
        *_number(2, 36_500),
        "Days the record of every single visit is kept; their sums by the hour stay.",
    ),
    Setting(
        "pipeline_concurrency",
        ("HEADWATER_PIPELINE_CONCURRENCY",),
        10,
        *_whole(0, 1_000),
        "How many pipeline steps one process runs at once; 0: `collect --loop` and `serve` run none.",
    ),
    Setting(
        "step_limits",
        ("HEADWATER_STEP_LIMITS",),
        (),
        _limits,
        Text("TYPE=NUMBER or TYPE=NUMBER/s, /min, /h or /d, separated by commas"),
        "How many steps of a type one worker runs at once, or how many may start in a time on all workers together.",
    ),
    Setting(
        "contact_url",
        ("HEADWATER_CONTACT_URL",),
        None,
        *_text(r"(https?://|mailto:).+", "an http, https or mailto address"),
        "Where publishers can reach you; part of the User-Agent.",
    ),
    Setting(
        "public_url",
        ("HEADWATER_PUBLIC_URL",),
        None,
        *_text(r"https?://[^\s?#]+", "http://… or https://…, without ? and #"),
        "The address under which the world reaches this server: outlets say it, hubs push to it.",
    ),
    Setting(
        "proxy",
        ("HEADWATER_PROXY",),
        None,
        *_text(r"https?://.+", "http://… or https://…"),
        "An HTTP proxy for all requests.",
        secret=True,
    ),
    Setting(
        "password",
        ("HEADWATER_PASSWORD",),
        None,
        *_text(r".{8,200}", "8 to 200 characters"),
        "Opens the dashboard, besides API keys; when it is set, this machine's own visitors sign in too.",
        secret=True,
    ),
    Setting(
        "host",
        ("HEADWATER_HOST",),
        "127.0.0.1",
        _address,
        Text("an address of this machine, like 127.0.0.1, 0.0.0.0 or ::1"),
        "The address the dashboard and the API listen on. Any but a loopback address needs an API key.",
    ),
    Setting(
        "port",
        ("HEADWATER_PORT",),
        8626,
        *_whole(0, 65_535),
        "The port the dashboard listens on; 0 takes a free one.",
    ),
    Setting(
        "log_level",
        ("HEADWATER_LOG_LEVEL",),
        "info",
        *_choice("debug", "info", "warning", "error"),
        "How much is logged.",
    ),
    Setting(
        "log_format",
        ("HEADWATER_LOG_FORMAT",),
        "text",
        *_choice("text", "json"),
        "How log lines are written: for people, or each as a JSON object.",
    ),
    Setting(
        "language",
        ("HEADWATER_LANGUAGE",),
        None,
        _language,
        Text("one of {choices}", choices="en, zh"),
        "The language of messages on the terminal. Unset: the terminal's own.",
    ),
)

_BY_NAME = {setting.name: setting for setting in SETTINGS}
_BY_ENV = {env: setting for setting in SETTINGS for env in setting.env}
_read_minutes, _ = _number(0.01, 525_600)
_minutes_allowed = Text("minutes, from {low:g} to {high:g}", low=0.01, high=525_600)


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings, each with where it came from in `origins`."""

    database_url: str | None
    data_dir: Path
    collector_tick: float
    collector_concurrency: int
    visit_timeout_seconds: float
    policy: str
    budget_visits_per_day: float
    freshness_minutes: float | None
    backoff: Literal["cadence", "pipeline", "refresh"]
    pause_after_failures: int
    error_after_failures: int
    min_interval_seconds: float
    max_interval_seconds: float
    max_body_megabytes: int
    allow_hosts: tuple[str, ...]
    host_concurrency: int
    host_spacing_seconds: float
    retention_days: float
    retention_items: int
    retention_visit_days: float
    pipeline_concurrency: int
    step_limits: tuple[str, ...]
    contact_url: str | None
    public_url: str | None
    proxy: str | None
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

    @property
    def longest_lease_seconds(self) -> float:
        """No source is claimed for longer than this."""
        return 2 * self.visit_timeout_seconds + 10


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
            intervals[type_name.lower()] = _read_minutes(raw)
        except (ValueError, TypeError, OverflowError):
            raise SettingError(
                "{name} = {value} is not allowed ({origin}): it takes {allowed}",
                name=shown_name,
                value=raw,
                origin=Text(origin),
                allowed=_minutes_allowed,
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
