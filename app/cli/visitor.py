"""A person at a browser without scripts, for the simulated crowd: pages, forms, frames, over the real HTTP doors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urljoin

import requests
from lxml import html
from lxml.html import FormElement, HtmlElement


class PageError(Exception):
    """A page was not what a visitor expects; the message has its address and what it says."""


@dataclass(frozen=True)
class Page:
    """A page as it came: its address and its content."""

    url: str
    content: HtmlElement

    def text(self, selector: str = "") -> str:
        """Return the words of the page, or of the first element that ``.class``, ``#id`` or a tag selects.

        They come on one line; empty when there is no such element.
        """
        found = self.content.xpath(_path(selector)) if selector else [self.content]
        return " ".join(str(found[0].text_content()).split()) if found else ""

    def has(self, selector: str) -> bool:
        """Tell whether the page has such an element."""
        return bool(self.content.xpath(_path(selector)))

    def forms(self, part_of_action: str, *, with_field: str = "") -> list[FormElement]:
        """Return the forms that post to an address with this in it, and have the field if one is named."""
        return [
            form
            for form in self.content.forms
            if part_of_action in str(form.get("action") or self.url) and (not with_field or with_field in form.fields)
        ]


class Visitor:
    """One person's browser, with their cookies."""

    def __init__(self) -> None:
        self._session = requests.Session()
        # Loopback is asked directly, whatever proxy the machine has.
        self._session.trust_env = False

    def close(self) -> None:
        self._session.close()

    def open(self, url: str) -> Page:
        """Return a page. Raises PageError when it is refused or can't be reached."""
        return self._page("GET", url, {})

    def send(
        self, page: Page, part_of_action: str, fields: Mapping[str, str] | None = None, *, with_field: str = ""
    ) -> Page:
        """Fill in and send a page's form, the first one that has the field if one is named; return what comes.

        Raises PageError, also when there is no such form.
        """
        forms = [form for form in page.forms(part_of_action) if not with_field or with_field in form.fields]
        if not forms:
            raise PageError(
                f"{page.url.partition('?')[0]} has no form for {part_of_action}. It says: {page.text()[:300]}"
            )
        form = forms[0]
        action = urljoin(page.url, str(form.get("action") or page.url))
        return self._page(str(form.method), action, {**dict(form.form_values()), **(fields or {})})

    def frame(self, page: Page) -> Page:
        """Return the page in the page's frame. Raises PageError when it has none."""
        found = page.content.xpath("//iframe/@src")
        if not found:
            raise PageError(f"{page.url.partition('?')[0]} has no frame. It says: {page.text()[:300]}")
        return self.open(urljoin(page.url, str(found[0])))

    def go_on(self, page: Page) -> Page:
        """Agree and go on behind a warning, where a HIT's page asks for that first. Raises PageError."""
        for form in ("/care/consent", "/care/warning"):
            if page.forms(form):
                page = self.send(page, form)
        return page

    def _page(self, method: str, url: str, fields: Mapping[str, str]) -> Page:
        # The address without its query, which may carry ids that have no place in messages.
        where = url.partition("?")[0]
        try:
            answer = self._session.request(
                method,
                url,
                params=fields if method == "GET" and fields else None,
                data=fields if method != "GET" else None,
                timeout=60,
            )
        except requests.RequestException as error:
            raise PageError(f"{where} can't be reached: {type(error).__name__}.") from error
        page = Page(answer.url, html.fromstring(answer.text or "<p></p>"))
        if answer.status_code >= 400:
            raise PageError(f"{where} answered {answer.status_code}: {page.text('main')[:400] or page.text()[:400]}")
        return page


def _path(selector: str) -> str:
    if selector.startswith("."):
        return f"//*[contains(concat(' ', normalize-space(@class), ' '), ' {selector[1:]} ')]"
    if selector.startswith("#"):
        return f"//*[@id='{selector[1:]}']"
    return f"//{selector}"
