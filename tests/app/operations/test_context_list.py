"""What is listed of a round's contexts; more of it in test_upload_contexts."""

from __future__ import annotations

import pytest
from sqlalchemy.orm import Session

from app.operations.context_list import contexts_listed
from hits.clock import FixedClock
from hits.errors import NotFound
from tests.factories import make_hit


def test_a_context_from_a_launch_s_own_file_has_no_source(session: Session, clock: FixedClock) -> None:
    make_hit(session)
    session.commit()

    found = contexts_listed(session, clock, "sentiment", 1)

    assert [(one.upload, one.line, one.known.held) for one in found.contexts] == [(None, None, 1)]
    assert found.as_json()["contexts"][0]["context"] == found.contexts[0].digest[:8]
    with pytest.raises(NotFound):
        contexts_listed(session, clock, "sentiment", 2)
