"""The command line: one file a group of commands. `main` is where the program starts."""

import os
import signal
import sys


def main() -> None:
    """Run the command line. Asked for the version alone, it answers before anything is imported."""
    if sys.argv[1:] == ["--version"]:
        from headwater import __version__

        print(f"headwater {__version__}")  # noqa: T201
        return
    listening = (
        signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )  # else the caller wants it ignored
    if listening:
        # While it is only importing there is nothing to tidy up, and no import is to be left by an exception.
        signal.signal(signal.SIGINT, lambda number, frame: os._exit(130))
    from headwater.cli.app import run

    if listening:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.exit(run(sys.argv[1:]))
