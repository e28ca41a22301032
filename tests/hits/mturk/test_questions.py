"""Question XML says what it was given and nothing else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from hits.mturk.questions import EXTERNAL_QUESTION, QUESTION_FORM, external_question, notice_form

PRINTABLE = st.text(st.characters(min_codepoint=33, max_codepoint=0xFFFD, exclude_categories=("Cs", "Cc")))


def read(xml: str) -> tuple[str | None, str | None]:
    root = etree.fromstring(xml.encode(), etree.XMLParser(resolve_entities=False, no_network=True))
    assert root.tag == f"{{{EXTERNAL_QUESTION}}}ExternalQuestion"
    assert [etree.QName(child).localname for child in root] == ["ExternalURL", "FrameHeight"]
    return root[0].text, root[1].text


def test_an_external_question_carries_address_and_height() -> None:
    xml = external_question("https://hits.example.org/work/abc?a=1&b=<2>", 600)

    assert read(xml) == ("https://hits.example.org/work/abc?a=1&b=<2>", "600")
    assert "&amp;" in xml


@given(path=PRINTABLE)
def test_no_address_can_break_out_of_its_element(path: str) -> None:
    url = f"https://hits.example.org/{path}"

    assert read(external_question(url)) == (url, "0")


@given(title=PRINTABLE, text=PRINTABLE)
def test_a_notice_says_what_it_was_given_and_asks_one_question_that_may_stay_empty(title: str, text: str) -> None:
    root = etree.fromstring(notice_form(title, text, "Anything else?").encode())

    words = {
        name: root.findtext(f"{{{QUESTION_FORM}}}Overview/{{{QUESTION_FORM}}}{name}") for name in ("Title", "Text")
    }
    assert words == {"Title": title, "Text": text}
    [question] = root.findall(f"{{{QUESTION_FORM}}}Question")
    assert question.findtext(f"{{{QUESTION_FORM}}}IsRequired") == "false"
    assert [etree.QName(child).localname for child in question] == [
        "QuestionIdentifier",
        "IsRequired",
        "QuestionContent",
        "AnswerSpecification",
    ]
