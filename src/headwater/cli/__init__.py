"""The command line: one file a group of commands. `main` is where the program starts."""

import sys


def main() -> None:
    """Run the command line. Asked for the version alone, it answers before anything is imported."""
    if sys.argv[1:] == ["--version"]:
        from headwater import __version__

        print(f"headwater {__version__}")  # noqa: T201
        return
    from headwater.cli.app import run

    sys.exit(run(sys.argv[1:]))
