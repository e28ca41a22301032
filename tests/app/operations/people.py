"""What writers and validators do on the pages, without the pages: for tests of what happens to their work after."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.settings import Settings
from hits import attempts, validations
from hits.clock import FixedClock
from hits.models import Assignment, Hit
from hits.predictions import Prediction
from hits.tasks import task
from tests.factories import make_consent_text
from tests.market import Market

LABELS = task("sentiment").label_codes


def hit_row(session: Session, mturk_hit_id: str) -> Hit:
    return session.execute(select(Hit).where(Hit.mturk_hit_id == mturk_hit_id)).scalar_one()


def assignment_row(session: Session, mturk_assignment_id: str) -> Assignment:
    return session.execute(
        select(Assignment)
        .where(Assignment.mturk_assignment_id == mturk_assignment_id)
        .execution_options(populate_existing=True)
    ).scalar_one()


class Crowd:
    """People on one market whose pages are opened and filled in directly."""

    def __init__(self, session: Session, market: Market, settings: Settings, clock: FixedClock) -> None:
        self.session = session
        self.market = market
        self.settings = settings
        self.clock = clock

    def open(self, worker_id: str, mturk_hit_id: str, *, as_worker: str | None = None) -> str:
        """Accept a HIT and open its page; ``as_worker`` forges the worker id of the frame."""
        assignment_id = self.market.accept(worker_id, mturk_hit_id)
        row = attempts.open_assignment(
            self.session,
            hit_row(self.session, mturk_hit_id),
            mturk_assignment_id=assignment_id,
            mturk_worker_id=as_worker or worker_id,
            pseudonym_key=self.settings.pseudonym_key.get_secret_value(),
            deadline=self.clock.now() + timedelta(hours=1),
            now=self.clock.now(),
        )
        # They have agreed and were warned.
        row.consent_text_id = make_consent_text(self.session).id
        row.warned_at = self.clock.now()
        self.session.commit()
        return assignment_id

    def ask(self, assignment_id: str, text: str, *, fools: bool) -> None:
        """Show a statement to a model that is fooled or not."""
        row = assignment_row(self.session, assignment_id)
        goal = row.hit.goal_label or ""
        said = next(label for label in LABELS if (label != goal) is fools)
        attempt, must_ask = attempts.begin_attempt(self.session, row, {"statement": text}, self.clock.now())
        assert must_ask
        chances = {label: 0.9 if label == said else 0.05 for label in LABELS}
        attempts.record_prediction(
            self.session, attempt, Prediction("embedded:sentiment", "r1", said, chances, 3.0), self.clock.now()
        )
        self.session.commit()

    def save(self, assignment_id: str) -> None:
        """Press Submit on a creation page."""
        attempts.save_submission(self.session, assignment_row(self.session, assignment_id), "", self.clock.now())
        self.session.commit()

    def write(self, worker_id: str, mturk_hit_id: str, texts: Mapping[str, bool]) -> str:
        """Do a creation HIT from accepting to submitting; ``texts`` tells which statement fools the model."""
        assignment_id = self.open(worker_id, mturk_hit_id)
        for text, fools in texts.items():
            self.ask(assignment_id, text, fools=fools)
        self.save(assignment_id)
        self.market.submit(assignment_id)
        return assignment_id

    def judge(self, worker_id: str, mturk_hit_id: str, *, label: str | None = None, save: bool = True) -> str:
        """Do a validation HIT, agreeing with the writer unless a label is given."""
        assignment_id = self.open(worker_id, mturk_hit_id)
        row = assignment_row(self.session, assignment_id)
        for item in validations.draw(self.session, row, self.clock.now()):
            goal = item.example.goal_label if item.example is not None else ""
            validations.record_vote(self.session, row, item.id, label=label or goal, now=self.clock.now())
        if save:
            validations.save_votes(self.session, row, self.clock.now())
        self.session.commit()
        self.market.submit(assignment_id)
        return assignment_id
