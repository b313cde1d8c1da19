"""Every module with logic has its tests where a newcomer looks: in the mirrored file, or where `mirrors.toml` says."""

import ast
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TESTS, PACKAGE = ROOT / "tests", ROOT / "src" / "headwater"
LISTED: dict[str, list[str]] = tomllib.loads((TESTS / "mirrors.toml").read_text(encoding="utf-8"))
DECIDES = (ast.If, ast.IfExp, ast.For, ast.While, ast.Try, ast.Match, ast.BoolOp, ast.comprehension)


def has_logic(path: Path) -> bool:
    """Whether it defines functions and decides something."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    has_functions = any(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for node in nodes)
    return has_functions and any(isinstance(node, DECIDES) for node in nodes)


def is_mirrored(module: str) -> bool:
    path = Path(module)
    return (TESTS / path.parent / f"test_{path.stem}.py").exists()


def modules() -> list[str]:
    """Those with logic, but for migrations, which `store/core/test_migrate.py` runs all."""
    paths = (path for path in PACKAGE.rglob("*.py") if "versions" not in path.parts)
    return [path.relative_to(PACKAGE).as_posix() for path in paths if has_logic(path)]


def test_module_with_logic_is_mirrored_or_listed() -> None:
    listed = {module for covered in LISTED.values() for module in covered}
    missing = [module for module in modules() if not is_mirrored(module) and module not in listed]
    assert missing == [], (
        "add tests/…/test_<module>.py, or name the test file that covers it in tests/mirrors.toml"
    )


def test_list_names_test_files_and_modules_that_exist() -> None:
    assert [name for name in LISTED if not (TESTS / name).is_file()] == []
    listed = [module for covered in LISTED.values() for module in covered]
    assert [module for module in listed if not (PACKAGE / module).is_file()] == []
    assert [module for module in listed if is_mirrored(module)] == [], "these have their own test files now"
