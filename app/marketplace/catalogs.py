"""Gathers the marketplace's sentences for translation: `make messages`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import DEFAULT_KEYWORDS, extract_from_file
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

from app.marketplace.languages import CATALOG, FOLDER

ROOT = Path(__file__).resolve().parents[2]
TEMPLATE = FOLDER / f"{CATALOG}.pot"
HEADER = "# Sentences of the marketplace's pages and mails; `make messages` writes this file."
KEYWORDS = {**DEFAULT_KEYWORDS, "words": None, "counted": (1, 2)}
JINJA_OPTIONS = {"extensions": "jinja2.ext.do", "newstyle_gettext": "true"}


def sources(root: Path = ROOT) -> Iterator[tuple[str, Path]]:
    """Yield (extraction method, file) for everything that speaks to people on the marketplace's pages."""
    for package in ("app/marketplace", "hits/marketplace"):
        for path in sorted((root / package).rglob("*.py")):
            if "migrations" not in path.parts:
                yield "python", path
    templates = root / "templates"
    for path in sorted((*templates.glob("marketplace/**/*.html"), *templates.glob("_macros/*.html"))):
        yield "jinja2", path
    yield "jinja2", templates / "base.html"


def gathered(root: Path = ROOT) -> Catalog:
    """Return every sentence, with the files that it stands in."""
    catalog = Catalog(header_comment=HEADER, project="dynahit marketplace", version="1", charset="utf-8", fuzzy=False)
    for method, path in sources(root):
        options = JINJA_OPTIONS if method == "jinja2" else {}
        found = extract_from_file(method, str(path), keywords=KEYWORDS, options=options, strip_comment_tags=True)
        for _line, message, comments, context in found:
            # Line numbers would change the file with every edit above a sentence.
            catalog.add(message, locations=[(str(path.relative_to(root)), 0)], auto_comments=comments, context=context)
    return catalog


def write(catalog: Catalog, path: Path) -> None:
    """Write a catalogue, sorted, so that a change shows as the lines that it changes."""
    with path.open("wb") as file:
        write_po(file, catalog, width=110, sort_output=True, include_lineno=False)


def is_fresh(folder: Path, template: Catalog) -> bool:
    """Tell whether the stored template has these sentences and no others."""
    path = folder / TEMPLATE.name
    if not path.exists():
        return False
    with path.open("rb") as file:
        stored = read_po(file)
    return _sentences(stored) == _sentences(template)


def _sentences(catalog: Catalog) -> set[tuple[str, ...]]:
    return {(one.id,) if isinstance(one.id, str) else tuple(one.id) for one in catalog if one.id}


def _is_translated(string: str | list[str] | tuple[str, ...] | None) -> bool:
    return bool(string) if string is None or isinstance(string, str) else all(string)


def update(folder: Path = FOLDER, root: Path = ROOT) -> list[str]:
    """Rewrite the template, bring each translation up to it, compile it, and return what can be said about each."""
    template = gathered(root)
    if not is_fresh(folder, template):
        write(template, folder / TEMPLATE.name)
    said = [f"{len(template)} sentences in {TEMPLATE.name}"]
    for path in sorted(folder.glob(f"*/LC_MESSAGES/{CATALOG}.po")):
        with path.open("rb") as file:
            translation = read_po(file, locale=path.parents[1].name)
        translation.update(template)
        write(translation, path)
        with path.with_suffix(".mo").open("wb") as compiled:
            write_mo(compiled, translation)
        missing = sum(message.fuzzy or not _is_translated(message.string) for message in translation if message.id)
        said.append(f"{path.parents[1].name}: {missing} of {len(template)} not translated")
    return said


if __name__ == "__main__":
    print("\n".join(update()))  # noqa: T201  # the command's answer
