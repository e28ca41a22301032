"""The sentences are gathered, and a translation follows them."""

from __future__ import annotations

from pathlib import Path

from babel.messages.pofile import read_po

from app.marketplace import catalogs
from app.marketplace.languages import FOLDER


def test_the_committed_template_has_every_sentence() -> None:
    assert catalogs.is_fresh(FOLDER, catalogs.gathered()), "Sentences have changed: run `make messages` and commit."


def a_tree(root: Path) -> Path:
    for name, text in {
        "app/marketplace/views.py": 'flash(_("You are signed out."))\nnot_said = "quiet"\n',
        "hits/marketplace/errors.py": 'words("%(name)s is taken.", name=n)\ncounted("One", "%(count)d", 2)\n',
        "templates/base.html": "{{ _('Main') }}",
        "templates/marketplace/a.html": "{% trans n=hits | length %}One HIT{% pluralize %}{{ n }} HITs{% endtrans %}",
        "templates/worker/b.html": "{{ _('Of another app') }}",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_sentences_come_from_pages_python_and_the_engine(tmp_path: Path) -> None:
    found = {message.id for message in catalogs.gathered(a_tree(tmp_path)) if message.id}

    assert found == {
        "You are signed out.",
        "%(name)s is taken.",
        ("One", "%(count)d"),
        "Main",
        ("One HIT", "%(n)s HITs"),
    }


def test_a_translation_is_brought_up_to_date_and_compiled(tmp_path: Path) -> None:
    root, folder = a_tree(tmp_path), tmp_path / "translations"
    path = folder / "de" / "LC_MESSAGES" / "messages.po"
    path.parent.mkdir(parents=True)
    path.write_text(
        'msgid ""\nmsgstr "Content-Type: text/plain; charset=utf-8\\n"\n\n'
        'msgid "Main"\nmsgstr "Hauptmenü"\n\nmsgid "Gone"\nmsgstr "Weg"\n',
        encoding="utf-8",
    )

    said = catalogs.update(folder, root)

    assert said == ["5 sentences in messages.pot", "de: 4 of 5 not translated"]
    assert path.with_suffix(".mo").stat().st_size > 0
    with path.open("rb") as file:
        kept = {message.id: message.string for message in read_po(file, locale="de") if message.id}
    assert kept["Main"] == "Hauptmenü"
    assert "Gone" not in kept
    assert catalogs.is_fresh(folder, catalogs.gathered(root))
    before = (folder / "messages.pot").stat().st_mtime_ns
    catalogs.update(folder, root)
    assert (folder / "messages.pot").stat().st_mtime_ns == before, "nothing new is nothing to write"
