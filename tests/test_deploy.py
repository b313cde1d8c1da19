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
from tests.cli.test_sign_in import Browser, link_in, serving
from tests.command import Headwater

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


def test_image_runs_without_privileges_and_says_how_it_is(tmp_path: Path) -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    last = text.split("\nFROM ")[-1]
    assert re.search(r"^USER headwater$", last, re.MULTILINE)
    variables = dict(re.findall(r"\b((?:HEADWATER|COLLECTOR)_\w+)=(\S+)", last))
    assert variables["HEADWATER_HOST"] == "0.0.0.0"
    check_environment(variables, tmp_path)
    (start,) = re.findall(r"^CMD (\[.*\])$", last, re.MULTILINE)
    check_command(json.loads(start))
    (health,) = re.findall(r"^HEALTHCHECK .*CMD (\[.*\])$", last, re.MULTILINE)
    assert json.loads(health)[0] == "python"
    compile(json.loads(health)[2], "HEALTHCHECK", "exec")
    assert "http://127.0.0.1:8626/healthz" in json.loads(health)[2], (
        "one request, and no start of the command"
    )
    for copied in re.findall(r"^COPY (?!--from)(.*) \S+$", text, re.MULTILINE):
        allowed = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
        for name in copied.split():
            assert (ROOT / name).exists()
            assert f"!{name}" in allowed


def image_variables() -> dict[str, str]:
    """What the image sets, as its process sees it."""
    last = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ").split("\nFROM ")[-1]
    return dict(re.findall(r"\b((?:HEADWATER|COLLECTOR)_\w+)=(\S+)", last))


def documented_commands(start: str) -> list[list[str]]:
    """The commands that the installation guide runs inside of a container."""
    text = (ROOT / "docs" / "how-to" / "deploy.md").read_text(encoding="utf-8")
    return [
        shlex.split(line, comments=True)
        for line in re.findall(rf"^{start} headwater (.*)$", text, re.MULTILINE)
    ]


@pytest.fixture
def container(tmp_path: Path) -> Headwater:
    """The image's environment, on an empty volume."""
    headwater = Headwater(tmp_path, None)
    headwater.environment = {
        "PATH": headwater.environment["PATH"],
        "HOME": str(tmp_path),
        **image_variables(),
        "HEADWATER_DATA_DIR": str(tmp_path / "volume"),
    }
    return headwater


def test_image_on_an_empty_volume_starts_closed_and_prints_a_link(container: Headwater) -> None:
    with serving(container) as (process, address):
        assert process.stdout is not None
        link = link_in(process.stdout.readline())
        stranger, owner = Browser(address), Browser(address)
        for path, status in (("/", 303), ("/settings", 303), ("/api/sources", 401), ("/healthz", 200)):
            assert stranger.ask("GET", path)[0] == status, path
        assert owner.sign_in(link) == 303
        assert owner.ask("GET", "/settings")[0] == 200
        commands = documented_commands("docker exec headwater")
        assert [command[0] for command in commands] == ["sign-in-link", "key", "key", "source"]
        printed = [container.run(*command) for command in commands]
        assert [code for code, _, _ in printed] == [0, 0, 0, 0], printed
        assert Browser(address).sign_in(link_in(printed[0][1])) == 303
        keys = [out.strip() for _, out, _ in printed[1:3]]
        statuses = [
            [stranger.ask("GET", path, Authorization=f"Bearer {key}")[0] for key in keys]
            for path in ("/api/sources", "/api/keys")
        ]
        assert statuses == [[200, 200], [403, 200]]
    assert documented_commands("docker compose exec api") == [["sign-in-link"], ["source", "list"]]


def test_image_with_a_password_prints_no_link(container: Headwater) -> None:
    with serving(container, HEADWATER_ADMIN_PASSWORD="correct horse") as (process, address):
        owner = Browser(address)
        assert owner.ask("GET", "/")[0] == 303
        assert owner.sign_in("correct horse") == 303
        assert owner.ask("GET", "/settings")[0] == 200
        process.terminate()
        rest, _ = process.communicate(timeout=60)
    assert rest == ""


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
