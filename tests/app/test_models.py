"""The service's own tables: passwords that fit, and an audit trail that can only grow."""

from __future__ import annotations

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DatabaseError
from sqlalchemy.orm import Session

from app.models import AuditEntry, StaffUser, password_fits
from tests.factories import NOON


@pytest.mark.parametrize("statement", ["UPDATE audit_entry SET staff_name = 'nobody'", "DELETE FROM audit_entry"])
def test_the_audit_trail_can_not_be_changed(session: Session, statement: str) -> None:
    session.add(AuditEntry(at=NOON, staff_name="kim", action="month.close", subject="month 2026-10", detail={}))
    session.commit()

    with pytest.raises(DatabaseError, match="the audit trail is append-only"):
        session.execute(text(statement))
    session.rollback()

    assert session.query(AuditEntry).one().staff_name == "kim"


def test_only_the_password_of_an_open_account_fits() -> None:
    user = StaffUser(id=7, name="kim", roles=["finance"], active=True, created_at=NOON)
    user.set_password("correct horse battery")

    assert password_fits(user, "correct horse battery")
    assert not password_fits(user, "correct horse")
    assert not password_fits(None, "correct horse battery")
    user.active = False
    assert not password_fits(user, "correct horse battery")


def test_another_password_is_another_session() -> None:
    user = StaffUser(id=7, name="kim", roles=["finance"], active=True, created_at=NOON)
    user.set_password("correct horse battery")
    before = user.get_id()

    user.set_password("another horse battery")

    assert before != user.get_id()
    assert before.startswith("7.")
