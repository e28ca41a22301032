"""Which language a page speaks, and how sentences reach it."""

from __future__ import annotations

from pathlib import Path

import pytest
from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from flask import Flask, g, render_template_string

from app.marketplace import languages
from app.marketplace.languages import init_languages
from hits.marketplace.words import counted, words


def translation(folder: Path, code: str, sentences: dict[str | tuple[str, str], str | tuple[str, ...]]) -> None:
    """Write a compiled translation."""
    catalog = Catalog(locale=code)
    for english, other in sentences.items():
        catalog.add(english, other)
    path = folder / code / "LC_MESSAGES" / "messages.mo"
    path.parent.mkdir(parents=True)
    with path.open("wb") as file:
        write_mo(file, catalog)


@pytest.fixture
def speaking(tmp_path: Path) -> Flask:
    translation(
        tmp_path,
        "de",
        {
            "Sign in": "Anmelden",
            "%(what)s is taken.": "%(what)s ist vergeben.",
            "the name": "der Name",
            ("One answer", "%(count)d answers"): ("Eine Antwort", "%(count)d Antworten"),
        },
    )
    translation(tmp_path, "ar", {"Sign in": "تسجيل الدخول"})
    app = Flask("app")
    init_languages(app, tmp_path)

    @app.get("/")
    def page() -> str:
        return render_template_string(
            "{{ page_lang }} {{ text_direction }} {{ _('Sign in') }} {{ taken }} {{ many }}",
            taken=words("%(what)s is taken.", what=words("the name")),
            many=counted("One answer", "%(count)d answers", 2),
        )

    return app


@pytest.mark.parametrize(
    ("accepted", "page"),
    [
        (None, "en ltr Sign in the name is taken. 2 answers"),
        ("fr", "en ltr Sign in the name is taken. 2 answers"),
        ("fr, de;q=0.8, en;q=0.5", "de ltr Anmelden der Name ist vergeben. 2 Antworten"),
        ("de-AT", "de ltr Anmelden der Name ist vergeben. 2 Antworten"),
        ("ar", "ar rtl تسجيل الدخول the name is taken. 2 answers"),
        ("\x00;;q=x, *", "en ltr Sign in the name is taken. 2 answers"),
    ],
)
def test_the_browser_chooses_among_the_languages_there_are(speaking: Flask, accepted: str | None, page: str) -> None:
    headers = {"Accept-Language": accepted} if accepted else {}

    assert speaking.test_client().get("/", headers=headers).text == page


def test_the_workers_own_choice_comes_first(speaking: Flask) -> None:
    @speaking.before_request
    def choose() -> None:
        g.language = "de"

    assert speaking.test_client().get("/", headers={"Accept-Language": "ar"}).text.startswith("de ltr Anmelden")


def test_values_are_still_escaped(speaking: Flask) -> None:
    @speaking.get("/hostile")
    def hostile() -> str:
        return render_template_string("{{ said }}", said=words("%(what)s is taken.", what="<b>"))

    assert speaking.test_client().get("/hostile").text == "&lt;b&gt; is taken."


def test_languages_name_themselves(tmp_path: Path) -> None:
    translation(tmp_path, "de", {"Sign in": "Anmelden"})

    assert languages.languages(tmp_path) == {"de": "Deutsch", "en": "English"}


def test_mail_is_translated_outside_of_a_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    translation(tmp_path, "de", {"Sign in": "Anmelden"})
    monkeypatch.setattr(languages, "FOLDER", tmp_path)

    said = words("Sign in")
    assert [languages.translate(code, said) for code in ("de", "fr", None)] == ["Anmelden", "Sign in", "Sign in"]
