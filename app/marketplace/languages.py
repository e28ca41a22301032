"""The language of a page: the worker's choice, else the browser's, of those that have a translation; else English."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import flask_babel
from babel import Locale, dates
from babel.support import NullTranslations, Translations
from flask import Flask, current_app, g, has_request_context, request
from flask_babel import Babel, get_locale, get_translations

from hits.marketplace.words import Words

FOLDER = Path(__file__).with_name("translations")
ENGLISH = "en"
CATALOG = "messages"


def init_languages(app: Flask, folder: Path = FOLDER) -> None:
    """Give templates `_()`, `ngettext()` and `{% trans %}`, and let them print Words in the page's language."""
    app.config["MARKETPLACE_LANGUAGES"] = languages(folder)
    Babel(
        app,
        default_locale=ENGLISH,
        default_translation_directories=str(folder),
        default_domain=CATALOG,
        locale_selector=chosen,
    )
    app.jinja_env.finalize = translated
    app.jinja_env.filters.update(moment=moment, calendar_day=calendar_day)
    app.context_processor(
        lambda: {
            "page_lang": str(get_locale() or ENGLISH).replace("_", "-"),
            "text_direction": (get_locale() or Locale(ENGLISH)).text_direction,
        }
    )


def languages(folder: Path = FOLDER) -> Mapping[str, str]:
    """Return the languages there are pages in, as {"de": "Deutsch"}; English is always among them."""
    codes = {ENGLISH, *(path.parents[1].name for path in folder.glob(f"*/LC_MESSAGES/{CATALOG}.mo"))}
    return {code: Locale.parse(code).get_display_name() or code for code in sorted(codes)}


def chosen() -> str:
    """Return the language of this request's page."""
    if not has_request_context():
        return ENGLISH
    known: Mapping[str, str] = _known()
    wanted = g.get("language")
    if wanted in known:
        return str(wanted)
    # English first: whoever takes any language gets it.
    offered = (ENGLISH, *(code.replace("_", "-") for code in known))
    found = request.accept_languages.best_match(offered)
    return found.replace("-", "_") if found else ENGLISH


def translated(value: Any) -> Any:
    """Return Words in the language of the page, and anything else as it is."""
    return say(get_translations(), value) if isinstance(value, Words) else value


def gettext(text: str, /, **values: object) -> str:
    """Return a sentence in the page's language, its `%(name)s` filled in."""
    return str(flask_babel.gettext(text, **values))


def ngettext(one: str, many: str, num: int, /, **values: object) -> str:
    """Return one of two sentences by a number, which both can name as `%(num)d`, in the page's language."""
    return str(flask_babel.ngettext(one, many, num, **values))


def moment(at: datetime) -> str:
    """Return a date and a time of UTC, as the page's language writes them."""
    return str(dates.format_datetime(at, "d MMM yyyy, HH:mm", tzinfo=UTC, locale=get_locale() or ENGLISH))


def calendar_day(day: date) -> str:
    """Return a date, as the page's language writes it."""
    return str(dates.format_date(day, "d MMM yyyy", locale=get_locale() or ENGLISH))


def translate(language: str | None, said: Words) -> str:
    """Return Words in a language, outside of a request: for mail."""
    return say(Translations.load(str(FOLDER), [language or ENGLISH], CATALOG), said)


def say(translations: NullTranslations, said: Words) -> str:
    """Return Words as these translations have them."""
    values = {
        name: say(translations, value) if isinstance(value, Words) else value for name, value in said.values.items()
    }
    if said.plural is None:
        pattern = translations.ugettext(said.text)
    else:
        pattern = translations.ungettext(said.text, said.plural, int(said.values["count"]))
    return str(pattern % values if values else pattern)


def _known() -> Mapping[str, str]:
    found: Mapping[str, str] = current_app.config["MARKETPLACE_LANGUAGES"]
    return found
