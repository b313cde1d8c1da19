"""`python -m tests.extras [NAME …]`: one table; exit status 1 where something does not install or work.

The wheel is built, then for each extra an empty virtual environment is made, `headwater[EXTRA]` is installed from the
wheel with pip and the pinned versions, and what the extra is for is done with the installed command. Needs the package
index and some minutes.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.extras.checks import CHECKS, Check
from tests.extras.installed import Installed
from tests.origin import Origin

ROOT = Path(__file__).resolve().parents[2]
NOT_FOR_USERS = ("dev",)  # what the tests need: the gate installs it


@dataclass(frozen=True)
class Row:
    extra: str
    installed_seconds: float
    megabytes: float
    checked: str
    problem: str


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("names", nargs="*", metavar="NAME", help=", ".join(CHECKS))
    names = arguments.parse_args().names or list(CHECKS)
    if missing := extras() - set(CHECKS) - set(NOT_FOR_USERS):
        print(f"no check for {', '.join(sorted(missing))}")
        return 1
    rows = []
    with tempfile.TemporaryDirectory(prefix="headwater-extras-") as directory:
        wheel = build(Path(directory))
        constraints = pins(Path(directory))
        for name in names:
            rows.append(try_out(name, CHECKS[name], wheel, constraints, Path(directory) / name))
            print(shown(rows[-1]), flush=True)
    print(f"\n{'extra':14}{'install':>10}{'size':>10}   {'checked':50}")
    print("\n".join(map(shown, rows)))
    failed = [row for row in rows if row.problem]
    print(f"{len(rows) - len(failed)} of {len(rows)} install and work")
    return int(bool(failed))


def extras() -> set[str]:
    return set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])


def shown(row: Row) -> str:
    verdict = "works" if not row.problem else f"FAILED: {row.problem}"
    return f"{row.extra:14}{row.installed_seconds:8.0f} s{row.megabytes:7.0f} MB   {row.checked:50}{verdict}"


def build(directory: Path) -> Path:
    command = (
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "--outdir",
        str(directory),
        str(ROOT),
    )
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    (wheel,) = directory.glob("*.whl")
    return wheel


def pins(directory: Path) -> Path:
    """The pinned versions without their hashes, which a wheel just built could not have."""
    found = re.findall(
        r"^([\w.\[\]-]+==[^\s\\]+(?: ; [^\\\n]+)?)", (ROOT / "constraints-dev.txt").read_text(), re.MULTILINE
    )
    path = directory / "constraints.txt"
    path.write_text("\n".join(found) + "\n")
    return path


def try_out(name: str, check: Check, wheel: Path, constraints: Path, directory: Path) -> Row:
    began = time.monotonic()
    wanted = ",".join((*check.beside, *((name,) if name != "none" else ())))
    environment = directory / "environment"
    problem = failure_of(lambda: install(environment, wheel, wanted, constraints))
    took = time.monotonic() - began
    size = sum(
        path.stat().st_size for path in environment.rglob("*") if path.is_file() and not path.is_symlink()
    )
    if not problem:
        with Origin() as origin:
            home = directory / "home"
            home.mkdir()
            problem = failure_of(lambda: check.try_out(Installed(environment, home), origin))
    subprocess.run(["rm", "-rf", str(directory)], check=True)
    return Row(name, took, size / 1e6, check.what, problem)


def install(environment: Path, wheel: Path, extras: str, constraints: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True, timeout=120)
    run(
        str(environment / "bin" / "python"),
        *("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--constraint", str(constraints)),
        f"headwater[{extras}] @ {wheel.as_uri()}" if extras else f"headwater @ {wheel.as_uri()}",
    )
    run(str(environment / "bin" / "python"), "-m", "pip", "check")


def run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, (done.stdout + done.stderr).strip()


def failure_of(work: Callable[[], None]) -> str:
    """What went wrong, on one line, or nothing."""
    try:
        work()
    except (AssertionError, subprocess.SubprocessError, OSError, KeyError) as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())}"[:600]
    return ""


if __name__ == "__main__":
    sys.exit(main())
