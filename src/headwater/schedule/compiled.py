"""Compiles plain functions where numba is installed.

The functions are the production's own, word for word: their sources are put one after the other into one file
in the user's cache, named after their contents, so that what was compiled once is loaded the next time.
"""

import hashlib
import importlib.util
import os
import re
import sys
import tempfile
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from headwater.schedule import kernel, layout

_OWN_IMPORT = re.compile(r"^from headwater\.[\w.]+ import (\([^)]*\)|[^\n]*)\n", re.MULTILINE)


@cache
def is_compiled() -> bool:
    """Whether functions can be compiled. HEADWATER_COMPILE=0 says no, for comparing the two."""
    return os.environ.get("HEADWATER_COMPILE") != "0" and importlib.util.find_spec("numba") is not None


@cache
def compile_kernel(*more: ModuleType, name: str = "kernel", shares_interpreter: bool = False) -> Any:
    """A module with the compiled functions of the kernel and of the modules `more`, which build on it.

    `shares_interpreter`: other Python code may run during a call. That pays for long ones only, for it takes
    long to get the interpreter back.
    """
    decorator = f"@njit(cache=True, nogil={shares_interpreter})"
    return _import_file(_write_source(name, _join_sources((layout, kernel, *more), decorator)))


def _join_sources(modules: tuple[ModuleType, ...], decorator: str) -> str:
    """The modules as one. They share one namespace, which `layout` heads."""
    parts = ["from numba import njit"]
    for module in modules:
        text = Path(str(module.__file__)).read_text(encoding="utf-8")
        text = _OWN_IMPORT.sub("", text)
        if module is not layout:
            text = re.sub(r"^def ", f"{decorator}\ndef ", text, flags=re.MULTILINE)
        parts.append(text)
    return "\n".join(parts)


def _write_source(name: str, source: str) -> Path:
    name = f"{name}_{hashlib.sha256(source.encode()).hexdigest()[:16]}"
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headwater"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name}.py"
        if not path.exists():
            with tempfile.NamedTemporaryFile("w", dir=folder, delete=False, encoding="utf-8") as file:
                file.write(source)
            Path(file.name).replace(path)
    except OSError:
        # Nowhere to keep it: compile anew each time.
        path = Path(tempfile.mkdtemp(prefix="headwater-")) / f"{name}.py"
        path.write_text(source, encoding="utf-8")
    return path


def _import_file(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(path.stem)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module
