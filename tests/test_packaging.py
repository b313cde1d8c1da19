"""The wheel holds everything that Headwater needs, and what is installed from it works."""

import json
import re
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path
from urllib.request import urlopen

import pytest

from headwater import __version__
from headwater.cli.doctor import EXTRAS
from headwater.pipeline.registry import find_step
from tests.extras.__main__ import NOT_FOR_USERS
from tests.extras.checks import CHECKS

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(directory), str(ROOT)],
        check=True,
        capture_output=True,
        timeout=120,
    )
    (built,) = directory.glob("*.whl")
    return built


@pytest.mark.slow
def test_every_file_of_the_package_is_in_the_wheel(wheel: Path) -> None:
    package = ROOT / "src" / "headwater"
    expected = {
        str(path.relative_to(package.parent))
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert expected - names == set()
    assert {name.split("/")[0] for name in names} == {"headwater", f"headwater-{__version__}.dist-info"}
    for kind in (".toml", ".html", ".sql", ".css", ".typed"):
        assert any(name.endswith(kind) for name in names), kind


def test_every_extra_is_known_where_extras_are_named() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(CHECKS) == {"none", *declared} - set(NOT_FOR_USERS), "`make extras` tries them all"
    assert set(EXTRAS) == set(declared) - {"build", "dev", "fast", "simulate", "enrich"}, (
        "as `headwater doctor` lists them"
    )


def test_steps_of_the_quickstart_need_no_extra() -> None:
    template = re.search(
        r"cat > rivers\.json <<'END'\n(.*?)\nEND", (ROOT / "docs/quickstart.md").read_text(), re.S
    )
    assert template is not None
    steps = [step["step_type"] for step in json.loads(template[1])["steps"]]
    assert "enrich_content" in steps
    assert [step for step in steps if find_step(step).extra] == []
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert any(each.startswith("trafilatura") for each in project["dependencies"])
    assert re.search(r"^trafilatura==.*\\\n    --hash=", (ROOT / "constraints.txt").read_text(), re.M)
    loaded = "import sys, headwater.cli.app, headwater.pipeline.worker; print('trafilatura' in sys.modules)"
    said = subprocess.run(
        [sys.executable, "-c", loaded], check=True, capture_output=True, text=True, timeout=120
    )
    assert said.stdout.strip() == "False", "it is the child's to load it"


@pytest.mark.slow
def test_what_is_installed_from_it_works(wheel: Path, tmp_path: Path) -> None:
    """In its own environment; only what Headwater depends on is borrowed from this one."""
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True, timeout=60)
    python = environment / "bin" / "python"
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "--python",
            str(python),
            "install",
            "--no-deps",
            "--no-index",
            str(wheel),
        ],
        check=True,
        capture_output=True,
        timeout=120,
    )
    site = Path(
        subprocess.run(
            [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
    )
    # A directory named in a .pth file is looked at last, and its own .pth files (this checkout's) are not read.
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [str(environment / "bin" / "headwater"), *arguments],
            cwd=tmp_path,
            env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "HEADWATER_LANGUAGE": "en"},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert run("--version") == f"headwater {__version__}\n"
    where = subprocess.run(
        [str(python), "-c", "import headwater; print(headwater.__file__)"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert where.startswith(str(environment))
    assert "0 failing" in run("doctor") or "first start" in run("doctor")
    demo = subprocess.Popen(
        [str(environment / "bin" / "headwater"), "demo"],
        cwd=tmp_path,
        env={
            "PATH": "/usr/bin:/bin",
            "HOME": str(tmp_path),
            "HEADWATER_LANGUAGE": "en",
            "HEADWATER_PORT": "0",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert demo.stdout is not None
    address = next(line for line in demo.stdout if "http://" in line).split()[-1]
    with urlopen(address, timeout=60) as page:  # the templates are there
        assert b"</html>" in page.read()
    with urlopen(address.rstrip("/") + "/healthz", timeout=60) as page:
        assert page.status == 200
    demo.terminate()
    assert demo.wait(timeout=60) == 0
    demo.stdout.close()
    run("source", "list")  # makes the tables: the migrations are there
    assert (
        "没有"
        in subprocess.run(
            [str(environment / "bin" / "headwater"), "source", "list"],
            cwd=tmp_path,
            env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "HEADWATER_LANGUAGE": "zh"},
            capture_output=True,
            text=True,
            timeout=60,
        ).stdout
    )
