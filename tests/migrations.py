"""Migrations are frozen once they have landed. `python -m tests.migrations` records the new ones.

An edited migration makes databases that say they have the same version and differ. So a change to the tables is always
a new file; `tests/data/migrations.sha256` holds what the old ones were.
"""

import hashlib
import sys
from pathlib import Path

from headwater.store.core.migrate import MIGRATIONS

RECORD = Path(__file__).parent / "data" / "migrations.sha256"


def hashes() -> dict[str, str]:
    """Of every migration, and of the SQL that they run."""
    paths = [*(MIGRATIONS / "versions").glob("*.py"), *MIGRATIONS.glob("*.sql")]
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(paths)}


def recorded() -> dict[str, str]:
    lines = RECORD.read_text(encoding="ascii").splitlines()
    return {name: value for value, name in (line.split("  ") for line in lines)}


def edited(now: dict[str, str], before: dict[str, str]) -> list[str]:
    """Which recorded files have been changed or deleted."""
    return [name for name, value in before.items() if now.get(name) != value]


def main() -> int:
    now, before = hashes(), recorded()
    if changed := edited(now, before):
        print(f"edited: {', '.join(changed)}. Undo that, and write a new migration instead.")
        print(
            f"If it is your own and was never on main, delete its line in {RECORD.name} and run this again."
        )
        return 1
    RECORD.write_text("".join(f"{value}  {name}\n" for name, value in now.items()), encoding="ascii")
    print(f"{len(now) - len(before)} recorded")
    return 0


if __name__ == "__main__":
    sys.exit(main())
