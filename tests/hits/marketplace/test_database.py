"""The store on both databases: migrations, restarts, and how SQLite is opened."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import event, inspect, select, text
from sqlalchemy.orm import Session

import hits.marketplace
from hits.marketplace.database import VERSION_TABLE, Store, engine_for, upgrade
from hits.marketplace.engine import Marketplace, open_marketplace
from hits.marketplace.errors import MarketplaceError
from hits.marketplace.tables import Base, ClockRow, HitRow, RequesterRow
from tests.hits.marketplace.market import HIT_PROPERTIES, Market, external_question, refused
from tests.hits.marketplace.recount import check_groups
from tests.hits.marketplace.test_work import all_at_once

MIGRATIONS = Path(hits.marketplace.__file__).parent / "migrations"


def config_for(database_url: str) -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["database_url"] = database_url
    return config


def test_migrations_make_the_tables_that_the_code_describes(database_url: str) -> None:
    upgrade(database_url)
    upgrade(database_url)

    engine = engine_for(database_url)
    with engine.connect() as connection:
        context = MigrationContext.configure(
            connection, opts={"version_table": VERSION_TABLE, "compare_server_default": True}
        )
        differences = compare_metadata(context, Base.metadata)
        partial = {
            index["name"]
            for table in Base.metadata.tables
            for index in inspect(connection).get_indexes(table)
            if any("where" in option for option in index.get("dialect_options", {}))
        }
    engine.dispose()
    assert differences == []
    assert partial == {
        "ix_mp_assignment_review",
        "ix_mp_hit_disposable",
        "ix_mp_hit_listed",
        "ix_mp_assignment_reasoned",
        "ix_mp_message_unread",
        "uq_mp_assignment_hit_id_worker_id",
        "uq_mp_hit_report_open",
        "uq_mp_hit_type_requester_id_fingerprint",
        "uq_mp_payout_item_assignment_id",
        "uq_mp_payout_item_bonus_seq",
        "uq_mp_qualification_request_open",
        "uq_mp_qualification_type_requester_id_name",
        "uq_mp_worker_email_key",
    }


def test_migrations_have_one_head_and_go_back(database_url: str) -> None:
    upgrade(database_url)

    command.downgrade(config_for(database_url), "base")

    engine = engine_for(database_url)
    with engine.connect() as connection:
        assert inspect(connection).get_table_names() == [VERSION_TABLE]
    engine.dispose()
    assert len(ScriptDirectory.from_config(config_for(database_url)).get_heads()) == 1


def test_what_the_first_schema_stored_is_kept(database_url: str) -> None:
    command.upgrade(config_for(database_url), "0001")
    engine = engine_for(database_url)
    moment, later = "2026-11-30 12:00:00", "2036-11-30 12:00:00"
    with engine.begin() as connection:
        for statement in (
            "INSERT INTO mp_requester (requester_id, name, created_at, deposited_cents, held_cents, spent_cents) "
            f"VALUES ('A1', 'Lab', '{moment}', 100, 36, 0)",
            "INSERT INTO mp_hit_type (hit_type_id, hit_group_id, requester_id, fingerprint, title, description, "
            "keywords, reward_cents, duration_seconds, auto_approval_seconds, requirements, created_at) "
            f"VALUES ('3T', '3G', 'A1', 'f', 't', 'd', '', 30, 600, 60, '[]', '{moment}')",
            "INSERT INTO mp_hit (hit_id, requester_id, hit_type_id, created_at, expires_at, is_expired, status, "
            "max_assignments, pending, submitted, completed, reward_cents, fee_cents, question, external_url, "
            "frame_height) "
            f"VALUES ('3H', 'A1', '3T', '{moment}', '{later}', false, 'Assignable', 1, 0, 0, 0, 30, 6, "
            "'<ExternalQuestion/>', 'https://example.org/', 0)",
        ):
            connection.execute(text(statement))
    engine.dispose()
    market = Market()

    opened = open_marketplace(database_url, settings=market.settings, clock=market.clock)

    assert opened.call("A1", "GetHIT", {"HITId": "3H"})["HIT"]["HITStatus"] == "Assignable"
    code = opened.create_invitation()
    worker_id = opened.register_worker(code, "Ada", "a good password").worker_id
    held = opened.accept(worker_id, "3H")
    assert (held.question_kind, (held.frame_url or "")[:20]) == ("ExternalQuestion", "https://example.org/")
    assert opened.external_submit(held.assignment_id, {"a": ["1"]}).state == "Submitted"
    opened.close()


def test_an_older_database_gets_the_counts_that_a_recount_gives(database_url: str) -> None:
    command.upgrade(config_for(database_url), "0004")
    engine = engine_for(database_url)
    moment, later = "2026-11-30 12:00:00", "2036-11-30 12:00:00"
    missing = "<script>crowd-html-elements</script><crowd-polygon></crowd-polygon>"
    hits = [
        *((f"3S{n}", "3T", "Reviewable", "ExternalQuestion", "") for n in range(5)),
        ("3E", "3T", "Assignable", "ExternalQuestion", ""),
        ("3H", "3T", "Assignable", "HTMLQuestion", "<p>"),
        ("3M", "3T", "Assignable", "HTMLQuestion", missing),
        ("3N", "3U", "Assignable", "HTMLQuestion", missing),
    ]
    with engine.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO mp_requester (requester_id, name, created_at, deposited_cents, held_cents, spent_cents) "
                f"VALUES ('A1', 'Lab', '{moment}', 1000, 324, 0)"
            )
        )
        for type_id in ("3T", "3U", "3V"):
            connection.execute(
                text(
                    "INSERT INTO mp_hit_type (hit_type_id, hit_group_id, requester_id, fingerprint, title, "
                    "description, keywords, reward_cents, duration_seconds, auto_approval_seconds, requirements, "
                    f"created_at) VALUES ('{type_id}', 'G{type_id}', "
                    f"'A1', '{type_id}', 't', 'd', '', 30, 600, 60, '[]', '{moment}')"
                )
            )
        for hit_id, type_id, status, kind, question in hits:
            submitted = int(status == "Reviewable")
            connection.execute(
                text(
                    "INSERT INTO mp_hit (hit_id, requester_id, hit_type_id, created_at, expires_at, is_expired, "
                    "status, max_assignments, pending, submitted, completed, reward_cents, fee_cents, question, "
                    "question_kind, external_url, frame_height) VALUES "
                    f"('{hit_id}', 'A1', '{type_id}', '{moment}', '{later}', false, '{status}', "
                    f"1, 0, {submitted}, 0, 30, 6, '{question}', '{kind}', '', 0)"
                )
            )
        for n in range(5):
            for statement in (
                "INSERT INTO mp_worker (worker_id, user_name, user_name_key, password_hash, created_at, is_adult, "
                f"is_master) VALUES ('W{n}', 'w{n}', 'w{n}', '', '{moment}', false, false)",
                "INSERT INTO mp_assignment (assignment_id, hit_id, worker_id, requester_id, state, accepted_at, "
                f"deadline, submitted_at, auto_approval_at) VALUES ('3A{n}', '3S{n}', 'W{n}', 'A1', 'Submitted', "
                f"'{moment}', '{later}', '2026-11-30 12:0{n}:30.500', '{later}')",
            ):
                connection.execute(text(statement))
    engine.dispose()

    upgrade(database_url)

    engine = engine_for(database_url)
    with Session(engine) as session:
        assert check_groups(session) == {"3T": (1, 1, 151), "3U": (0, 0, None), "3V": (0, 0, None)}
    command.downgrade(config_for(database_url), "0004")
    with engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM mp_assignment")).scalar_one() == 5
    engine.dispose()


def test_sqlite_is_opened_durably(tmp_path: Path) -> None:
    engine = engine_for(f"sqlite:///{tmp_path / 'market.db'}")

    with engine.connect() as connection:
        pragmas = {
            name: connection.execute(text(f"PRAGMA {name}")).scalar_one()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
    engine.dispose()

    assert pragmas == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 30_000}


def test_who_writes_to_sqlite_waits_for_its_turn_and_not_in_sqlite(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'market.db'}"
    upgrade(url)
    one, other = Store(url), Store(url)
    begun = threading.Event()
    event.listen(other.engine, "begin", lambda _connection: begun.set())

    def write() -> None:
        other.move_clock(timedelta(seconds=1))

    with ThreadPoolExecutor(1) as pool:
        with one.session(writes=True) as session:
            session.add(ClockRow(clock_id=1, offset_microseconds=0))
            waiting = pool.submit(write)
            assert not begun.wait(0.5)
            with other.session(writes=False) as reading:
                assert reading.get(ClockRow, 1) is None
            begun.clear()
        waiting.result(30)

    assert begun.is_set()
    assert one.clock_offset() == timedelta(seconds=1)
    one.close()
    other.close()


def test_a_turn_ends_with_its_process(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'market.db'}"
    upgrade(url)
    holder = "import sys, time\nfrom hits.marketplace.database import Store\n"
    holder += "with Store(sys.argv[1]).session(writes=True):\n    print('held', flush=True)\n    time.sleep(600)\n"
    with subprocess.Popen([sys.executable, "-c", holder, url], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        process.kill()

    store = Store(url)
    store.move_clock(timedelta(seconds=1))
    assert store.clock_offset() == timedelta(seconds=1)
    store.close()


def test_a_restart_keeps_tokens_hits_keys_and_money(stored_market: Market) -> None:
    hit_id = stored_market.create_hit(UniqueRequestToken="before")
    key = stored_market.engine.create_access_key(stored_market.requester_id)
    token = stored_market.client.list_hits()["NextToken"]
    stored_market.engine.close()

    restarted = Marketplace(stored_market.url, settings=stored_market.settings, clock=stored_market.clock)

    with pytest.raises(MarketplaceError, match=f'The HIT with ID "{hit_id}" already exists'):
        restarted.call(
            stored_market.requester_id,
            "CreateHIT",
            {
                **HIT_PROPERTIES,
                "LifetimeInSeconds": 60,
                "Question": external_question(),
                "UniqueRequestToken": "before",
            },
        )
    assert restarted.access_key(key.access_key_id) == (key.secret, stored_market.requester_id)
    assert restarted.call(stored_market.requester_id, "ListHITs", {"NextToken": token})["NumResults"] == 0
    assert restarted.balance(stored_market.requester_id).on_hold
    restarted.close()


def test_opening_migrates(database_url: str) -> None:
    market = Market()
    opened = open_marketplace(database_url, settings=market.settings, clock=market.clock)

    assert opened.requesters() == []

    opened.close()


def test_fifty_requests_with_ten_tokens_make_ten_hits(stored_market: Market) -> None:
    def create(number: int) -> Callable[[], object]:
        def call() -> object:
            try:
                return stored_market.engine.call(
                    stored_market.requester_id,
                    "CreateHIT",
                    {
                        **HIT_PROPERTIES,
                        "LifetimeInSeconds": 60,
                        "Question": external_question(),
                        "UniqueRequestToken": f"token-{number % 10}",
                    },
                )["HIT"]["HITId"]
            except MarketplaceError as error:
                return error.turk_code

        return call

    outcomes = all_at_once([create(number) for number in range(50)])

    created = [outcome for outcome in outcomes if str(outcome).startswith("3")]
    assert len(created) == 10
    assert outcomes.count("AWS.MechanicalTurk.HitAlreadyExists") == 40
    assert stored_market.client.list_hits(MaxResults=100)["NumResults"] == 10
    assert stored_market.balance() == ("996.40", "3.60")


def test_money_is_not_spent_twice_by_requests_at_once(stored_market: Market) -> None:
    assignment_id = stored_market.submitted(stored_market.create_hit(Reward="0.00"))
    worker_id = stored_market.worker_of(assignment_id)

    def bonus() -> object:
        try:
            stored_market.engine.call(
                stored_market.requester_id,
                "SendBonus",
                {"WorkerId": worker_id, "AssignmentId": assignment_id, "BonusAmount": "200.00", "Reason": "r"},
            )
        except MarketplaceError as error:
            return error.turk_code
        return "paid"

    outcomes = all_at_once([bonus] * 8)

    assert outcomes.count("paid") == 4
    assert outcomes.count("AWS.MechanicalTurk.InsufficientFunds") == 4
    assert stored_market.balance()[0] == "39.99"


def test_threads_that_settle_at_once_agree(stored_market: Market) -> None:
    hits = [stored_market.create_hit(LifetimeInSeconds=60, AutoApprovalDelayInSeconds=60) for _ in range(10)]
    for hit_id in hits[:5]:
        stored_market.submitted(hit_id)
    stored_market.clock.advance(minutes=5)

    counts = all_at_once([stored_market.engine.settle] * 8)

    assert sum(int(str(count)) for count in counts) == 15
    assert stored_market.balance() == ("998.20", "0.00")
    with refused("RequestError", "InvalidAssignmentState"):
        listed = stored_market.client.list_assignments_for_hit(HITId=hits[0])["Assignments"]
        stored_market.client.approve_assignment(AssignmentId=listed[0]["AssignmentId"])


CREATOR = """
import sys

from hits.marketplace.engine import Marketplace
from hits.marketplace.settings import MarketplaceSettings
from tests.hits.marketplace.market import HIT_PROPERTIES, external_question

market = Marketplace(sys.argv[1], settings=MarketplaceSettings.for_tests())
while True:
    hit = market.call(
        sys.argv[2], "CreateHIT", {**HIT_PROPERTIES, "LifetimeInSeconds": 3600, "Question": external_question()}
    )["HIT"]
    print(hit["HITId"], flush=True)
"""


def test_what_was_answered_before_a_kill_is_there_after_it(stored_market: Market) -> None:
    command_line = [sys.executable, "-c", CREATOR, stored_market.url, stored_market.requester_id]
    with subprocess.Popen(command_line, stdout=subprocess.PIPE, text=True) as creator:
        assert creator.stdout is not None
        answered = [creator.stdout.readline().strip() for _ in range(15)]
        creator.kill()

    with stored_market.engine.store.session(writes=False) as session:
        stored = {hit.hit_id: hit.held_cents for hit in session.scalars(select(HitRow))}
        account = session.get_one(RequesterRow, stored_market.requester_id)
        assert account.held_cents == sum(stored.values())

    assert all(answered)
    assert set(answered) <= set(stored)
