"""What is shipped for running Headwater elsewhere names only commands and settings that exist."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from headwater.cli.app import app
from headwater.config import load_settings

ROOT = Path(__file__).parents[1]
UNITS = sorted((ROOT / "deploy" / "systemd").glob("*.service"))


def check_command(arguments: list[str]) -> None:
    """There is such a command, and it has such options."""
    command: Any = typer.main.get_command(app)
    while hasattr(command, "commands"):
        command = command.commands[arguments.pop(0)]
    options = {option for parameter in command.params for option in parameter.opts}
    for argument in arguments:
        if argument.startswith("--"):
            assert argument.split("=")[0] in options, argument


def check_environment(variables: dict[str, str], tmp_path: Path) -> None:
    """A name that does not exist, or a value that is not allowed, is an error of the loader itself."""
    load_settings(directory=tmp_path, environment=variables)


def compose() -> dict[str, Any]:
    text = (ROOT / "compose.yaml").read_text(encoding="utf-8")
    text = re.sub(r"\$\{\w+:\?[^}]*\}", "password", text)
    text = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", text)
    assert "${" not in text
    found: dict[str, Any] = yaml.safe_load(text)
    return found


def test_the_compose_file_starts_what_it_says(tmp_path: Path) -> None:
    services = compose()["services"]
    assert set(services) == {"database", "collector", "worker", "api"}
    assert services["collector"]["deploy"]["replicas"] == services["worker"]["deploy"]["replicas"] == 2
    for name, service in services.items():
        if name == "database":
            continue
        check_command(list(service["command"]))
        variables = {key: str(value or "") for key, value in service["environment"].items()}
        check_environment(variables, tmp_path)
        assert variables["HEADWATER_DATABASE_URL"].startswith("postgresql://headwater:")
    volumes = {volume.split(":")[0] for s in services.values() for volume in s.get("volumes", ())}
    assert volumes == set(compose()["volumes"])


def test_the_image_runs_as_nobody_in_particular_and_says_how_it_is(tmp_path: Path) -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    last = text.split("\nFROM ")[-1]
    assert re.search(r"^USER headwater$", last, re.MULTILINE)
    variables = dict(re.findall(r"\b((?:HEADWATER|COLLECTOR)_\w+)=(\S+)", last))
    assert variables["HEADWATER_HOST"] == "0.0.0.0"
    check_environment(variables, tmp_path)
    (start,) = re.findall(r"^CMD (\[.*\])$", last, re.MULTILINE)
    check_command(json.loads(start))
    (health,) = re.findall(r"^HEALTHCHECK .*CMD (\[.*\])$", last, re.MULTILINE)
    assert json.loads(health)[0] == "headwater"
    check_command(json.loads(health)[1:])
    for copied in re.findall(r"^COPY (?!--from)(.*) \S+$", text, re.MULTILINE):
        allowed = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
        for name in copied.split():
            assert (ROOT / name).exists()
            assert f"!{name}" in allowed


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_the_units_start_commands_that_exist(unit: Path, tmp_path: Path) -> None:
    text = unit.read_text(encoding="utf-8")
    (start,) = re.findall(r"^ExecStart=(.*)$", text, re.MULTILINE)
    program, *arguments = shlex.split(start)
    assert Path(program).name == "headwater"
    check_command(arguments)
    check_environment(dict(re.findall(r"^Environment=(\w+)=(.*)$", text, re.MULTILINE)), tmp_path)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
def test_systemd_takes_the_units(tmp_path: Path) -> None:
    for unit in UNITS:
        text = unit.read_text(encoding="utf-8").replace("/opt/headwater/bin/headwater", sys.executable)
        (tmp_path / unit.name.replace("@", "@1")).write_text(text, encoding="utf-8")
    names = [str(path) for path in sorted(tmp_path.glob("*.service"))]
    done = subprocess.run(
        ["systemd-analyze", "verify", "--recursive-errors=no", *names],
        capture_output=True,
        text=True,
        timeout=60,
    )
    complaints = [line for line in done.stderr.splitlines() if str(tmp_path) in line or "headwater" in line]
    assert complaints == []
