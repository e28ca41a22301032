"""Accounts of the people who run collections and pay: made, given a new password, closed. Commits."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.models import ROLES, AuditEntry, StaffUser
from hits.clock import Clock
from hits.errors import InvalidInput, NotFound

MIN_PASSWORD_CHARACTERS = 12
_NAME_CHARACTERS = 80


def add_staff(session: Session, clock: Clock, name: str, password: str, roles: Sequence[str]) -> StaffUser:
    """Make an account. Raises InvalidInput for a taken or unusable name, a short password, or unknown roles."""
    name = name.strip()
    if not name or len(name) > _NAME_CHARACTERS or not name.isprintable():
        raise InvalidInput(f"{name!r} is not a name for an account. Use 1 to {_NAME_CHARACTERS} printable characters.")
    unknown = sorted(set(roles) - set(ROLES))
    if unknown or not roles:
        raise InvalidInput(f"The roles are {', '.join(ROLES)}; given was {', '.join(unknown) or 'none'}.")
    if session.scalar(select(StaffUser.id).where(StaffUser.name == name)) is not None:
        raise InvalidInput(f"There is already an account {name!r}. Choose another name, or give it a new password.")
    user = StaffUser(name=name, roles=sorted(set(roles)), created_at=clock.now())
    user.set_password(_checked(password))
    session.add(user)
    _note(session, clock, "staff.add", name)
    session.commit()
    return user


def set_staff_password(session: Session, clock: Clock, name: str, password: str) -> None:
    """Give an account a new password. Raises NotFound, InvalidInput."""
    _account(session, name).set_password(_checked(password))
    _note(session, clock, "staff.password", name)
    session.commit()


def close_staff(session: Session, clock: Clock, name: str) -> None:
    """Close an account: it is signed out at its next request and can't sign in again. Raises NotFound."""
    _account(session, name).active = False
    _note(session, clock, "staff.close", name)
    session.commit()


def _account(session: Session, name: str) -> StaffUser:
    user = session.scalar(select(StaffUser).where(StaffUser.name == name))
    if user is None:
        raise NotFound(f"There is no account {name!r}. `dynahit staff list` shows those there are.")
    return user


def _checked(password: str) -> str:
    if len(password) < MIN_PASSWORD_CHARACTERS:
        raise InvalidInput(
            f"A password has {MIN_PASSWORD_CHARACTERS} characters or more; this one has {len(password)}."
        )
    return password


def _note(session: Session, clock: Clock, action: str, name: str) -> None:
    entry = AuditEntry(at=clock.now(), staff_name="(command line)", action=action, subject=f"staff {name}", detail={})
    session.add(entry)
