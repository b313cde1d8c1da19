"""What one run of the command line works with: its settings, read late, and its store."""

import logging
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwater.cli.output import JsonFormatter, PrintableFormatter
from headwater.config import INTERVAL_NAME, INTERVAL_VARIABLE, Settings, load_settings
from headwater.errors import InputError, SettingError, Text
from headwater.fetch.guard import Guard
from headwater.files import make_private
from headwater.language import choose_language

if TYPE_CHECKING:
    from headwater.store.core.database import Store

OUR_FILES = {"headwater.db", "files", "rss_states"}  # what Headwater keeps in its data directory


@dataclass
class Session:
    database: str | None = None
    config_file: Path | None = None
    assignments: list[str] = field(default_factory=list)

    @cached_property
    def settings(self) -> Settings:
        """All settings. From the first use on, messages are in the language they ask for."""
        overrides: dict[str, Any] = {}
        for assignment in self.assignments:
            name, equals, value = assignment.partition("=")
            if not equals:
                raise SettingError("--set {text} is not NAME=VALUE", text=assignment)
            overrides[name.strip()] = value.strip()
        if self.database == "":
            raise SettingError("--database is empty; give postgresql://… or sqlite:///FILE, or leave it out")
        if self.database is not None:
            overrides["database_url"] = self.database
        settings = load_settings(
            toml_file=self.config_file, overrides=overrides, shown_names={"database_url": "--database"}
        )
        choose_language(settings.language)
        Guard(settings.allow_hosts)  # complains of an entry that means nothing, before anything runs
        _refuse_unknown_types(settings)
        return settings

    def has_database(self) -> bool:
        """Whether there is a database already: a command that only looks something up does not make one."""
        return bool(self.settings.database_url) or (self.settings.data_dir / "headwater.db").exists()

    def open_store(self, *, waiting: bool = False) -> "Store":
        """The store. `waiting`: for a database that is away, as long-running processes do later on, too."""
        from headwater.store.core.database import Store
        from headwater.store.core.retry import wait_for

        log_to_terminal(self.settings, is_service=waiting)
        _protect(self.settings.data_dir)
        url, durability = self.settings.database, self.settings.sqlite_durability
        if waiting:
            return wait_for(lambda: Store.open(url, shared=True, durability=durability))
        return Store.open(url, durability=durability)

    def log_to_terminal(self, *, is_service: bool = False) -> None:
        log_to_terminal(self.settings, is_service=is_service)


def log_to_terminal(settings: Settings, *, is_service: bool = False) -> None:
    """Log to the terminal. A command that ends tells its result itself: unless asked, it logs problems only."""
    handler = logging.StreamHandler()
    if settings.log_format == "json":
        handler.setFormatter(JsonFormatter())
    else:
        handler.setFormatter(PrintableFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    is_asked = settings.origins["log_level"] != "default"
    level = settings.log_level if is_service or is_asked else "warning"
    logging.basicConfig(level=level.upper(), handlers=[handler])
    logging.getLogger("alembic").setLevel(logging.WARNING)


def _protect(data_dir: Path) -> None:
    """Keep others out of the data directory: of one that is empty or has our files in it, and of no other."""
    try:
        names = {each.name for each in data_dir.iterdir()}
    except OSError:
        return  # there is none yet, or not even we may look into it
    if not names or names & OUR_FILES:
        make_private(data_dir)


def _refuse_unknown_types(settings: Settings) -> None:
    """Complain of an interval for a type that does not exist, by the name under which it was set."""
    from headwater.collectors.types import find_type

    for spelling in settings.fetch_intervals:
        try:
            find_type(spelling)
        except InputError as error:
            origin = settings.origins[INTERVAL_NAME + spelling]
            in_environment = origin in (".env", "environment")
            name = INTERVAL_VARIABLE + spelling.upper() if in_environment else INTERVAL_NAME + spelling
            raise SettingError(
                "{name} ({origin}): {problem}", name=name, origin=Text(origin), problem=error.render()
            ) from None
