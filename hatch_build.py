"""Compiles the arithmetic of plans if there are a C compiler and Cython.

Without them the package works too: it then plans in the interpreter.
"""

import os
import shlex
import shutil
import subprocess
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zlib import crc32

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).parent
KERNEL = ROOT / "src/headwater/schedule/kernel"
NATIVE = ROOT / "src/headwater/schedule/native"
PACKAGE = "headwater.schedule.native"
DIRECTIVES = {
    "language_level": 3,
    "annotation_typing": False,
    "boundscheck": False,
    "infer_types": True,
    "wraparound": False,
}


class CustomBuildHook(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        try:
            built = compile_kernel()
        except Exception as error:  # the package works without
            self.app.display_warning(f"plans will be made in the interpreter, which is slower: {error}")
            return
        build_data["infer_tag"] = True
        build_data["pure_python"] = False
        build_data["artifacts"] += [f"/{path.relative_to(ROOT)}" for path in built]


def compile_kernel() -> list[Path]:
    """Compile copies of the kernel's modules into `native`, unless they are there. Returns the files."""
    modules = sorted(path.stem for path in KERNEL.glob("*.py") if path.stem != "__init__")
    targets = {name: NATIVE / f"{name}{sysconfig.get_config_var('EXT_SUFFIX')}" for name in modules}
    stamp = NATIVE / "built_from"
    built = [*targets.values(), stamp]
    wanted = f"{checksum(KERNEL)}\n"
    if all(path.exists() for path in built) and stamp.read_text() == wanted:
        return built
    with TemporaryDirectory(dir=NATIVE) as folder:
        translated = translate_to_c(modules, Path(folder))
        shared = [path.with_suffix(".so") for path in translated]
        with ThreadPoolExecutor(os.cpu_count()) as compilers:
            list(compilers.map(compile_c, translated, shared))
        for path, target in zip(shared, targets.values(), strict=True):
            path.replace(target)
    stamp.write_text(wanted)
    return built


def translate_to_c(modules: list[str], folder: Path) -> list[Path]:
    from Cython.Compiler import Options
    from Cython.Compiler.Main import CompilationOptions, compile_multiple

    copies = folder.joinpath(*PACKAGE.split("."))
    shutil.copytree(KERNEL, copies, ignore=shutil.ignore_patterns("__pycache__"))
    for package in (copies.parent.parent, copies.parent):
        (package / "__init__.py").touch()
    Options.docstrings = False
    options = CompilationOptions(compiler_directives=DIRECTIVES, include_path=[str(folder)])
    result = compile_multiple([str(copies / f"{name}.py") for name in modules], options)
    if result.num_errors:
        raise RuntimeError("Cython cannot compile the kernel")
    return [copies / f"{name}.c" for name in modules]


def checksum(folder: Path) -> int:
    """Of the sources. A compiled copy of others is not used: see `headwater.schedule.arithmetic`."""
    return crc32(b"".join(path.read_bytes() for path in sorted(folder.glob("*.p*"))))


def compile_c(source: Path, target: Path) -> None:
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    shared = (
        ["-bundle", "-undefined", "dynamic_lookup"]
        if sysconfig.get_platform().startswith("macosx")
        else ["-shared"]
    )
    include = sysconfig.get_path("include")
    subprocess.run(
        [*compiler, "-O2", "-w", "-fPIC", *shared, f"-I{include}", str(source), "-o", str(target), "-s"],
        check=True,
        capture_output=True,
        text=True,
    )


if __name__ == "__main__":
    for path in compile_kernel():
        print(path.relative_to(ROOT))
