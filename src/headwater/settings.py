"""Every setting: its names, its default, what it may be, and what it is for.

`SETTINGS` is the one table from which the loader, `headwater config`, `.env.example` and the reference in docs/ come.
"""

import ipaddress
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from headwater.errors import Text


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


def _networks(value: Any) -> tuple[str, ...]:
    return tuple(str(ipaddress.ip_network(name, strict=False)) for name in _names(value))


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
        "sqlite_durability",
        ("HEADWATER_SQLITE_DURABILITY",),
        "normal",
        *_choice("normal", "full"),
        "What SQLite does at each commit. normal: a power failure may undo the last moments, damages nothing, and what"
        " was undone is collected again. full: wait for the disk, so that nothing committed is lost.",
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
        "slow_visits",
        ("HEADWATER_SLOW_VISITS",),
        60,
        *_whole(0, 1_000),
        "How many visits that take longer than a second may be under way beside those: they hold up no others.",
    ),
    Setting(
        "processes",
        ("HEADWATER_PROCESSES",),
        1,
        *_whole(0, 64),
        "Processes that collect. `serve` starts them beside the dashboard's; with 0 the dashboard's process collects, "
        "too, which saves some 80 MB of memory. `collect --loop` starts them if there are to be two or more.",
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
        "How visits are planned, for sources without their own policy.",
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
        "freshness_percent",
        ("HEADWATER_FRESHNESS_PERCENT",),
        None,
        *_number(50, 99),
        "The share of items to be found within freshness_minutes, instead of the mean.",
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
        "Failures in a row after which a failing source is visited once a day.",
    ),
    Setting(
        "error_after_failures",
        ("HEADWATER_ERROR_AFTER_FAILURES",),
        10,
        *_whole(1, 1_000),
        "Failures in a row after which a failing source is visited once a week.",
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
        "dormant_interval_seconds",
        ("HEADWATER_DORMANT_INTERVAL_SECONDS",),
        None,
        *_number(60, 604_800),
        "A source without new items for long is visited after a tenth of that time, but no later than this."
        " Unset: max_interval_seconds applies to it too.",
    ),
    Setting(
        "max_body_megabytes",
        ("HEADWATER_MAX_BODY_MEGABYTES",),
        20,
        *_whole(1, 1_024),
        "The largest answer that is read, after decompression.",
    ),
    Setting(
        "max_items",
        ("HEADWATER_MAX_ITEMS",),
        5_000,
        *_whole(1, 20_000),
        "The most items that are read of one document, the first; the visit says how many were left out.",
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
        "model_requests_per_day",
        ("HEADWATER_MODEL_REQUESTS_PER_DAY",),
        0,
        *_whole(0, 1_000_000_000),
        "Requests to language models in a day (UTC), of all pipelines and digests together; 0: no limit.",
    ),
    Setting(
        "model_tokens_per_day",
        ("HEADWATER_MODEL_TOKENS_PER_DAY",),
        0,
        *_whole(0, 10**15),
        "Tokens of language models in a day (UTC), of all pipelines and digests together; 0: no limit.",
    ),
    Setting(
        "smtp_host",
        ("HEADWATER_SMTP_HOST",),
        None,
        *_text(r"[^\s/]+", "a host name"),
        "The default mail server of digests, alerts and pipelines.",
    ),
    Setting(
        "smtp_port",
        ("HEADWATER_SMTP_PORT",),
        587,
        *_whole(1, 65_535),
        "The mail server's port.",
    ),
    Setting(
        "smtp_security",
        ("HEADWATER_SMTP_SECURITY",),
        "starttls",
        *_choice("starttls", "tls", "none"),
        "How the connection to the mail server is secured.",
    ),
    Setting(
        "smtp_user",
        ("HEADWATER_SMTP_USER",),
        None,
        *_text(r".+", "a user name"),
        "The user name at the mail server.",
    ),
    Setting(
        "smtp_password",
        ("HEADWATER_SMTP_PASSWORD",),
        None,
        *_text(r".+", "a password"),
        "The password at the mail server.",
        secret=True,
    ),
    Setting(
        "mail_sender",
        ("HEADWATER_MAIL_SENDER",),
        None,
        *_text(r".+@.+", "ann@example.org, or Ann <ann@example.org>"),
        "The default sender of e-mails.",
    ),
    Setting(
        "mail_listen",
        ("HEADWATER_MAIL_LISTEN",),
        None,
        *_text(r"(lmtp|smtp)://[^\s/?#]+", "lmtp://127.0.0.1:2424 or smtp://127.0.0.1:2525"),
        "Where `headwater serve` receives e-mail for newsletter sources from a mail server. Unset: nowhere.",
    ),
    Setting(
        "mail_domain",
        ("HEADWATER_MAIL_DOMAIN",),
        None,
        *_text(r"[A-Za-z0-9.-]{1,253}", "a domain, like news.example.org"),
        "The domain of the addresses of newsletter sources. Once it is set, e-mails to other domains are refused.",
    ),
    Setting(
        "mail_max_megabytes",
        ("HEADWATER_MAIL_MAX_MEGABYTES",),
        30,
        *_whole(1, 200),
        "The largest e-mail that is accepted, in megabytes. Attachments are not kept.",
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
        "The address under which the world reaches this server: outlets say it, hubs push to it. Once it is set, "
        "everyone signs in, on this machine too.",
    ),
    Setting(
        "trusted_proxies",
        ("HEADWATER_TRUSTED_PROXIES",),
        (),
        _networks,
        Text("addresses or networks, separated by commas"),
        "Reverse proxies whose X-Forwarded-For, -Proto and -Host are believed; from all others they are ignored.",
    ),
    Setting(
        "auth_header",
        ("HEADWATER_AUTH_HEADER",),
        None,
        *_text(r"[A-Za-z][A-Za-z0-9-]{0,99}", "the name of a header, like Remote-User"),
        "A header in which a reverse proxy names the user it has signed in. It is believed from the addresses in "
        "HEADWATER_TRUSTED_PROXIES only.",
    ),
    Setting(
        "registration",
        ("HEADWATER_REGISTRATION",),
        "closed",
        *_choice("closed", "provider", "open"),
        "Who may make an account without an invitation: closed: no one; provider: people whom the OpenID Connect "
        "provider or the reverse proxy has signed in; open: everyone. New accounts are readers.",
    ),
    Setting(
        "unsubscribed_sources",
        ("HEADWATER_UNSUBSCRIBED_SOURCES",),
        "keep",
        *_choice("keep", "remove"),
        "What becomes of sources without a subscriber and without a pipeline, such as those of a user who was removed: "
        "keep: they are visited as before; remove: the hourly upkeep removes those that are older than a day. An admin "
        "can restore them.",
    ),
    Setting(
        "oidc_issuer",
        ("HEADWATER_OIDC_ISSUER",),
        None,
        *_text(r"https?://[^\s?#]+", "http://… or https://…, without ? and #"),
        "The address of an OpenID Connect provider to sign in with; needs the extra oidc.",
    ),
    Setting(
        "oidc_client_id",
        ("HEADWATER_OIDC_CLIENT_ID",),
        None,
        *_text(r"\S.{0,499}", "1 to 500 characters"),
        "The client ID of Headwater at the OpenID Connect provider.",
    ),
    Setting(
        "oidc_client_secret",
        ("HEADWATER_OIDC_CLIENT_SECRET",),
        None,
        *_text(r"\S.{0,999}", "1 to 1000 characters"),
        "The secret of that client; optional.",
        secret=True,
    ),
    Setting(
        "proxy",
        ("HEADWATER_PROXY",),
        None,
        *_text(r"(https?|socks5h?)://.+", "http://…, https://… or socks5://…"),
        "A proxy for all requests.",
        secret=True,
    ),
    Setting(
        "ca_file",
        ("HEADWATER_CA_FILE",),
        None,
        _path,
        Text("a file"),
        "Your own certificates authorities (PEM), trusted in addition to the usual ones.",
    ),
    Setting(
        "address_rules",
        ("HEADWATER_ADDRESS_RULES",),
        None,
        _path,
        Text("a file"),
        "Your own rules (TOML) for pasted addresses and handles; they take precedence over the built-in rules.",
    ),
    Setting(
        "password",
        ("HEADWATER_ADMIN_PASSWORD", "HEADWATER_PASSWORD"),
        None,
        *_text(r".{8,200}", "8 to 200 characters"),
        "Opens the dashboard, besides API keys and sign-in links. Once it is set, everyone signs in, on this machine "
        "too. A new one ends all sessions but those of API keys. Old name: HEADWATER_PASSWORD.",
        secret=True,
    ),
    Setting(
        "host",
        ("HEADWATER_HOST",),
        "127.0.0.1",
        _address,
        Text("an address of this machine, like 127.0.0.1, 0.0.0.0 or ::1"),
        "The address the dashboard and the API listen on. On any but a loopback address everyone signs in.",
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
        "How much is logged. Commands that end log warnings and errors only, unless this is set.",
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

read_minutes, _ = _number(0.01, 525_600)
MINUTES_ALLOWED = Text("minutes, from {low:g} to {high:g}", low=0.01, high=525_600)

# What belongs together, for people who look through them.
GROUPS: Final[tuple[tuple[Text, tuple[str, ...]], ...]] = (
    (
        Text("How fresh, at what cost"),
        (
            *("policy", "budget_visits_per_day", "freshness_minutes", "freshness_percent"),
            *("min_interval_seconds", "max_interval_seconds", "dormant_interval_seconds"),
        ),
    ),
    (
        Text("Collecting"),
        (
            *("collector_tick", "collector_concurrency", "slow_visits", "processes"),
            *("visit_timeout_seconds", "max_body_megabytes", "max_items", "address_rules"),
        ),
    ),
    (Text("When a source fails"), ("backoff", "pause_after_failures", "error_after_failures")),
    (
        Text("Courtesy and network"),
        ("host_concurrency", "host_spacing_seconds", "contact_url", "allow_hosts", "proxy", "ca_file"),
    ),
    (
        Text("Storage"),
        (
            *("database_url", "sqlite_durability", "data_dir"),
            *("retention_days", "retention_items", "retention_visit_days", "unsubscribed_sources"),
        ),
    ),
    (
        Text("Pipelines and models"),
        ("pipeline_concurrency", "step_limits", "model_requests_per_day", "model_tokens_per_day"),
    ),
    (
        Text("Mail"),
        (
            *("smtp_host", "smtp_port", "smtp_security", "smtp_user", "smtp_password", "mail_sender"),
            *("mail_listen", "mail_domain", "mail_max_megabytes"),
        ),
    ),
    (
        Text("People and sign-in"),
        (
            *("password", "registration", "auth_header", "trusted_proxies"),
            *("oidc_issuer", "oidc_client_id", "oidc_client_secret"),
        ),
    ),
    (Text("Pages and logs"), ("host", "port", "public_url", "language", "log_level", "log_format")),
)
