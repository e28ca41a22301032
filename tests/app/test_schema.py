"""The migrations and the models say the same on both databases, up and down."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Engine, Inspector, inspect, text
from sqlalchemy.exc import DatabaseError, IntegrityError

import app.models  # noqa: F401 - registers every table
from app import schema
from hits.db import Base, engine_for


@contextmanager
def opened(url: str) -> Iterator[Engine]:
    engine = engine_for(url)
    try:
        yield engine
    finally:
        engine.dispose()


def described(engine: Engine) -> dict[str, Any]:
    """Everything about the tables that the database itself can tell."""
    inspector = inspect(engine)
    return {name: table(inspector, name) for name in inspector.get_table_names() if name != "alembic_version"} | {
        "triggers": triggers(engine)
    }


def table(inspector: Inspector, name: str) -> dict[str, Any]:
    return {
        "columns": {
            column["name"]: (str(column["type"]), column["nullable"]) for column in inspector.get_columns(name)
        },
        "primary key": inspector.get_pk_constraint(name),
        "unique": sorted((str(one["name"]), one["column_names"]) for one in inspector.get_unique_constraints(name)),
        "checks": sorted((str(one["name"]), one["sqltext"]) for one in inspector.get_check_constraints(name)),
        "indexes": sorted(
            (str(one["name"]), one["column_names"], one["unique"]) for one in inspector.get_indexes(name)
        ),
        "foreign keys": sorted(
            (str(one["name"]), one["constrained_columns"], one["referred_table"], one["referred_columns"])
            for one in inspector.get_foreign_keys(name)
        ),
    }


def triggers(engine: Engine) -> list[Any]:
    statements = {
        "sqlite": "SELECT name, tbl_name, sql FROM sqlite_master WHERE type = 'trigger' ORDER BY name",
        "postgresql": "SELECT tgname, relname, pg_get_triggerdef(pg_trigger.oid) FROM pg_trigger"
        " JOIN pg_class ON pg_class.oid = tgrelid"
        " WHERE NOT tgisinternal AND relnamespace = current_schema()::regnamespace ORDER BY tgname",
    }
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(text(statements[engine.dialect.name]))]


@pytest.fixture
def from_models(database_url: str) -> dict[str, Any]:
    """What the models alone make of the empty database, which is empty again afterwards."""
    with opened(database_url) as engine:
        Base.metadata.create_all(engine)
        found = described(engine)
        Base.metadata.drop_all(engine)
    return found


def test_the_migrations_have_one_head() -> None:
    assert len(schema.heads()) == 1


def test_the_migrations_make_what_the_models_say(database_url: str, from_models: dict[str, Any]) -> None:
    schema.upgrade(database_url)

    with opened(database_url) as engine:
        from_migrations = described(engine)
    assert sorted(from_migrations) == sorted(from_models)
    for name, expected in from_models.items():
        assert from_migrations[name] == expected, name


def test_upgrading_again_changes_nothing(database_url: str) -> None:
    schema.upgrade(database_url)
    schema.upgrade(database_url)

    assert schema.current(database_url) == schema.heads()[0]


def test_an_empty_database_is_at_no_revision(database_url: str) -> None:
    assert schema.current(database_url) is None


def test_the_way_back_leaves_no_table(database_url: str) -> None:
    schema.upgrade(database_url)

    schema.downgrade(database_url, "base")

    with opened(database_url) as engine:
        assert inspect(engine).get_table_names() == ["alembic_version"]
        assert triggers(engine) == []
    schema.upgrade(database_url)


def test_the_migrated_ledger_can_not_be_changed(database_url: str) -> None:
    schema.upgrade(database_url)

    with opened(database_url) as engine:
        with engine.begin() as connection:
            connection.execute(
                text(
                    "INSERT INTO round"
                    " (id, task_code, number, task_version, seed, agreeing_votes, max_votes, created_at)"
                    " VALUES (1, 'sentiment', 1, 1, 0, 2, 3, '2026-11-15 12:00:00')"
                )
            )
            connection.execute(
                text(
                    "INSERT INTO ledger_transaction (id, key, kind, reference, round_id, at)"
                    " VALUES (1, 'k', 'reward', 'r', 1, '2026-11-15 12:00:00')"
                )
            )
        for statement in ("UPDATE ledger_transaction SET key = 'other'", "DELETE FROM ledger_transaction"):
            with pytest.raises(DatabaseError, match="append-only"), engine.begin() as connection:
                connection.execute(text(statement))


#: A database of the first version, with an answered attempt and a model.
FIRST_ROWS = (
    "INSERT INTO round (id, task_code, number, task_version, seed, agreeing_votes, max_votes, created_at)"
    " VALUES (1, 'sentiment', 1, 1, 0, 2, 3, '2026-11-15 12:00:00')",
    "INSERT INTO worker (id, mturk_worker_id, pseudonym, created_at)"
    " VALUES (1, 'AWRITER', 'w1', '2026-11-15 12:00:00')",
    "INSERT INTO context (id, round_id, fields, digest, created_at)"
    " VALUES (1, 1, '{\"prompt\": \"p\"}', 'd', '2026-11-15 12:00:00')",
    "INSERT INTO hit_batch (id, round_id, kind, key, endpoint, title, description, keywords, reward, bonus, tries,"
    " minutes, assignment_seconds, auto_approval_seconds, lifetime_seconds, created_at)"
    " VALUES (1, 1, 'creation', 'k', 'e', 't', 'd', 'w', 30, 30, 5, 5, 60, 60, 60, '2026-11-15 12:00:00')",
    "INSERT INTO hit (id, batch_id, position, reference, request_token, state, mturk_hit_id, max_assignments,"
    " context_id, goal_label) VALUES (1, 1, 1, 'r', 't', 'created', 'H1', 1, 1, 'negative')",
    "INSERT INTO assignment (id, mturk_assignment_id, hit_id, worker_id, state, why)"
    " VALUES (1, 'A1', 1, 1, 'submitted', '')",
    "INSERT INTO attempt (id, public_id, assignment_id, hit_id, worker_id, try_number, answer, answer_digest,"
    " goal_label, state, asked_at, seconds, model_id, model_revision, predicted_label, probabilities, fooled)"
    " VALUES (1, 'p1', 1, 1, 1, 1, '{\"statement\": \"s\"}', 'x', 'negative', 'answered', '2026-11-15 12:01:00',"
    " 60, 'embedded:sentiment', 'one', 'positive', '{\"positive\": 0.9}', true)",
    "INSERT INTO model_version (id, task_code, model_id, revision, labels, card, first_seen_at)"
    " VALUES (1, 'sentiment', 'embedded:sentiment', 'one', '[\"positive\"]', '{}', '2026-11-15 12:00:00')",
)


def test_what_was_collected_before_the_four_tasks_is_kept(database_url: str) -> None:
    """A database of the first version, with an answered attempt, a vote and a model, goes up and back down."""
    schema.upgrade(database_url, "0001")
    with opened(database_url) as engine, engine.begin() as connection:
        for row in FIRST_ROWS:
            connection.execute(text(row))

    schema.upgrade(database_url, "0002")
    with opened(database_url) as engine, engine.connect() as connection:
        kept = connection.execute(
            text("SELECT predicted_label, fooled, answer_f1, members, predicted_answer, goal_attribution FROM attempt")
        ).one()
        model = connection.execute(text("SELECT model_id, licence, parameters FROM model_version")).one()
    assert (kept[0], bool(kept[1]), *kept[2:]) == ("positive", True, None, None, None, None)
    assert tuple(model) == ("embedded:sentiment", None, None)

    schema.downgrade(database_url, "0001")
    with opened(database_url) as engine, engine.connect() as connection:
        assert connection.execute(text("SELECT predicted_label FROM attempt")).scalar_one() == "positive"
        assert "answer_f1" not in {column["name"] for column in inspect(connection).get_columns("attempt")}


def test_what_was_collected_before_consent_is_kept_and_refers_to_texts_that_there_are(database_url: str) -> None:
    schema.upgrade(database_url, "0001")
    with opened(database_url) as engine, engine.begin() as connection:
        for row in FIRST_ROWS:
            connection.execute(text(row))

    schema.upgrade(database_url, "0005")

    with opened(database_url) as engine:
        with engine.begin() as connection:
            kept = connection.execute(text("SELECT state, consent_text_id, warned_at, left_at FROM assignment")).one()
            connection.execute(
                text("INSERT INTO consent_text (id, digest, body, created_at) VALUES (1, 'd', 'b', '2026-11-15 12:00')")
            )
            connection.execute(text("UPDATE assignment SET consent_text_id = 1"))
        for wrong in (
            "UPDATE assignment SET consent_text_id = 2",
            "UPDATE assignment SET state = 'unknown'",
            "UPDATE worker SET erased_at = '2026-11-15 12:00:00'",
        ):
            with pytest.raises(IntegrityError), engine.begin() as connection:
                connection.execute(text(wrong))
    assert tuple(kept) == ("submitted", None, None, None)

    schema.downgrade(database_url, "0004")
    with opened(database_url) as engine, engine.connect() as connection:
        assert connection.execute(text("SELECT mturk_assignment_id FROM assignment")).scalar_one() == "A1"
        assert "consent_text_id" not in {column["name"] for column in inspect(connection).get_columns("assignment")}


def test_votes_from_before_the_queue_get_their_leases(database_url: str) -> None:
    """A database with a decided, a half-read and a flagged example goes up and back down; every vote is kept."""
    schema.upgrade(database_url, "0003")
    noon = "'2026-11-15 12:00:00'"
    rows = [
        "INSERT INTO round (id, task_code, number, task_version, seed, agreeing_votes, max_votes, created_at)"
        f" VALUES (1, 'sentiment', 1, 1, 0, 2, 3, {noon})",
        f"INSERT INTO context (id, round_id, fields, digest, created_at) VALUES (1, 1, '{{}}', 'd', {noon})",
    ]
    rows += [
        f"INSERT INTO worker (id, mturk_worker_id, pseudonym, created_at) VALUES ({n}, 'AW{n}', 'w{n}', {noon})"
        for n in range(1, 5)
    ]
    for number, kind in ((1, "creation"), (2, "validation")):
        rows += [
            "INSERT INTO hit_batch (id, round_id, kind, key, endpoint, title, description, keywords, reward, bonus,"
            " tries, minutes, assignment_seconds, auto_approval_seconds, lifetime_seconds, created_at)"
            f" VALUES ({number}, 1, '{kind}', 'k{number}', 'e', 't', 'd', 'w', 30, 30, 5, 5, 60, 60, 60, {noon})",
            "INSERT INTO hit (id, batch_id, position, reference, request_token, state, mturk_hit_id, max_assignments,"
            f" context_id, goal_label) VALUES ({number}, {number}, 1, 'r{number}', 't{number}', 'created',"
            f" 'H{number}', 3, 1, 'negative')",
        ]
    # Assignment 1 wrote; 2 and 3 have submitted their judgements, 4 is at it.
    for number, state in ((1, "submitted"), (2, "submitted"), (3, "submitted"), (4, "opened")):
        rows.append(
            "INSERT INTO assignment (id, mturk_assignment_id, hit_id, worker_id, state, why, deadline_at)"
            f" VALUES ({number}, 'A{number}', {1 if number == 1 else 2}, {number}, '{state}', '', {noon})"
        )
    for number, verdict in ((1, "valid_and_model_wrong"), (2, "pending"), (3, "flagged")):
        rows += [
            "INSERT INTO attempt (id, public_id, assignment_id, hit_id, worker_id, try_number, answer, answer_digest,"
            " goal_label, state, asked_at, seconds, model_id, model_revision, predicted_label, probabilities, fooled)"
            f" VALUES ({number}, 'p{number}', 1, 1, 1, {number}, '{{}}', 'x{number}', 'negative', 'answered', {noon},"
            " 60, 'm', 'r', 'positive', '{}', true)",
            "INSERT INTO example (id, attempt_id, round_id, context_id, writer_id, goal_label, model_label, fooled,"
            f" verdict, collected_at) VALUES ({number}, {number}, 1, 1, 1, 'negative', 'positive', true, '{verdict}',"
            f" {noon})",
            f"INSERT INTO hit_item (id, hit_id, example_id, position) VALUES ({number}, 2, {number}, {number})",
        ]
    votes = (
        (1, 1, 2, "'negative'", "NULL", noon),
        (2, 1, 3, "'negative'", "NULL", noon),
        (3, 2, 2, "'positive'", "NULL", noon),
        (4, 2, 4, "'positive'", "NULL", "NULL"),
        (5, 3, 2, "NULL", "'insult'", noon),
    )
    rows += [
        "INSERT INTO vote (id, example_id, validator_id, assignment_id, label, flag_reason, created_at, counted_at)"
        f" VALUES ({number}, {example}, {who}, {who}, {label}, {flag}, {noon}, {counted})"
        for number, example, who, label, flag, counted in votes
    ]
    with opened(database_url) as engine, engine.begin() as connection:
        for row in rows:
            connection.execute(text(row))

    schema.upgrade(database_url, "0004")
    with opened(database_url) as engine, engine.connect() as connection:
        leases = connection.execute(
            text(
                "SELECT example_id, validator_id, place, expires_at IS NULL FROM lease"
                " ORDER BY example_id, validator_id"
            )
        ).all()
        counters = connection.execute(text("SELECT votes_wanted, leased FROM example ORDER BY id")).all()
        kept = connection.execute(text("SELECT count(*) FROM vote")).scalar_one()
    assert [(*row[:3], bool(row[3])) for row in leases] == [
        (1, 2, 1, True),
        (1, 3, 2, True),
        (2, 2, 1, True),
        (2, 4, 2, False),
        (3, 2, None, True),
    ]
    assert [tuple(row) for row in counters] == [(0, 0), (1, 1), (0, 0)]
    assert kept == 5

    schema.downgrade(database_url, "0003")
    with opened(database_url) as engine, engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM vote")).scalar_one() == 5
        items = connection.execute(text("SELECT hit_id, example_id FROM hit_item ORDER BY position")).all()
        assert [tuple(row) for row in items] == [(2, 1), (2, 2), (2, 3)]
        assert "lease" not in inspect(connection).get_table_names()
