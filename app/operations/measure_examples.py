"""Compares new examples with the earlier ones of their round and with their contexts (hits.likeness)."""

from __future__ import annotations

from typing import Final

from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from hits.likeness import CHUNK, measure_examples

#: In one pass of the jobs, whose other steps pay people; what is left comes with the next.
MOST_IN_A_PASS: Final = 5_000


def measure_new_examples(session: Session, *, most: int = MOST_IN_A_PASS) -> int:
    """Measure examples that are not measured yet, the oldest first, and return how many. Commits some at a time."""
    done = 0
    while done < most:
        try:
            count = measure_examples(session, min(CHUNK, most - done))
            session.commit()
        except IntegrityError:
            # Another process measures the same ones at this moment.
            session.rollback()
            return done
        done += count
        if count < CHUNK:
            break
    return done
