"""Rules of the house that no tool checks by itself: borders, mirrors, money, templates, time."""

from __future__ import annotations

import ast
import hashlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("app", "hits", "inference", "payments", "qualification")

#: Fewer statements inside functions than this is declaration, not logic.
LOGIC_STATEMENTS = 6


def modules(*packages: str) -> list[Path]:
    """Every Python file of the packages but the migrations that alembic writes."""
    return sorted(
        path
        for package in packages or PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if "migrations" not in path.parts
    )


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def statements_in_functions(tree: ast.Module) -> int:
    """Count the statements that functions and methods run, docstrings and bare ellipses left out."""
    found: set[ast.stmt] = set()
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) and function.name != "__init__":
            for statement in function.body:
                found.update(node for node in ast.walk(statement) if isinstance(node, ast.stmt))
    return sum(not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)) for node in found)


def mirror_of(path: Path) -> Path:
    relative = path.relative_to(ROOT)
    stem = relative.parent.name if path.name == "__init__.py" else path.stem.lstrip("_")
    folder = relative.parent.parent if path.name == "__init__.py" else relative.parent
    beside = ROOT / "tests" / folder / f"test_{stem}.py"
    inside = ROOT / "tests" / relative.parent / f"test_{stem}.py"
    return inside if path.name == "__init__.py" and inside.exists() else beside


def test_the_import_contracts_hold() -> None:
    run = subprocess.run(
        [sys.executable, "-c", "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports())"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.returncode == 0, run.stdout + run.stderr


def test_every_module_with_logic_has_a_test_module_at_the_same_place() -> None:
    missing = [
        f"{name_of(path)} has no {name_of(mirror_of(path))}"
        for path in modules()
        if statements_in_functions(tree_of(path)) >= LOGIC_STATEMENTS and not mirror_of(path).exists()
    ]

    assert not missing, "\n".join(missing)


def test_every_test_folder_is_a_package() -> None:
    folders = {path.parent for path in (ROOT / "tests").rglob("test_*.py")}

    assert [name_of(folder) for folder in sorted(folders) if not (folder / "__init__.py").exists()] == []


def test_every_module_says_what_it_is_for() -> None:
    assert [name_of(path) for path in modules() if not ast.get_docstring(tree_of(path))] == []


def test_no_module_is_a_drawer_for_odds_and_ends() -> None:
    drawers = {"utils", "util", "helpers", "helper", "common", "manager", "misc", "data"}

    assert [name_of(path) for path in modules() if path.stem in drawers or path.parent.name in drawers] == []


def test_assert_is_the_word_of_tests_only() -> None:
    found = [
        f"{name_of(path)}:{node.lineno}"
        for path in modules()
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Assert)
    ]

    assert found == []


def test_money_never_meets_a_float() -> None:
    files = [
        *modules("payments", "hits/mturk", "app/finance"),
        ROOT / "hits/money.py",
        ROOT / "hits/marketplace/money.py",
        ROOT / "hits/marketplace/fees.py",
    ]

    found = [
        f"{name_of(path)}:{node.lineno}"
        for path in files
        for node in ast.walk(tree_of(path))
        if (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "float")
        or (isinstance(node, ast.Constant) and isinstance(node.value, float))
    ]

    assert found == []


def test_the_present_always_has_a_time_zone() -> None:
    found = [
        f"{name_of(path)}:{node.lineno}"
        for path in modules()
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and (
            node.func.attr in ("utcnow", "utcfromtimestamp", "today")
            or (node.func.attr == "now" and "datetime" in ast.unparse(node.func.value) and not node.args)
        )
    ]

    assert found == []


def templates() -> Iterator[tuple[str, str]]:
    for path in sorted((ROOT / "templates").rglob("*.html")):
        yield name_of(path), re.sub(r"{#.*?#}", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)


INLINE = {
    "a script in the page": re.compile(r"<script(?![^>]*\ssrc=)", re.IGNORECASE),
    "a style element": re.compile(r"<style", re.IGNORECASE),
    "a style attribute": re.compile(r"<[^>]*\sstyle\s*=", re.IGNORECASE),
    "an event attribute": re.compile(r"<[^>]*\son[a-z]+\s*=\s*[\"']", re.IGNORECASE),
    "a javascript address": re.compile(r"[\"']\s*javascript:", re.IGNORECASE),
    "markup that is not escaped": re.compile(r"\|\s*safe\b"),
}


@pytest.mark.parametrize("kind", sorted(INLINE))
def test_templates_hold_nothing_that_the_content_policy_forbids(kind: str) -> None:
    found = [f"{name}: {match.group(0)[:60]}" for name, text in templates() for match in INLINE[kind].finditer(text)]

    assert found == []


def test_pages_load_nothing_from_other_hosts() -> None:
    loads = re.compile(r"<(?:script|link|img|iframe|source|video|audio)\b[^>]*(?:src|href)=[\"'](?:https?:)?//", re.I)
    found = [f"{name}: {match.group(0)[:80]}" for name, text in templates() for match in loads.finditer(text)]
    for path in sorted((ROOT / "app/static/css").rglob("*.css")):
        found += [name_of(path) for _ in re.finditer(r"url\(\s*[\"']?(?:https?:)?//", path.read_text(encoding="utf-8"))]

    assert found == []


def test_every_vendored_file_is_listed_with_its_hash() -> None:
    folder = ROOT / "app/static/vendor"
    notice = (folder / "NOTICE.md").read_text(encoding="utf-8")

    files = [path for path in sorted(folder.iterdir()) if path.suffix in (".js", ".css")]
    unlisted = [path.name for path in files if path.name not in notice]
    changed = [path.name for path in files if hashlib.sha256(path.read_bytes()).hexdigest() not in notice]

    assert files
    assert unlisted == []
    assert changed == []


def test_nothing_sleeps_but_the_launcher_the_crowd_and_who_waits_for_another_process() -> None:
    allowed = {"app/cli/processes.py", "app/cli/demo.py", "hits/db.py"}
    found = [
        f"{name_of(path)}:{node.lineno}"
        for path in modules()
        if name_of(path) not in allowed
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("time.sleep", "sleep")
    ]

    assert found == []
