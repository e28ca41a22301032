"""``dynahit round``: policy, gold items, figures, single examples."""

from __future__ import annotations

import json
from pathlib import Path

from sqlalchemy.orm import Session

from hits import validations
from hits.clock import FixedClock
from hits.models import Example
from hits.states import Verdict
from tests.app.cli.test_hits import Shell, market, shell
from tests.factories import make_example, make_round, make_vote

__all__ = ["market", "shell"]


def test_a_policy_is_shown_planned_set_and_refused(shell: Shell, session: Session) -> None:
    shown = shell("round", "policy", "nli", "1")
    assert shown.exit_code == 0, shown.output
    assert "2 must agree, 3 are asked at most" in shown.stdout
    assert "Nothing was changed." in shown.stdout

    options = ("--agree", "2", "--split", "3", "--max", "5", "--gold", "1", "--non-fooling", "10")
    planned = shell("round", "policy", "nli", "1", *options, "--plan")
    assert "once readers have differed, 3 must agree" in planned.stdout
    assert "Nothing was changed; leave --plan out" in planned.stdout
    assert json.loads(shell("round", "policy", "nli", "1", "--json").stdout)["max_votes"] == 3

    assert "Set." in shell("round", "policy", "nli", "1", *options, "--by", "ada").stdout
    found = json.loads(shell("round", "policy", "nli", "1", "--json").stdout)
    assert (found["max_votes"], found["split_votes"], found["gold_items"], found["changed"]) == (5, 3, 1, False)

    refused = shell("round", "policy", "nli", "1", "--max", "1")
    assert refused.exit_code == 1
    assert "1 at most" in refused.stderr


def test_gold_items_come_from_a_file_or_from_what_is_verified(shell: Shell, session: Session, tmp_path: Path) -> None:
    make_round(session)
    session.commit()
    row = {"context": {"prompt": "Rain."}, "answer": {"statement": "It rained all day."}, "label": "neutral"}
    path = tmp_path / "gold.jsonl"
    path.write_text(json.dumps(row), encoding="utf-8")

    assert shell("round", "gold", "sentiment", "1", str(path)).stdout.strip() == "1 gold items stored."
    assert "1 were there already" in shell("round", "gold", "sentiment", "1", str(path)).stdout
    assert "0 gold items made" in shell("round", "gold", "sentiment", "1", "--from-verified", "3").stdout
    assert shell("round", "gold", "sentiment", "1").exit_code == 2
    assert "no round 2" in shell("round", "gold", "sentiment", "2", str(path)).stderr


def test_figures_are_printed_with_their_denominators_and_as_json(
    shell: Shell, session: Session, clock: FixedClock
) -> None:
    example = make_example(session)
    votes = [make_vote(session, example=example, seconds=8.0) for _ in range(2)]
    validations.decide(session, example, clock.now())
    make_example(session)
    known = [(vote.validator.pseudonym, vote.validator.mturk_worker_id) for vote in votes]
    session.commit()

    result = shell("round", "stats", "sentiment", "1")

    assert result.exit_code == 0, result.output
    assert "vMER: 50.0% (95% interval 9.5% to 90.5%)" in result.stdout
    assert "= 1 valid_and_model_wrong / (2 collected - 0 retracted)" in result.stdout
    assert "1: waits for readers" in result.stdout
    assert "none yet (2 labels on 1 examples" in result.stdout
    for pseudonym, worker_id in known:
        assert pseudonym in result.stdout
        assert worker_id not in result.stdout
    assert json.loads(shell("round", "stats", "sentiment", "1", "--json").stdout)["vmer"]["of"] == 2
    assert "no round 9" in shell("round", "stats", "sentiment", "9").stderr


def test_a_round_without_votes_says_so(shell: Shell, session: Session) -> None:
    make_round(session)
    session.commit()

    assert "No vote was counted yet." in shell("round", "stats", "sentiment", "1").stdout


def test_an_example_is_overridden_given_back_and_retracted(shell: Shell, session: Session) -> None:
    example = make_example(session)
    name, example_id = example.attempt.public_id, example.id
    session.commit()

    assert shell("round", "override", name).exit_code == 2
    assert shell("round", "override", name, "--reject", "--lift").exit_code == 2
    said = shell("round", "override", name, "--label", "negative", "--reason", "Plain irony.")
    assert "The verdict is valid_and_model_wrong." in said.stdout
    assert "The verdict is pending." in shell("round", "override", name, "--lift").stdout
    assert "is empty" in shell("round", "override", name, "--reject").stderr

    assert "can't be undone" in shell("round", "retract", name, "--reason", "asked for").output
    assert "Retracted." in shell("round", "retract", name, "--reason", "asked for", "--yes").stdout
    assert "Nothing was changed" in shell("round", "retract", name, "--reason", "asked for", "--yes").stdout
    session.expire_all()
    found = session.get_one(Example, example_id)
    assert (found.verdict, found.votes_wanted) == (Verdict.PENDING, 0)
    session.commit()
    assert "'nothing'" in shell("round", "retract", "nothing", "--reason", "asked for", "--yes").stderr
