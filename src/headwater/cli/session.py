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
from headwater.language import choose_language

if TYPE_CHECKING:
    from headwater.store.database import Store


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

    def open_store(self, *, waiting: bool = False) -> "Store":
        """The store. `waiting`: for a database that is away, as whoever works on for ever does later on, too."""
        from headwater.store.database import Store
        from headwater.store.patience import wait_for

        self.log_to_terminal()
        url = self.settings.database
        return wait_for(lambda: Store.open(url, shared=True)) if waiting else Store.open(url)

    def log_to_terminal(self) -> None:
        handler = logging.StreamHandler()
        if self.settings.log_format == "json":
            handler.setFormatter(JsonFormatter())
        else:
            handler.setFormatter(PrintableFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        logging.basicConfig(level=self.settings.log_level.upper(), handlers=[handler])
        logging.getLogger("alembic").setLevel(logging.WARNING)


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
