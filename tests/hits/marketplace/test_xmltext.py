"""The hardened parser and the characters XML can carry."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from hits.marketplace.errors import MarketplaceError
from hits.marketplace.xmltext import legal, parse


@given(st.text())
def test_legal_text_can_be_written_and_what_was_legal_is_kept(text: str) -> None:
    element = etree.Element("a")

    element.text = legal(text)

    assert legal(legal(text)) == legal(text)
    assert all(character in text for character in legal(text))


def test_what_is_illegal_is_left_out_and_nothing_else() -> None:
    assert legal("a\x00\x0b\ud800\ufffe\uffffb\t\r\n\x85🙂") == "ab\t\r\n\x85🙂"


@pytest.mark.parametrize(
    "text",
    [
        "<!DOCTYPE a><a/>",
        '<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>',
        '<!DOCTYPE a SYSTEM "http://127.0.0.1:1/x.dtd"><a/>',
        '<?xml version="1.0" encoding="UTF-16"?><a/>',
        "<a>" * 100_000,
        "<a>&#0;</a>",
    ],
)
def test_documents_that_are_refused(text: str) -> None:
    with pytest.raises(MarketplaceError) as caught:
        parse("Question", text)

    assert caught.value.type == "ParameterValidationError"
    assert "Question" in caught.value.message
