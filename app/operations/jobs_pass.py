"""One pass of the jobs process: collect, approve, decide, promise bonuses, stop rounds, open validation HITs."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from app.operations.answer_unseen import answer_unseen, waiting_unseen
from app.operations.approve import approve_submitted
from app.operations.close_round import finish_closing
from app.operations.collect import collect
from app.operations.decide import decide_pending
from app.operations.grant import settle_grants
from app.operations.measure_examples import measure_new_examples
from app.operations.plan_payouts import plan_payouts
from app.operations.practice import tell_writers
from app.operations.promote import promote_validators
from app.operations.reconcile_run import is_due, reconcile_and_tell, tell_again
from app.operations.requirements import mirror_lists
from app.operations.stop_rules import stop_rounds
from app.operations.validation_hits import open_validation_hits
from app.settings import Settings
from hits.clock import Clock
from hits.errors import HitsError, trace_of
from hits.mturk.client import MTurk
from hits.mturk.errors import MTurkUnavailable, RequirementsMismatch
from hits.predictions import Predictor
from payments.errors import PaymentsError

log = logging.getLogger(__name__)


@dataclass
class PassReport:
    """What a pass did. ``unavailable``: the marketplace did not answer, so the next pass had better wait.

    ``broken``: a step failed by our own database or program. ``stop_opening``: a validation HIT came out open to
    everybody; no more may be opened until a person has looked.
    """

    asked: int = 0
    submitted: int = 0
    examples: int = 0
    votes: int = 0
    to_review: int = 0
    closed: int = 0
    approved: int = 0
    decided: int = 0
    promised: int = 0
    granted: int = 0
    ended: int = 0
    promoted: int = 0
    listed: int = 0
    told: int = 0
    opened: int = 0
    stopped: int = 0
    taken_off: int = 0
    reconciled: int = 0
    findings: list[str] = field(default_factory=list)
    unavailable: bool = False
    broken: bool = False
    stop_opening: bool = False

    @property
    def changed(self) -> bool:
        """Whether anything was done."""
        return any(
            (
                self.asked,
                self.submitted,
                self.examples,
                self.votes,
                self.closed,
                self.approved,
                self.decided,
                self.promised,
                self.granted,
                self.ended,
                self.promoted,
                self.listed,
                self.told,
                self.opened,
                self.stopped,
                self.taken_off,
                self.reconciled,
            )
        )

    def __str__(self) -> str:
        counts = {
            "texts written unseen that a model has answered": self.asked,
            "submitted": self.submitted,
            "examples": self.examples,
            "votes": self.votes,
            "to review by you": self.to_review,
            "approved": self.approved,
            "decided": self.decided,
            "bonuses owed": self.promised,
            "qualifications granted": self.granted,
            "qualifications ended": self.ended,
            "validators made experts": self.promoted,
            "changes of workers' lists": self.listed,
            "writers told of grades": self.told,
            "validation HITs opened": self.opened,
            "HITs closed": self.closed,
            "rounds stopped": self.stopped,
            "HITs of closed rounds taken off": self.taken_off,
            "look at the books": self.reconciled,
        }
        return ", ".join(f"{count} {name}" for name, count in counts.items() if count) or "nothing new"


def jobs_pass(
    session: Session,
    mturk: MTurk,
    settings: Settings,
    clock: Clock,
    *,
    open_validation: bool = True,
    model: Callable[[], Predictor] | None = None,
) -> PassReport:
    """Run every step once. A step that fails becomes a finding with its cause and does not stop the others.

    ``model`` starts what answers texts that were written unseen; it is called when there are such texts.
    """
    report = PassReport()

    def asking() -> None:
        if model is None or not waiting_unseen(session, clock.now(), limit=1):
            session.rollback()
            return
        done = answer_unseen(session, model(), clock)
        report.asked = done.answered
        report.findings += done.findings

    def collecting() -> None:
        found = collect(session, mturk, settings, clock)
        report.submitted, report.examples, report.votes = found.submitted, found.examples, found.votes
        report.to_review, report.closed = found.to_review, found.closed
        report.findings += found.findings

    def approving() -> None:
        done = approve_submitted(session, mturk, clock)
        report.approved = done.approved
        report.findings += done.findings

    def deciding() -> None:
        report.decided = decide_pending(session, clock)

    def promising() -> None:
        done = plan_payouts(session, clock, endpoint=mturk.endpoint, approval_limit=settings.approval_limit)
        report.promised = done.new

    def granting() -> None:
        done = settle_grants(session, mturk, settings, clock)
        report.granted, report.ended = done.granted + done.found, done.ended
        report.findings += done.findings

    def promoting() -> None:
        report.promoted = promote_validators(session, mturk.endpoint, settings, clock)

    def listing() -> None:
        done = mirror_lists(session, mturk, settings, clock)
        report.listed = done.granted + done.revoked
        report.findings += done.findings

    def telling() -> None:
        report.told = tell_writers(session, mturk, clock)

    def opening() -> None:
        report.opened = open_validation_hits(session, mturk, settings, clock)

    def stopping() -> None:
        stopped = stop_rounds(session, clock)
        report.stopped = len(stopped)
        report.findings += stopped

    def taking_off() -> None:
        done = finish_closing(session, mturk, clock)
        report.taken_off = done.expired + done.withdrawn
        report.findings += done.findings

    def comparing() -> None:
        measure_new_examples(session)

    def reconciling() -> None:
        if is_due(session, mturk.endpoint, settings, clock):
            run = reconcile_and_tell(session, mturk, settings, clock)
            report.reconciled = 1
            report.findings += (
                [] if run.clean else [f"reconcile: {run.summary} `dynahit payments reconcile` shows them."]
            )
        else:
            tell_again(session, mturk.endpoint, settings, clock)
        # Whatever is to be kept was committed; what is open here was only read.
        session.rollback()

    _step(session, report, "asking about texts written unseen", asking)
    _step(session, report, "collecting", collecting)
    _step(session, report, "approving", approving)
    _step(session, report, "deciding", deciding)
    _step(session, report, "promising bonuses", promising)
    _step(session, report, "granting qualifications", granting)
    _step(session, report, "promoting validators", promoting)
    _step(session, report, "keeping the lists of workers", listing)
    _step(session, report, "telling writers of their grades", telling)
    _step(session, report, "stopping rounds", stopping)
    _step(session, report, "taking closed rounds off the site", taking_off)
    if open_validation:
        _step(session, report, "opening validation HITs", opening)
    _step(session, report, "comparing texts", comparing)
    _step(session, report, "reconciling", reconciling)
    return report


def _step(session: Session, report: PassReport, name: str, step: Callable[[], None]) -> None:
    try:
        step()
    except (HitsError, PaymentsError, SQLAlchemyError) as error:
        session.rollback()
        report.unavailable = report.unavailable or isinstance(error, MTurkUnavailable)
        report.broken = report.broken or isinstance(error, SQLAlchemyError)
        report.stop_opening = report.stop_opening or isinstance(error, RequirementsMismatch)
        cause = str(error).splitlines()[0] if isinstance(error, SQLAlchemyError) else str(error)
        report.findings.append(f"{name}: {cause}")
        log.warning("%s failed: %s", name, cause)
    except Exception as error:
        # The other steps pay people, so that they go on; where the fault arose is in the log.
        session.rollback()
        report.broken = True
        report.findings.append(f"{name}: {type(error).__name__}, a fault of this program; the log has it")
        log.error("%s failed: %s", name, trace_of(error))  # noqa: TRY400  # its words may quote a worker
