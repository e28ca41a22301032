"""Runs review policies when work comes in, and reports what they found and did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final

from lxml import etree
from sqlalchemy import delete, select

from hits.marketplace import accounts, events, lifecycle, paging, review_policies
from hits.marketplace.errors import MarketplaceError
from hits.marketplace.identifiers import new_entity_id
from hits.marketplace.tables import AssignmentRow, HitRow, RequesterRow, ReviewEntryRow
from hits.marketplace.transactions import Transaction
from hits.marketplace.xmltext import parse

Params = dict[str, Any]
Answers = Mapping[str, frozenset[str]]
_LONGEST_COMPARED: Final = 256
_FEW: Final = 10
_PAGE: Final = 100
_REJECTED: Final = "Your answers did not agree with those that this HIT is checked by."


def finish(transaction: Transaction) -> None:
    """Review what was submitted and what became reviewable in this transaction; then tell that HITs are reviewable."""
    while transaction.submitted or transaction.reviewable:
        if transaction.submitted:
            _review_assignment(transaction, transaction.submitted.pop(0))
        else:
            _review_hit(transaction, transaction.reviewable.pop(0))


def list_results(transaction: Transaction, requester_id: str, params: Params) -> Params:
    """Carry out ListReviewPolicyResultsForHIT: results and actions in the order in which they came about."""
    hit = lifecycle.own_hit(transaction, requester_id, params["HITId"])
    kinds = {"result": params.get("RetrieveResults", True), "action": params.get("RetrieveActions", True)}
    levels = params.get("PolicyLevels") or ["Assignment", "HIT"]
    query = select(ReviewEntryRow).where(
        ReviewEntryRow.hit_id == hit.hit_id,
        ReviewEntryRow.level.in_(levels),
        ReviewEntryRow.kind.in_([kind for kind, wanted in kinds.items() if wanted]),
    )
    last = paging.after(params, "ListReviewPolicyResultsForHIT")
    if last is not None:
        query = query.where(ReviewEntryRow.seq > last[0])
    size = int(params.get("MaxResults", _PAGE))
    rows = transaction.session.scalars(query.order_by(ReviewEntryRow.seq).limit(size)).all()
    answer = paging.page("ListReviewPolicyResultsForHIT", "Rows", rows, lambda _row: {}, lambda row: (row.seq,))
    found: Params = {"HITId": hit.hit_id}
    if "NextToken" in answer:
        found["NextToken"] = answer["NextToken"]
    for level, policy in (("Assignment", hit.assignment_policy), ("HIT", hit.hit_policy)):
        if policy is not None and level in levels:
            found[f"{level}ReviewPolicy"] = {"PolicyName": policy["PolicyName"]}
            found[f"{level}ReviewReport"] = {
                "ReviewResults": [_result_form(row) for row in rows if (row.level, row.kind) == (level, "result")],
                "ReviewActions": [_action_form(row) for row in rows if (row.level, row.kind) == (level, "action")],
            }
    return found


def answers_in(xml: str) -> Answers:
    """Return the values of each question of QuestionFormAnswers, trimmed; an empty answer has none."""
    found: dict[str, frozenset[str]] = {}
    for answer in parse("Answer", xml):
        texts = [(etree.QName(part).localname, (part.text or "").strip()) for part in answer]
        question = next((text for name, text in texts if name == "QuestionIdentifier"), "")
        found.setdefault(question, frozenset(text for name, text in texts if name != "QuestionIdentifier" and text))
    return found


def _review_assignment(transaction: Transaction, assignment_id: str) -> None:
    query = select(AssignmentRow).where(AssignmentRow.assignment_id == assignment_id)
    found = transaction.session.scalars(query).one()
    account = accounts.lock(transaction, found.requester_id)
    hit = lifecycle.lock_hit(transaction, found.hit_id)
    if hit.assignment_policy is None or found.answer is None:
        return
    policy = review_policies.read(hit.assignment_policy)
    answers = answers_in(found.answer)
    right = {question: answers.get(question) == values for question, values in policy.answer_key.items()}
    score = 100 * sum(right.values()) // len(right)
    report = _Report(transaction, hit, "Assignment")
    for question, is_right in right.items():
        report.result("Assignment", assignment_id, "KnownAnswerCorrect", str(int(is_right)), question)
    report.result("Assignment", assignment_id, "KnownAnswerScore", str(score))
    report.action(
        "review",
        "Assignment",
        assignment_id,
        lambda: f"Reviewed {len(right)} known answers; {sum(right.values())}/{len(right)} correct",
    )
    if score < policy.numbers.get("ExtendIfKnownAnswerScoreIsLessThan", 0):
        report.action("extend", "HIT", hit.hit_id, lambda: _extend(transaction, account, hit, policy))
    _decide(
        report,
        account,
        assignment_id,
        policy,
        approves=score >= policy.numbers.get("ApproveIfKnownAnswerScoreIsAtLeast", 102),
        rejects=score < policy.numbers.get("RejectIfKnownAnswerScoreIsLessThan", 0),
    )


def _review_hit(transaction: Transaction, hit_id: str) -> None:
    account_of = select(HitRow.requester_id).where(HitRow.hit_id == hit_id)
    account = accounts.lock(transaction, transaction.session.scalars(account_of).one())
    hit = lifecycle.lock_hit(transaction, hit_id)
    if hit.status == "Reviewable" and hit.hit_policy is not None:
        _compare(transaction, account, hit, review_policies.read(hit.hit_policy))
    if hit.status == "Reviewable":
        events.emit(transaction, "HITReviewable", hit)


def _compare(transaction: Transaction, account: RequesterRow, hit: HitRow, policy: review_policies.Policy) -> None:
    # Extended HITs come here again: what was found before is out of date, what was done is kept.
    transaction.session.execute(
        delete(ReviewEntryRow).where(
            ReviewEntryRow.hit_id == hit.hit_id, ReviewEntryRow.level == "HIT", ReviewEntryRow.kind == "result"
        )
    )
    report = _Report(transaction, hit, "HIT")
    compared = _compared(transaction, hit, policy)
    agreed: Params = {}
    for question in policy.question_ids:
        counts = Counter(answers[question] for answers in compared.values() if _is_comparable(answers.get(question)))
        top = counts.most_common(2)
        score = 100 * top[0][1] // len(compared) if top else 0
        is_tie = len(top) == 2 and top[0][1] == top[1][1]
        found = score > policy.numbers["QuestionAgreementThreshold"] and not is_tie
        report.result("HIT", hit.hit_id, "AgreedAnswerFound", str(found).lower(), question)
        if found:
            agreed[question] = top[0][0]
            report.result("HIT", hit.hit_id, "AgreedAnswer", ",".join(sorted(top[0][0])), question)
            report.result("HIT", hit.hit_id, "AnswerAgreementScore", str(score), question)
    hit_score = 100 * len(agreed) // len(policy.question_ids)
    report.result("HIT", hit.hit_id, "HitAgreementScore", str(hit_score))
    worker_scores: dict[str, int] = {}
    for assignment_id, answers in compared.items():
        right = [question for question, value in agreed.items() if answers.get(question) == value]
        wrong = [question for question in agreed if question not in right]
        report.result("Assignment", assignment_id, "PluralityAnswersCorrect", ",".join(right))
        report.result("Assignment", assignment_id, "PluralityAnswersIncorrect", ",".join(wrong))
        if agreed:
            worker_scores[assignment_id] = 100 * len(right) // len(agreed)
            report.result("Assignment", assignment_id, "WorkerAgreementScore", str(worker_scores[assignment_id]))
    if hit_score < policy.numbers.get("ExtendIfHITAgreementScoreIsLessThan", 0):
        report.action("extend", "HIT", hit.hit_id, lambda: _extend(transaction, account, hit, policy))
    if hit.status != "Reviewable":
        return
    for assignment_id, score in worker_scores.items():
        _decide(
            report,
            account,
            assignment_id,
            policy,
            approves=score >= policy.numbers.get("ApproveIfWorkerAgreementScoreIsAtLeast", 102),
            rejects=score < policy.numbers.get("RejectIfWorkerAgreementScoreIsLessThan", 0),
        )


def _compared(transaction: Transaction, hit: HitRow, policy: review_policies.Policy) -> dict[str, Answers]:
    states = ["Submitted", "Approved"] if policy.disregards_rejected else ["Submitted", "Approved", "Rejected"]
    least = policy.numbers.get("DisregardAssignmentIfKnownAnswerScoreIsLessThan", 0)
    known = transaction.session.execute(
        select(ReviewEntryRow.subject_id, ReviewEntryRow.value).where(
            ReviewEntryRow.hit_id == hit.hit_id, ReviewEntryRow.name == "KnownAnswerScore"
        )
    )
    disregarded = {assignment_id for assignment_id, score in known if int(score) < least}
    rows = transaction.session.scalars(
        select(AssignmentRow)
        .where(AssignmentRow.hit_id == hit.hit_id, AssignmentRow.state.in_(states))
        .order_by(AssignmentRow.submitted_at, AssignmentRow.seq)
    )
    return {row.assignment_id: answers_in(row.answer or "") for row in rows if row.assignment_id not in disregarded}


def _is_comparable(values: frozenset[str] | None) -> bool:
    return bool(values) and all(len(value) <= _LONGEST_COMPARED for value in values or ())


def _extend(transaction: Transaction, account: RequesterRow, hit: HitRow, policy: review_policies.Policy) -> str | None:
    if hit.max_assignments >= policy.most_assignments or hit.max_assignments == _FEW - 1:
        return None
    if hit.is_expired and "ExtendMinimumTimeInSeconds" not in policy.numbers:
        return None
    lifecycle.extend(transaction, account, hit, added=1)
    until = transaction.now + timedelta(seconds=policy.numbers.get("ExtendMinimumTimeInSeconds", 0))
    if until > max(hit.expires_at, transaction.now):
        hit.expires_at = until
        lifecycle.prolong(transaction, account, hit)
    return f"Extended to {hit.max_assignments} assignments"


def _decide(
    report: _Report,
    account: RequesterRow,
    assignment_id: str,
    policy: review_policies.Policy,
    *,
    approves: bool,
    rejects: bool,
) -> None:
    transaction, hit = report.transaction, report.hit
    assignment = lifecycle.lock_assignment(transaction, assignment_id)
    if assignment.state != "Submitted":
        return

    def approve() -> str:
        feedback = policy.texts.get("ApproveReason")
        lifecycle.approve(transaction, account, hit, assignment, feedback=feedback)
        return "Approved"

    def reject() -> str:
        feedback = policy.texts.get("RejectReason") or _REJECTED
        lifecycle.reject(transaction, account, hit, assignment, feedback=feedback)
        return "Rejected"

    if approves:
        report.action("approve", "Assignment", assignment_id, approve)
    elif rejects:
        report.action("reject", "Assignment", assignment_id, reject)


class _Report:
    """Writes down one run of a policy."""

    def __init__(self, transaction: Transaction, hit: HitRow, level: str) -> None:
        self.transaction, self.hit, self.level = transaction, hit, level
        self.action_id = new_entity_id()

    def result(self, subject_type: str, subject_id: str, key: str, value: str, question: str | None = None) -> None:
        self._add("result", self.action_id, subject_type, subject_id, key, value, question_id=question)

    def action(self, name: str, target_type: str, target_id: str, act: Callable[[], str | None]) -> None:
        """Act in a savepoint: an action that fails, for want of money, is reported and changes nothing."""
        status, outcome, code = "Succeeded", None, None
        try:
            with self.transaction.savepoint():
                outcome = act()
            status = "Cancelled" if outcome is None else "Succeeded"
        except MarketplaceError as error:
            status, outcome, code = "Failed", error.message, error.turk_code
        action_id = self.action_id if name == "review" else new_entity_id()
        self._add("action", action_id, target_type, target_id, name, outcome or "", status=status, error_code=code)

    def _add(
        self, kind: str, action_id: str, subject_type: str, subject_id: str, name: str, value: str, **rest: Any
    ) -> None:
        self.transaction.session.add(
            ReviewEntryRow(
                hit_id=self.hit.hit_id,
                level=self.level,
                kind=kind,
                action_id=action_id,
                subject_id=subject_id,
                subject_type=subject_type,
                name=name,
                value=value,
                at=self.transaction.now,
                **rest,
            )
        )


def _result_form(row: ReviewEntryRow) -> Params:
    form: Params = {
        "ActionId": row.action_id,
        "SubjectId": row.subject_id,
        "SubjectType": row.subject_type,
        "Key": row.name,
        "Value": row.value,
    }
    return form if row.question_id is None else {**form, "QuestionId": row.question_id}


def _action_form(row: ReviewEntryRow) -> Params:
    form: Params = {
        "ActionId": row.action_id,
        "ActionName": row.name,
        "TargetId": row.subject_id,
        "TargetType": row.subject_type,
        "Status": row.status,
        "CompleteTime": row.at,
        "Result": row.value,
    }
    return form if row.error_code is None else {**form, "ErrorCode": row.error_code}
