"""Figures of the instance for a Prometheus server, read from the database when they are asked for.

So they are the same from every process of the service, and the jobs process need not be asked at all.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Iterator
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy import func, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from app.models import AuditEntry, ReconcileRun
from app.settings import Settings
from hits.models import Assignment, Attempt, Example, Hit
from hits.states import AssignmentState, AttemptState, HitState, Verdict
from payments.closed_months import MonthClose
from payments.models import Payout, PayoutState
from payments.overview import overview

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def may_read(settings: Settings, *, authorization: str | None, address: str | None, forwarded: bool) -> bool:
    """Tell whether a request may read the figures: with the token if one is set, else from this machine alone.

    What a proxy on this machine passes on (``forwarded``) comes from elsewhere.
    """
    if settings.metrics_token is not None:
        wanted = f"Bearer {settings.metrics_token.get_secret_value()}"
        return hmac.compare_digest((authorization or "").encode(), wanted.encode())
    return address in ("127.0.0.1", "::1") and not forwarded


def metrics_text(session: Session, model_state: str) -> bytes:
    """Return all figures in Prometheus' text format."""
    registry = CollectorRegistry()
    registry.register(_Figures(session, model_state))
    return generate_latest(registry)


class _Figures(Collector):
    """Collects from one session, once."""

    def __init__(self, session: Session, model_state: str) -> None:
        self.session = session
        self.model_state = model_state

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterator[Metric]:
        yield self._counted("dynahit_hits", "HITs by state.", Hit.state, HitState)
        yield self._counted("dynahit_assignments", "Assignments by state.", Assignment.state, AssignmentState)
        yield self._counted("dynahit_attempts", "Questions to the model by state.", Attempt.state, AttemptState)
        yield self._counted("dynahit_examples", "Collected examples by verdict.", Example.verdict, Verdict)
        yield self._counted("dynahit_payouts", "Bonuses in the outbox by state.", Payout.state, PayoutState)
        yield from self._money()
        yield from self._reconcile()
        months = self.session.scalar(select(func.count()).select_from(MonthClose))
        yield _single("dynahit_closed_months", "Months whose books are closed.", months or 0)
        refusals = self.session.scalar(
            select(func.count()).select_from(AuditEntry).where(AuditEntry.action.endswith(".refused"))
        )
        yield _single("dynahit_refusals", "What staff were refused, from the audit trail.", refusals or 0)
        model = GaugeMetricFamily("dynahit_model_ready", "Whether the target model answers.", labels=["state"])
        model.add_metric([self.model_state], self.model_state == "ready")
        yield model

    def _counted(self, name: str, about: str, column: InstrumentedAttribute[Any], states: Iterable[object]) -> Metric:
        metric = GaugeMetricFamily(name, about, labels=["state"])
        rows = self.session.execute(select(column, func.count()).group_by(column))
        counts = {state: count for state, count in rows}  # noqa: C416 - dict() of rows has no types
        for state in states:
            metric.add_metric([str(state)], counts.get(state, 0))
        return metric

    def _money(self) -> Iterator[Metric]:
        totals = overview(self.session).totals
        for name, about, amount in (
            ("spent", "Rewards, bonuses and fees that were paid.", totals.total),
            ("owed", "Bonuses that are promised and not paid.", totals.owed),
            ("reserved", "What is set aside for open batches.", totals.reserved),
        ):
            yield _single(f"dynahit_{name}_dollars", about, float(amount))

    def _reconcile(self) -> Iterator[Metric]:
        findings = GaugeMetricFamily(
            "dynahit_reconcile_findings", "Findings of the last run of reconcile.", labels=["endpoint"]
        )
        at = GaugeMetricFamily("dynahit_reconcile_timestamp_seconds", "When reconcile ran last.", labels=["endpoint"])
        newest = select(func.max(ReconcileRun.id)).group_by(ReconcileRun.endpoint)
        for run in self.session.scalars(select(ReconcileRun).where(ReconcileRun.id.in_(newest))):
            findings.add_metric([run.endpoint], len(run.findings))
            at.add_metric([run.endpoint], run.at.timestamp())
        yield findings
        yield at


def _single(name: str, about: str, value: float) -> Metric:
    metric = GaugeMetricFamily(name, about)
    metric.add_metric([], value)
    return metric
