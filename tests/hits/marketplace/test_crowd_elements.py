"""Which pages need elements that are not there, and what then."""

from __future__ import annotations

import pytest
from alembic import command
from sqlalchemy import text

from hits.marketplace.crowd_elements import missing
from hits.marketplace.database import engine_for
from hits.marketplace.errors import ElementsMissing, HitGroupEmpty
from hits.marketplace.questions import write_html_question
from tests.hits.marketplace.market import Market
from tests.hits.marketplace.test_database import config_for

SCRIPT = '<script src="https://assets.crowd.aws/crowd-html-elements.js"></script>'
BOXES = f"{SCRIPT}<crowd-form><crowd-bounding-box name='a'></crowd-bounding-box><crowd-LINE></crowd-LINE></crowd-form>"
KNOWN = f"{SCRIPT}<crowd-form><crowd-input name='a'></crowd-input></crowd-form>"


@pytest.mark.parametrize(
    ("page", "names"),
    [
        (BOXES, ("crowd-bounding-box", "crowd-line")),
        (BOXES.replace("crowd.aws/", "crowd.amazonaws.com/"), ("crowd-bounding-box", "crowd-line")),
        (KNOWN, ()),
        (f"{SCRIPT}<crowd-form><crowd-image-classifier overlay='{{}}'>", ("crowd-image-classifier[overlay]",)),
        (f"{SCRIPT}<crowd-form><crowd-image-classifier src='a.png'>", ()),
        # A page that brings its own elements is its own affair.
        (BOXES.replace("assets.crowd.aws", "example.org"), ()),
        (f"{SCRIPT}<form><!-- <crowd-line></crowd-line> --><my-line></my-line></form>", ()),
        ("", ()),
    ],
)
def test_what_a_page_lacks(page: str, names: tuple[str, ...]) -> None:
    assert missing(page) == names


def test_a_hit_that_lacks_elements_is_shown_with_their_names_and_cannot_be_accepted(stored_market: Market) -> None:
    worker_id = stored_market.worker()
    hit_id = stored_market.create_hit(Question=write_html_question(BOXES, 0), Title="Boxes")

    view = stored_market.engine.preview(worker_id, hit_id)

    assert view.missing_elements == ("crowd-bounding-box", "crowd-line")
    assert stored_market.engine.hit_of_group(worker_id, view.hit_group_id) == hit_id
    assert stored_market.engine.hit_groups(worker_id).total == 0
    with pytest.raises(ElementsMissing, match="crowd-bounding-box, crowd-line"):
        stored_market.engine.accept(worker_id, hit_id)
    with pytest.raises(HitGroupEmpty):
        stored_market.engine.accept_next(worker_id, view.hit_group_id)
    known = stored_market.create_hit(Question=write_html_question(KNOWN, 0))
    assert stored_market.engine.preview(worker_id, known).missing_elements == ()
    assert stored_market.engine.accept(worker_id, known).state == "Accepted"


def test_hits_of_before_are_noted_when_the_database_is_upgraded(database_url: str) -> None:
    command.upgrade(config_for(database_url), "0005")
    engine = engine_for(database_url)
    pages = {"3A": write_html_question(BOXES, 0), "3B": write_html_question(KNOWN, 0), "3C": "<ExternalQuestion/>"}
    pages["3D"] = pages["3A"].replace("<![CDATA[", "").replace("]]>", "").replace("<crowd", "&lt;crowd")
    moment = "2026-11-30 12:00:00"
    with engine.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO mp_requester (requester_id, name, created_at, deposited_cents, held_cents, spent_cents) "
                f"VALUES ('A1', 'Lab', '{moment}', 100, 36, 0)"
            )
        )
        connection.execute(
            text(
                "INSERT INTO mp_hit_type (hit_type_id, hit_group_id, requester_id, fingerprint, title, description, "
                "keywords, reward_cents, duration_seconds, auto_approval_seconds, requirements, created_at) "
                f"VALUES ('3T', '3G', 'A1', 'f', 't', 'd', '', 30, 600, 60, '[]', '{moment}')"
            )
        )
        for hit_id, question in pages.items():
            connection.execute(
                text(
                    "INSERT INTO mp_hit (hit_id, requester_id, hit_type_id, created_at, expires_at, is_expired, "
                    "status, max_assignments, pending, submitted, completed, reward_cents, fee_cents, question, "
                    f"external_url, frame_height) VALUES ('{hit_id}', 'A1', '3T', '{moment}', '{moment}', false, "
                    "'Assignable', 1, 0, 0, 0, 30, 6, :question, '', 0)"
                ),
                {"question": question},
            )

    command.upgrade(config_for(database_url), "head")

    with engine.connect() as connection:
        found = {row.hit_id: row.missing_elements for row in connection.execute(text("SELECT * FROM mp_hit"))}
    engine.dispose()
    both = "crowd-bounding-box crowd-line"
    assert found == {"3A": both, "3B": None, "3C": None, "3D": both}
