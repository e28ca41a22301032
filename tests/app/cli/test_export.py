"""`dynahit export`: JSON lines to a file that appears whole, or to stdout."""

from __future__ import annotations

import json
from pathlib import Path

from sqlalchemy.orm import Session

from tests.app.cli.test_hits import Shell, market, shell
from tests.factories import make_assignment, make_attempt, make_example, make_hit, make_worker

__all__ = ["market", "shell"]


def test_a_round_is_written_as_json_lines_without_worker_ids(shell: Shell, session: Session, tmp_path: Path) -> None:
    worker = make_worker(session, mturk_worker_id="AWRITERWRITER")
    assignment = make_assignment(session, hit=make_hit(session), worker=worker)
    make_example(
        session, attempt=make_attempt(session, assignment=assignment, answer={"statement": "Schön kalt, 你好"})
    )
    session.commit()
    out = tmp_path / "round.jsonl"

    result = shell("export", "sentiment", "--round", "1", "--out", str(out))

    assert result.exit_code == 0, result.output
    (line,) = out.read_text(encoding="utf-8").splitlines()
    assert json.loads(line)["answer"] == {"statement": "Schön kalt, 你好"}
    assert json.loads(line)["writer"] == worker.pseudonym
    assert "AWRITERWRITER" not in line
    assert "1 statements written" in result.stderr
    assert shell("export", "sentiment", "--round", "1").stdout.strip() == line


def test_a_round_that_is_not_there_leaves_no_file(shell: Shell, tmp_path: Path) -> None:
    out = tmp_path / "round.jsonl"

    result = shell("export", "sentiment", "--round", "7", "--out", str(out))

    assert result.exit_code == 1
    assert "There is no round 7" in result.stderr
    assert list(tmp_path.glob("round*")) == []


def test_a_file_that_cannot_be_written_is_said(shell: Shell, session: Session, tmp_path: Path) -> None:
    make_example(session)
    session.commit()

    result = shell("export", "sentiment", "--round", "1", "--out", str(tmp_path / "missing" / "round.jsonl"))

    assert result.exit_code == 1
    assert "can't be written" in result.stderr
    assert "Traceback" not in result.output
