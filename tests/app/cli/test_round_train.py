"""`dynahit round train`: a plan changes nothing, a training ends with what to set, and odd options are said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sqlalchemy.orm import Session

from hits.models import ModelVersion
from tests.app.cli.test_hits import Shell, market, shell
from tests.inference.published import save_model

__all__ = ["market", "shell"]

pytest.importorskip("torch")
pytestmark = pytest.mark.parametrize("database_url", [pytest.param("sqlite", marks=pytest.mark.sqlite)], indirect=True)


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    encoder = save_model(tmp_path / "tiny-bert", "bert", ("positive", "negative", "neutral"))
    path = tmp_path / "base.csv"
    words = (("good", "2"), ("bad", "0"), ("there", "1"))
    path.write_text(
        "text,label\n" + "".join(f"food {n} was {word},{label}\n" for n in range(9) for word, label in words)
    )
    meant = [part for name in ("0=negative", "1=neutral", "2=positive") for part in ("--base-label", name)]
    small = ["--epochs", "1", "--length", "16", "--threads", "1", "--local-files-only"]
    return ["round", "train", "sentiment", "--round", "0", "--base", str(path), "--base-licence", "mit", *meant,
            "--model", f"dir:{encoder}", "--out", str(tmp_path / "out"), *small]  # fmt: skip


def test_a_plan_shows_rows_steps_and_time_and_a_training_what_to_set(
    shell: Shell, session: Session, command: list[str], tmp_path: Path
) -> None:
    planned = shell(*command, "--plan")

    assert planned.exit_code == 0, planned.output
    for shown in (
        "base base.csv",
        "mit",
        "steps each at most",
        "Would be written: sentiment-r0-tiny-bert-s1-",
        "About",
    ):
        assert shown in planned.output
    assert not (tmp_path / "out").exists()

    done = shell(*command, "--json")

    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    (model,) = said["models"]
    assert Path(model["folder"]).name in planned.output
    assert session.query(ModelVersion).one().weights_sha256 == model["weights_sha256"]
    session.rollback()
    shown = shell(*command)
    assert "It was there already." in shown.output
    assert f'DYNAHIT_MODELS={{"sentiment": "dir:{model["folder"]}"}}' in shown.output


ODD = {
    ("--seeds", "one"): "are no seeds",
    ("--weight", "base"): "not of the form NAME=VALUE",
    ("--weight", "base=much"): "'much' is no number",
    ("--class-weight", "sad=2"): "no label of this task",
    ("--epochs", "0"): "epochs is 0",
    ("--model", "served:x"): "can't be trained",
}


def test_options_that_can_not_be_used_are_said(shell: Shell, command: list[str]) -> None:
    for more, said in ODD.items():
        result = shell(*command, *more, "--plan")

        assert result.exit_code != 0, more
        assert said in result.output
        assert "Traceback" not in result.output
