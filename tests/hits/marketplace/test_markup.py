"""The part of XHTML that a form may carry."""

from __future__ import annotations

import pytest

from hits.marketplace.errors import MarketplaceError
from hits.marketplace.markup import read_markup


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("plain &amp; &lt;simple&gt;", "plain &amp; &lt;simple&gt;"),
        ("<p>a<br/>b</p>", "<p>a<br>b</p>"),
        ("caf&eacute;&nbsp;&hellip;", "café\xa0…"),
        (
            '<a href="https://example.org/?a=1&amp;b=2" target="_self">x</a>',
            '<a href="https://example.org/?a=1&amp;b=2" target="_blank" rel="noopener noreferrer">x</a>',
        ),
        (
            '<img src="https://example.org/a.png" alt="&quot;A&quot;"/>',
            '<img src="https://example.org/a.png" alt=\'"A"\'>',
        ),
        ("<!-- gone --><i>kept</i>", "<i>kept</i>"),
        ("<table><tr><td colspan='2'>1</td></tr></table>", '<table><tr><td colspan="2">1</td></tr></table>'),
    ],
)
def test_what_is_allowed_comes_back_as_html(given: str, shown: str) -> None:
    assert read_markup("Question", given).replace("&quot;", '"') == shown.replace("&quot;", '"')


@pytest.mark.parametrize(
    "given",
    [
        "<script>alert(1)</script>",
        "<SCRIPT>alert(1)</SCRIPT>",
        "<p onclick='alert(1)'>x</p>",
        "<p style='color: red'>x</p>",
        "<a href='javascript:alert(1)'>x</a>",
        "<a href=' JaVaScRiPt:alert(1)'>x</a>",
        "<a href='/relative'>x</a>",
        "<a href='https://[bad'>x</a>",
        "<img src='data:image/png;base64,AAAA'/>",
        "<iframe src='https://example.org/'/>",
        "<form><input/></form>",
        "<svg xmlns='http://www.w3.org/2000/svg'/>",
        "<p>unclosed",
        "</div><p>out of its box</p><div>",
        "&undefined;",
        "<!DOCTYPE div><p/>",
    ],
)
def test_what_is_not_is_refused(given: str) -> None:
    with pytest.raises(MarketplaceError) as caught:
        read_markup("Question", given)

    assert caught.value.type == "ParameterValidationError"
