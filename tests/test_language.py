"""Headwater speaks two languages: every translation fits its text; at a release, every text has one."""

import ast
import copy
import re
import string
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import headwater
from headwater import errors
from headwater.collectors.types import TYPES, config_model_of
from headwater.config import load_settings
from headwater.errors import InputError, NotFoundError
from headwater.language import (
    _environment_language,
    choose_language,
    preferred_language,
    process_language,
    retell,
    translate,
)
from headwater.pipeline.examples import EXAMPLES
from headwater.pipeline.registry import STEP_HANDLERS
from headwater.publish.alerts import KIND_NAMES, KINDS
from headwater.publish.gallery import GALLERY
from headwater.settings import SETTINGS
from headwater.web.step_titles import KEY_TITLES

PACKAGE = Path(headwater.__file__).parent
ROOT = Path(__file__).resolve().parent.parent
CHINESE = {
    entry["en"]: entry["zh"]
    for entry in tomllib.loads((PACKAGE / "chinese.toml").read_text(encoding="utf-8"))["text"]
}
# Values that are translated where they are shown.
WORDS = {
    *("admin", "reader", "key", "password", "link", "account", "oidc"),
    "ok",
    "needs_attention",
    "paused",
    "error",
    "retired",
    "off",
    "default",
    "environment",
    "command line",
    "pending",
    "running",
    "completed",
    "failed",
    "skipped",
    "key",
    "password",
    "link",
}
TEMPLATE_POSITION = {"VisitError": 1, "FetchError": 1}


def texts_in_code(*rooms: str, hints: bool = True) -> Iterator[str]:
    """Every literal that goes through `translate`, and the template of every error, of these rooms or all."""
    for path in PACKAGE.rglob("*.py"):
        if rooms and not path.relative_to(PACKAGE).as_posix().startswith(rooms):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name | ast.Attribute):
                continue
            name = node.func.id if isinstance(node.func, ast.Name) else f".{node.func.attr}"
            if name in ("t", "translate", ".t"):
                position = 0
            elif name in vars(errors) or name in ("StepError", "PassingStepError"):
                position = TEMPLATE_POSITION.get(name, 0)
            else:
                continue
            if len(node.args) > position:
                yield from literals(node.args[position])
            for keyword in node.keywords:
                if keyword.arg == "hint" and hints:
                    yield from literals(keyword.value)


def literals(node: ast.expr) -> Iterator[str]:
    match node:
        case ast.Constant(value=str(text)) if " " in text or text.isalpha():
            yield text
        case ast.IfExp():
            yield from literals(node.body)
            yield from literals(node.orelse)
        case _:
            return


def texts_in_pages() -> Iterator[str]:
    for path in (PACKAGE / "web" / "templates").glob("*.html"):
        for text in re.findall(r"\bt\('((?:[^'\\]|\\.)+)'[,)]", path.read_text(encoding="utf-8")):
            yield text.replace("\\'", "'")


def all_texts() -> set[str]:
    return {
        *texts_in_code(),
        *texts_in_pages(),
        *(setting.help for setting in SETTINGS),
        *(setting.allowed.template for setting in SETTINGS),
        *(
            field.description or ""
            for kind in TYPES
            for field in config_model_of(kind.name).model_fields.values()
        ),
        *(
            field.description or ""
            for step in STEP_HANDLERS.values()
            for field in step.config_model.model_fields.values()
        ),
        *KINDS.values(),
        *KEY_TITLES.values(),
        *KIND_NAMES.values(),
        *(text for entry in GALLERY for text in (entry.name, entry.description, entry.title or "ok")),
        *(field.label for entry in GALLERY for field in entry.fields),
        *(text for example in EXAMPLES for text in (example.name, example.description)),
        *WORDS,
    }


@pytest.mark.release
def test_every_text_has_a_translation() -> None:
    assert sorted(all_texts() - CHINESE.keys()) == []


def test_every_translation_is_of_a_text_that_exists() -> None:
    """A text that was reworded or removed takes its translation along."""
    texts = "\n".join(
        path.read_text(encoding="utf-8")
        for suffix in ("html", "js", "toml")
        for path in PACKAGE.rglob(f"*.{suffix}")
        if path.name != "chinese.toml"
    )
    constants = {
        node.value
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant)
    }
    unused = [
        text
        for text in CHINESE.keys() - constants - all_texts()
        if text not in texts and text.replace("'", "\\'") not in texts and not text.startswith("push: ")
    ]
    assert unused == []


def test_errors_that_pages_and_the_api_show_name_no_command() -> None:
    """Which command helps is a hint of the error, and only the command line shows it."""
    served = ("collect", "fetch", "formats", "pipeline", "sources", "store/", "views", "web/")
    allowed = {
        "the database {url} is incomplete: run `headwater migrate-to` once more and let it finish",
        "this sign-in link was used before or has expired; make another: headwater sign-in-link",  # the only way
    }
    assert {text for text in texts_in_code(*served, hints=False) if "headwater " in text} == allowed


def test_hint_of_an_error_is_shown_on_a_command_line_alone() -> None:
    error = NotFoundError("there is no run {id}", hint="`headwater runs list` shows the newest", id=7)
    assert error.render("en") == "there is no run 7"
    assert error.render_with_hint("en") == "there is no run 7; `headwater runs list` shows the newest"
    assert error.render_with_hint("zh") == "没有运行 7；`headwater runs list` 显示最新的运行"
    assert copy.copy(error).hint == error.hint, "as after a way through another process"


def test_chinese_has_one_word_for_a_thing() -> None:
    wrong = re.compile(r"(?<![来阅资])源|您|移除|控制台|[０-９]")
    pages = [ROOT / "README.zh-CN.md", ROOT / "docs" / "quickstart.zh-CN.md"]
    texts = [*CHINESE.values(), *(line for page in pages for line in page.read_text("utf-8").splitlines())]
    found = [text for text in texts if wrong.search(text)]
    assert found == [], (
        "来源 and not 源, 你 and not 您, 删除 and not 移除, 仪表板 and not 控制台, half-width digits"
    )


def test_every_translation_fills_the_same_blanks() -> None:
    def blanks(text: str) -> set[str | None]:
        return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}

    for english, chinese in CHINESE.items():
        assert blanks(english) == blanks(chinese), english


def test_a_number_decides_the_word() -> None:
    text = "{count} {count:run goes|runs go} on, {rate:.1f} a second"
    assert translate(text, "en").format(count=1, rate=2) == "1 run goes on, 2.0 a second"
    assert translate(text, "en").format(count=0, rate=2) == "0 runs go on, 2.0 a second"
    assert InputError("{count} {count:row|rows}", count=1).render("en") == "1 row"
    known = "{count} {count:run goes|runs go} on"
    assert translate(known, "zh").format(count=1) == translate(known, "zh").replace("{count}", "1")


def test_no_text_counts_one_thing_in_the_plural() -> None:
    counted = re.compile(
        r"\{(count|visits|requests|rows|steps|total)\} (?!in\b|more\b|new\b|times a\b)[a-z]+s\b"
    )
    several = ("visits per source and day", "packages bring one of this name")
    found = [text for text in CHINESE if counted.search(text)]
    assert [text for text in found if not any(each in text for each in several)] == []


@pytest.mark.parametrize(
    ("header", "language"),
    [
        ("zh-CN,zh;q=0.9,en;q=0.8", "zh"),
        ("en-GB,en;q=0.9,zh;q=0.5", "en"),
        ("fr, zh;q=0.4", "zh"),
        ("de", "en"),
        ("", "en"),
        ("zh;q=nonsense", "en"),
    ],
)
def test_the_browsers_language(header: str, language: str) -> None:
    assert preferred_language(header) == language


def test_the_terminals_language(monkeypatch: pytest.MonkeyPatch) -> None:
    choose_language(None)  # commands that other tests ran in this process have chosen one
    for name, value, expected in (("LANG", "zh_CN.UTF-8", "zh"), ("LC_ALL", "en_US", "en")):
        _environment_language.cache_clear()
        monkeypatch.delenv("HEADWATER_LANGUAGE", raising=False)
        monkeypatch.setenv(name, value)
        assert process_language() == expected
    _environment_language.cache_clear()


def test_a_chosen_language_wins() -> None:
    try:
        choose_language("zh")
        assert (process_language(), translate("items")) == ("zh", CHINESE["items"])
    finally:
        choose_language(None)
    assert process_language() == "en"


def test_a_wrong_setting_is_told_in_one_language(tmp_path: Path) -> None:
    with pytest.raises(errors.SettingError) as caught:
        load_settings(directory=tmp_path, environment={"HEADWATER_PORT": "-1"})
    assert caught.value.render("zh") == "HEADWATER_PORT = -1 不合规（环境变量）：应为 0 到 65535 之间的整数"


def test_an_error_speaks_both_languages() -> None:
    error = InputError("--config {text} is not KEY=VALUE", text="x")
    assert error.render("en") == "--config x is not KEY=VALUE"
    assert error.render("zh") == "--config x 不是 KEY=VALUE 的形式"
    assert translate("a text without a translation", "zh") == "a text without a translation"


def test_an_error_that_was_stored_in_english_is_retold() -> None:
    stored = "https://a.example/feed: no connection to a.example (refused)."
    assert retell(stored, "en") == stored
    assert retell(stored, "zh") == "https://a.example/feed：无法连接到 a.example（refused）。"
    assert "33" in retell(
        "https://a.example/: no article was found in the page (33 characters of text)", "zh"
    )
    for other in ("something else", "https://a.example/ gone: this is gone for good (status 410).", "", ": "):
        assert retell(other, "zh") == other


@pytest.mark.parametrize("text", ["http://a.example/: the expression " + "= " * 40_000, "{url}: " * 20_000])
def test_retelling_takes_linear_time(text: str) -> None:
    begin = time.perf_counter()
    retell(text, "zh")
    assert time.perf_counter() - begin < 1
