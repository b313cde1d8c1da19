"""Compiles the kernel and the replay loops where numba is installed; without it they run as they are.

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
from headwater.simulate import replay

_OWN_IMPORT = re.compile(r"^from headwater\.[\w.]+ import (\([^)]*\)|[^\n]*)\n", re.MULTILINE)


@cache
def is_compiled() -> bool:
    """Whether replays run compiled. HEADWATER_COMPILE=0 says no, for comparing the two."""
    return os.environ.get("HEADWATER_COMPILE") != "0" and importlib.util.find_spec("numba") is not None


@cache
def load_functions() -> Any:
    """A module with the kernel's and the replay's functions, compiled where that is possible."""
    if not is_compiled():
        return replay
    return _import_file(_write_source())


def _join_sources() -> str:
    """Layout, kernel and replay as one module. They share one namespace, which `layout` heads."""
    parts = ["from numba import njit"]
    for module in (layout, kernel, replay):
        text = Path(str(module.__file__)).read_text(encoding="utf-8")
        text = _OWN_IMPORT.sub("", text)
        if module is not layout:
            text = re.sub(r"^def ", "@njit(cache=True, nogil=True)\ndef ", text, flags=re.MULTILINE)
        parts.append(text)
    return "\n".join(parts)


def _write_source() -> Path:
    source = _join_sources()
    name = f"replay_{hashlib.sha256(source.encode()).hexdigest()[:16]}"
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
