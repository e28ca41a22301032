"""ExternalQuestion in all its wrong forms."""

from __future__ import annotations

import pytest

from hits.marketplace.errors import MarketplaceError
from hits.marketplace.questions import HTML_QUESTION, HitQuestion, read_question, write_html_question
from tests.hits.marketplace.forms_for_tests import TEST, question_form
from tests.hits.marketplace.market import EXTERNAL_NAMESPACE, external_question

BOMB = (
    '<?xml version="1.0"?><!DOCTYPE b [<!ENTITY a "aaaaaaaaaa">'
    + "".join(f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 10}">' for n in range(9))
    + "]><ExternalQuestion>&j;</ExternalQuestion>"
)
EXTERNAL_ENTITY = '<!DOCTYPE q [<!ENTITY f SYSTEM "file:///etc/passwd">]>' + external_question(
    "https://example.org/&f;"
)


def test_a_question_is_read_with_its_ampersands() -> None:
    assert read_question(
        external_question("https://example.org/p?a=1&amp;b=2", "600"), allow_http_loopback=False
    ) == HitQuestion("ExternalQuestion", 600, url="https://example.org/p?a=1&b=2")


def test_white_space_comments_cdata_and_a_declaration_are_fine() -> None:
    text = f"""<?xml version="1.0" encoding="UTF-8"?>
    <!-- by hand --><e:ExternalQuestion xmlns:e="{EXTERNAL_NAMESPACE}">
      <e:ExternalURL> <![CDATA[https://example.org/?a=1&b=2]]> </e:ExternalURL>
      <!-- whole window --><e:FrameHeight> 0 </e:FrameHeight>
    </e:ExternalQuestion>"""

    assert read_question(text.strip(), allow_http_loopback=False).url == "https://example.org/?a=1&b=2"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not xml",
        "<ExternalQuestion/>",
        external_question().replace("2006-07-14", "2007-01-01"),
        external_question().replace(f' xmlns="{EXTERNAL_NAMESPACE}"', ""),
        f'<ExternalQuestion xmlns="{EXTERNAL_NAMESPACE}"><FrameHeight>0</FrameHeight></ExternalQuestion>',
        external_question("https://example.org/?a=1&b=2"),
        external_question("https://example.org/<b>x</b>"),
        external_question(height="-1"),
        external_question(height="1.5"),
        external_question(height="٣"),
        external_question(height=""),
        external_question(height="9" * 5000),
        BOMB,
        EXTERNAL_ENTITY,
        external_question().replace("<ExternalURL>", "<ExternalURL>" + "<a>" * 5000),
        '<QuestionForm xmlns="x"/>',
        '<HTMLQuestion xmlns="x"/>',
    ],
)
def test_text_that_is_no_external_question(text: str) -> None:
    with pytest.raises(MarketplaceError) as caught:
        read_question(text, allow_http_loopback=True)

    assert caught.value.type == "ParameterValidationError"
    assert "root:" not in caught.value.message
    assert len(caught.value.message) < 1000


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org/",
        "http://localhost.example.org/",
        "http://127.0.0.1.example.org/",
        "http://0.0.0.0/",
        "http://10.0.0.1/",
        "http://user@localhost/",
        "https://user:pw@example.org/",
        "ftp://localhost/",
        "javascript:alert(1)",
        "//example.org/",
        "/path",
        "https://",
        "https://exa mple.org/",
        "https://[::1/",
        "https://example.org:99999/",
        "https://ex\u0430mple.org/",
        "https://x;sandbox/",
        "https://x,y/",
        "https://x'/",
        "https://*/",
        "",
    ],
)
def test_addresses_that_are_refused(url: str) -> None:
    with pytest.raises(MarketplaceError):
        read_question(external_question(url), allow_http_loopback=True)


@pytest.mark.parametrize(
    "url", ["http://localhost:8001/a", "http://127.0.0.1/", "http://127.8.8.8/", "http://[::1]:80/"]
)
def test_plain_http_is_for_loopback_and_only_where_it_is_allowed(url: str) -> None:
    assert read_question(external_question(url), allow_http_loopback=True).url == url
    with pytest.raises(MarketplaceError, match="must use https"):
        read_question(external_question(url), allow_http_loopback=False)


PAGE = "<!DOCTYPE html><html><body><form action='/mturk/externalSubmit'><input name='a'></form></body></html>"
XHTML = f'<?xml version="1.0" encoding="UTF-8"?>{PAGE}'


def test_html_is_kept_to_the_letter() -> None:
    for page in (PAGE, f"{PAGE}<!-- ]]> -->", "<crowd-form><p>caf\u00e9 & more</crowd-form>", XHTML):
        read = read_question(write_html_question(page, 450), allow_http_loopback=False)

        assert read == HitQuestion("HTMLQuestion", 450, html=page)


@pytest.mark.parametrize(
    "text",
    [
        write_html_question("<p>No form</p>", 0),
        write_html_question("", 0),
        write_html_question("   ", 0),
        write_html_question(PAGE, 0).replace("FrameHeight", "Height"),
        write_html_question(PAGE, 0).replace(HTML_QUESTION, EXTERNAL_NAMESPACE),
        write_html_question(PAGE, 0).replace("<![CDATA[", "<p/>").replace("]]>", ""),
        "<QuestionForm/>",
        question_form("<Overview><Text>Nothing to answer</Text></Overview>"),
    ],
)
def test_html_and_forms_that_are_refused(text: str) -> None:
    with pytest.raises(MarketplaceError) as caught:
        read_question(text, allow_http_loopback=False)

    assert caught.value.type == "ParameterValidationError"


def test_bad_html_is_refused_in_mturks_words() -> None:
    with pytest.raises(MarketplaceError, match=r"There was an error parsing the HTML5 data in your request\.  Please"):
        read_question(write_html_question("<p>No form</p>", 0), allow_http_loopback=False)


def test_a_form_is_read() -> None:
    read = read_question(TEST, allow_http_loopback=False)

    assert (read.kind, read.url, read.html, read.frame_height) == ("QuestionForm", None, None, 0)
    assert read.form is not None
    assert len(read.form.questions) == 2
