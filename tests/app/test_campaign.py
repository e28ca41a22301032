"""A whole campaign: three rounds, forty people with habits, models that learn between them, and the books at the end.

Everybody works through HTTP: the people on the worker site and in its frames, the requester by commands and pages, and
dynahit speaks with the marketplace by boto3 with signed requests.
"""

from __future__ import annotations

import csv
import json
import random
import re
import socket
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from flask import Flask
from flask.cli import ScriptInfo
from pydantic import SecretStr
from sqlalchemy import func, select
from sqlalchemy.orm import Session, sessionmaker

from app.cli import dynahit
from app.cli.visitor import Visitor
from app.extensions import db
from app.factory import create_app
from app.marketplace.factory import create_app as create_marketplace
from app.marketplace.settings import Settings as SiteSettings
from app.models import StaffUser
from app.operations.freeze import LOOKALIKE
from hits.clock import SystemClock
from hits.export import find_round
from hits.marketplace.engine import Marketplace
from hits.marketplace.settings import MarketplaceSettings
from hits.models import Assignment, Attempt, Example, Hit, Worker
from hits.rounds import moves_of
from hits.splits import normalised
from hits.states import Moderation, RoundState, Verdict
from inference.engine import engine_for as models_for
from payments.models import LedgerTransaction, Payout, PayoutState, Posting, TransactionKind
from qualification.validators import MINIMUM, validator_type
from tests.app.campaign_people import LABELS, READERS, WORDS, WRITERS, Person, base_rows
from tests.app.conftest import STAFF_PASSWORD
from tests.app.marketplace.conftest import serving
from tests.factories import NOON
from tests.inference.published import save_model
from tests.market import settings as service_settings

pytest.importorskip("torch")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.parametrize("database_url", [pytest.param("sqlite", marks=pytest.mark.sqlite)], indirect=True),
]

ROUNDS = (1, 2, 3)
REWARD, BONUS = Decimal("0.30"), Decimal("0.30")
#: What dynahit pays for a validation HIT, and the marketplace's fee.
READING, FEE = Decimal("0.25"), Decimal("1.20")
BALANCE = Decimal("1000.00")
SMALL = ("--epochs", "8", "--length", "32", "--rate", "3e-3", "--head-rate", "1e-2", "--patience", "16")


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Campaign:
    """A marketplace's site, a service that is started anew for each target model, their requester, and the people."""

    def __init__(self, folder: Path, database_url: str, running: ExitStack) -> None:
        self.folder = folder
        self.database_url = database_url
        self.running = running
        self.chance = random.Random(7)
        port = free_port()
        self.site = f"http://127.0.0.1:{port}"
        self.service_port = free_port()
        self.market = Marketplace(
            f"sqlite:///{folder / 'marketplace.db'}",
            settings=MarketplaceSettings.for_tests(site_url=self.site, content_url=None),
            clock=SystemClock(),
        )
        running.callback(self.market.close)
        self.market.create_schema()
        self.requester_id = self.market.create_requester("The campaign").requester_id
        self.market.top_up(self.requester_id, BALANCE, "for tests")
        self.key = self.market.create_access_key(self.requester_id)
        site = SiteSettings(
            database_url="sqlite://",
            secret_key=SecretStr("0123456789abcdef0123456789abcdef"),
            site_url=self.site,
            sign_in_limit="1000 per minute",
        )
        running.enter_context(serving(create_marketplace(site, marketplace=self.market), port))
        self.app: Flask

    @contextmanager
    def target(self, reference: str) -> Iterator[None]:
        """Run the service with this target model."""
        address = f"http://127.0.0.1:{self.service_port}"
        settings = service_settings(
            database_url=self.database_url,
            service_url=address,
            marketplace_endpoint=self.site,
            worker_site_url=self.site,
            aws_access_key_id=self.key.access_key_id,
            aws_secret_access_key=self.key.secret,
            validation_wait_seconds=0,
            local_files_only=True,
            models={"sentiment": reference},
        )
        engine = models_for({"sentiment": reference}, local_files_only=True)
        self.app = create_app(settings, engine=engine)
        engine.start()
        assert engine.wait_until_settled(60).name == "ready"
        try:
            with serving(self.app, self.service_port):
                yield
        finally:
            engine.stop()
            with self.app.app_context():
                db.engine.dispose()

    def run(self, *arguments: str) -> str:
        """Run a command of the requester; return what it printed."""
        done = CliRunner().invoke(
            dynahit, list(arguments), obj=ScriptInfo(create_app=lambda: self.app), env={"COLUMNS": "200"}
        )
        assert done.exit_code == 0, f"{arguments}\n{done.output}\n{done.exception!r}"
        return done.stdout

    def people(self) -> tuple[list[Person], list[Person]]:
        """Let everybody join, readers with the qualification."""
        with self.app.app_context():
            reader = validator_type(self.app.extensions["dynahit"].mturk, "dynahit validator")
        found: tuple[list[Person], list[Person]] = ([], [])
        for group, habits in zip(found, (WRITERS, READERS), strict=True):
            kind = "writer" if group is found[0] else "reader"
            for number, habit in enumerate(habits):
                name = f"{kind}-{habit}-{number}"
                person = Person(name, habit, self.site, random.Random(name))
                self.running.callback(person.visitor.close)
                person.join(self.market.create_invitation(name, grants={reader: MINIMUM} if kind == "reader" else {}))
                group.append(person)
        return found

    def jobs(self) -> None:
        self.run("jobs", "run", "--once")

    def read(self, readers: Sequence[Person], session: Session) -> None:
        """Let readers judge until nothing waits for them."""
        for _ in range(12):
            self.jobs()
            pending = select(func.count(Example.id)).where(Example.verdict == Verdict.PENDING)
            left = session.scalar(pending)
            session.rollback()
            if not left:
                return
            for person in self.chance.sample(readers, len(readers)):
                while person.judge():
                    pass
        raise AssertionError(f"{left} examples still wait for readers")

    def uphold_flags(self, number: int, session: Session) -> None:
        """The requester signs in and upholds what readers have flagged."""
        flagged = session.scalars(
            select(Attempt.public_id).join(Example).where(Example.verdict == Verdict.FLAGGED)
        ).all()
        session.rollback()
        visitor, home = Visitor(), f"http://127.0.0.1:{self.service_port}"
        try:
            page = visitor.open(f"{home}/staff/sign-in")
            visitor.send(page, "/staff/sign-in", {"name": "robin", "password": STAFF_PASSWORD})
            for public_id in flagged:
                page = visitor.open(f"{home}/rounds/sentiment/{number}")
                visitor.send(page, f"/flags/{public_id}", {"decision": "uphold", "reason": "No sense in it."})
        finally:
            visitor.close()


@pytest.fixture
def campaign(tmp_path: Path, database_url: str, session_factory: sessionmaker[Session]) -> Iterator[Campaign]:
    with session_factory() as session:
        user = StaffUser(name="robin", roles=["requester", "finance"], created_at=NOON)
        user.set_password(STAFF_PASSWORD)
        session.add(user)
        session.commit()
    with ExitStack() as running:
        yield Campaign(tmp_path, database_url, running)


def base_data(folder: Path) -> tuple[Path, Path]:
    """A file of plain sentences, and a small random encoder that knows the words."""
    path = folder / "base.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("text", "label"), *base_rows(240, seed=1)])
    encoder = save_model(folder / "tiny-bert", "bert", LABELS, words=WORDS, num_hidden_layers=1, initializer_range=0.1)
    return path, encoder


def test_three_rounds_of_forty_people_end_with_better_models_and_books_that_balance(
    campaign: Campaign, session_factory: sessionmaker[Session], tmp_path: Path
) -> None:
    base, encoder = base_data(tmp_path)
    contexts = tmp_path / "contexts.jsonl"
    references: list[str] = []

    def train(number: int) -> str:
        done = campaign.run(
            *("round", "train", "sentiment", "--round", str(number), "--base", str(base), "--base-licence", "mit"),
            *("--model", f"dir:{encoder}", "--out", str(tmp_path / "models"), "--threads", "1", "--local-files-only"),
            *(*SMALL, "--by", "robin", "--json"),
        )
        return f"dir:{json.loads(done)['models'][0]['folder']}"

    with campaign.target(f"dir:{encoder}"):
        references.append(train(0))
        writers, readers = campaign.people()
    for number in ROUNDS:
        with campaign.target(references[-1]), session_factory() as session:
            contexts.write_text(
                "".join(json.dumps({"prompt": f"Day {n} of round {number}."}) + "\n" for n in range(len(writers)))
            )
            campaign.run(
                *("hits", "launch", "sentiment", "--round", str(number), "--hits", str(len(writers))),
                *("--contexts", str(contexts), "--reward", str(REWARD), "--bonus", str(BONUS), "--tries", "3"),
                *("--seed", str(number), "--yes", "--json"),
            )
            for person in writers:
                person.write(next(person.offered()))
            campaign.read(readers, session)
            campaign.uphold_flags(number, session)
            campaign.jobs()
            campaign.run("payments", "settle", "--yes")
            campaign.jobs()
            campaign.run(
                *("round", "freeze", "sentiment", str(number), "--shares", "50,10,40", "--seed", str(number)),
                *("--by", "robin", "--yes", "--json"),
            )
            references.append(train(number))
            campaign.run("round", "archive", "sentiment", str(number), "--by", "robin", "--yes")

    with campaign.target(references[-1]), session_factory() as session:
        named = [part for reference in references for part in ("--model", reference)]
        campaign.run("measure", "models", "sentiment", *named, "--split", "train", "--split", "test", "--json")
        matrix = json.loads(campaign.run("measure", "matrix", "sentiment", "--json"))
        campaign.run("payments", "reconcile")
        folder = tmp_path / "export"
        campaign.run("export", "sentiment", "--to", str(folder))

        assert_habits(session, writers)
        assert_books(session, campaign, writers, readers)
        assert_states(session)
        assert_matrix(matrix)
        assert_export(session, folder, tmp_path)


def assert_habits(session: Session, writers: Sequence[Person]) -> None:
    """Good writers are verified, lazy ones seldom fool a model, and no reader's label makes spam pass."""
    habits = {person.worker_id: person.habit for person in writers}
    written = (
        select(Worker.mturk_worker_id, Example)
        .select_from(Example)
        .join(Example.attempt)
        .join(Attempt.assignment)
        .join(Assignment.worker)
    )
    of: dict[str, list[Example]] = {"good": [], "lazy": [], "spamming": []}
    for worker_id, example in session.execute(written):
        of[habits[worker_id]].append(example)
    fooled = {habit: [one for one in examples if one.fooled] for habit, examples in of.items()}
    # Of the HITs that they wrote, in how many a model was fooled.
    share = {habit: len(fooled[habit]) / (count * len(ROUNDS)) for habit, count in Counter(WRITERS).items()}
    verified = {habit: sum(is_verified(one) for one in fooled[habit]) for habit in of}
    assert share["lazy"] < 0.5 * share["good"]
    assert verified["good"] >= 0.8 * len(fooled["good"]) >= 10
    assert fooled["spamming"]
    assert verified["spamming"] == 0
    assert {one.verdict for one in fooled["spamming"]} <= {Verdict.INVALID, Verdict.VALID_AND_MODEL_RIGHT}
    assert any(one.moderation is Moderation.UPHELD for one in fooled["spamming"])


def is_verified(example: Example) -> bool:
    return (
        example.fooled
        and example.verdict is Verdict.VALID_AND_MODEL_WRONG
        and example.final_label == example.goal_label
    )


def assert_books(session: Session, campaign: Campaign, writers: Sequence[Person], readers: Sequence[Person]) -> None:
    """What was paid is what people handed in and what readers verified, on the account, in the ledger, to everybody."""
    verified = [one for one in session.scalars(select(Example)) if is_verified(one)]
    earned = (
        sum(person.handed_in for person in writers) * REWARD
        + sum(person.handed_in for person in readers) * READING
        + len(verified) * BONUS
    )
    balance = campaign.market.balance(campaign.requester_id)
    assert (balance.available, balance.on_hold) == (BALANCE - earned * FEE, Decimal(0))
    shown = [campaign.market.earnings(one.worker_id) for one in (*writers, *readers) if one.worker_id]
    assert sum(one.approved + one.bonuses for one in shown) == earned
    assert {one.pending for one in shown} == {0}
    payouts = session.scalars(select(Payout)).all()
    assert {one.state for one in payouts} == {PayoutState.CONFIRMED}
    assert sorted(one.example_id or 0 for one in payouts) == sorted(one.id for one in verified)
    assert session.scalar(select(func.sum(Posting.cents))) == 0
    by_transaction = select(func.sum(Posting.cents)).group_by(Posting.transaction_id)
    assert set(session.scalars(by_transaction)) == {0}
    paid = Counter(session.scalars(select(LedgerTransaction.kind)))
    assert paid[TransactionKind.BONUS] == len(verified)


def assert_states(session: Session) -> None:
    """Every round went all the way, and it is written down when and by whom."""
    for number in ROUNDS:
        round_ = find_round(session, "sentiment", number)
        assert round_.state is RoundState.ARCHIVED
        moves = moves_of(session, round_.id)
        went = [one.to_state for one in moves]
        assert went[-4:] == [RoundState.VALIDATING, RoundState.FROZEN, RoundState.TRAINED, RoundState.ARCHIVED]
        assert [one.by for one in moves[-3:]] == ["robin"] * 3
        assert [one.at for one in moves] == sorted(one.at for one in moves)


def assert_matrix(matrix: Sequence[dict[str, Any]]) -> None:
    """Four models on the tests of three rounds; the last one errs less than the first on what fooled the models."""
    tests = {(row["model"], row["round"]): row for row in matrix if row["split"] == "test"}
    models = list(dict.fromkeys(row["model"] for row in matrix))
    assert set(tests) == {(model, number) for model in models for number in ROUNDS}
    assert len(models) == 4
    for row in tests.values():
        assert 0 <= row["low"] <= row["value"] <= row["high"] <= 1


def assert_export(session: Session, folder: Path, tmp_path: Path) -> None:
    """`datasets` loads it, mlcroissant finds nothing to say, nothing is shared between splits, and nobody is named."""
    datasets, croissant = pytest.importorskip("datasets"), pytest.importorskip("mlcroissant")
    datasets.disable_progress_bars()
    loaded = datasets.load_dataset(str(folder), cache_dir=str(tmp_path / "cache"))
    assert {"train", "test"} <= set(loaded)
    seen: dict[tuple[str, str], set[str]] = defaultdict(set)
    for split, part in loaded.items():
        for row in part:
            for kind in ("writer", "statement", "prompt"):
                seen[kind, normalised(row[kind])].add(split)
    assert {key: found for key, found in seen.items() if len(found) > 1} == {}
    assert {row["round"] for part in loaded.values() for row in part} == set(ROUNDS)
    with warnings.catch_warnings():
        # rdflib's own, about itself.
        warnings.simplefilter("ignore")
        described = croissant.Dataset(jsonld=str(folder / "croissant.json"))
        records = [record["test/id"].decode() for record in described.records("test")]
    assert described.metadata.issues.report() == ""
    assert records == loaded["test"]["id"]
    secrets = [
        *session.scalars(select(Worker.mturk_worker_id)),
        *session.scalars(select(Worker.pseudonym)),
        *session.scalars(select(Assignment.mturk_assignment_id)),
        *(name for name in session.scalars(select(Hit.mturk_hit_id)) if name),
    ]
    assert len(secrets) > 150
    for path in (one for one in folder.rglob("*") if one.is_file()):
        content = path.read_bytes()
        assert [secret for secret in secrets if secret.encode() in content] == [], path
        if path.suffix != ".parquet":
            # A requirement names a qualification, which is the project's, by an id that looks like any other.
            told = re.sub(r'"qualification_type_id": "\w+"', "", content.decode())
            assert not LOOKALIKE.search(told), path
