"""A round's model: the same rows and seed give the same weights, killed or not; its folder is whole, its labels fit."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hits.errors import InvalidInput, Refused
from hits.predictions import AnswerSpan
from hits.tasks import task
from inference.ensembles import Ensemble
from inference.errors import LabelsUnknown
from inference.loading import load_model
from inference.training import round_model
from inference.training.corpora import Asked, Row
from inference.training.mixture import Source
from inference.training.round_model import Prepared, Settings, Trained, Wanted, prepare, reference_of, train_model
from tests.inference.published import save_model

pytest.importorskip("torch")

ROOT = Path(__file__).resolve().parents[3]
#: In another order than the task's.
LABELS = ("positive", "neutral", "negative")
WORDS = {"positive": "good", "negative": "bad", "neutral": "room"}
FAST = Settings(
    epochs=3, batch_size=8, length=16, body_rate=3e-3, head_rate=3e-3, dropout=0.1, watched_rows=9, dev_percent=20
)
CODES = task("sentiment").label_codes


class Killed(BaseException):
    """What nobody catches, as a process that is killed."""


def rows(count: int, place: str = "the staff") -> list[Row]:
    return [
        Row((f"{place} was {WORDS[label]} {number}",), label, tuple(float(label == one) for one in CODES))
        for number in range(count)
        for label in CODES
    ]


def prepared(settings: Settings = FAST) -> Prepared:
    first = Source(
        "round 1", rows(8), rows(2, "the food"), rows(2, "it"), licence="cc-by-nc-4.0", facts={"sha256": "a"}
    )
    return prepare(task("sentiment"), [first], settings)


def wanted(folder: Path, seed: int = 1, **more: Any) -> Wanted:
    given: dict[str, Any] = {"kind": "pretrained", "settings": FAST} | more
    return Wanted(task("sentiment"), (1,), f"dir:{folder}", seed=seed, **given)


def trained(one: Wanted, out: Path, advance: Callable[[float], None] = lambda loss: None) -> Trained:
    return train_model(one, prepared(one.settings), out, threads=1, code={"git_commit": None}, advance=advance)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    card = {"license": "mit"}
    return save_model(tmp_path_factory.mktemp("models") / "tiny-bert", "bert", LABELS, card=card)


def test_a_training_that_was_killed_goes_on_and_gives_the_same_weights(
    tmp_path: Path, encoder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(round_model, "CHECKPOINT_STEPS", 2)
    whole = trained(wanted(encoder), tmp_path / "whole")
    steps: list[float] = []

    def killed_at(step: int) -> Callable[[float], None]:
        def advance(loss: float) -> None:
            steps.append(loss)
            if len(steps) == step:
                raise Killed

        return advance

    for step in (3, 6):
        with pytest.raises(Killed):
            trained(wanted(encoder), tmp_path / "killed", killed_at(step))
        assert not [path for path in (tmp_path / "killed").iterdir() if not path.name.endswith(".part")]
    after = trained(wanted(encoder), tmp_path / "killed", steps.append)

    assert after.card.weights_sha256 == whole.card.weights_sha256
    assert after.facts["training"] == whole.facts["training"]
    assert after.facts["scores"] == whole.facts["scores"]
    # 9 steps; those after the last state are done again.
    assert len(steps) == 9 + 1 + 1
    assert [path.name for path in (tmp_path / "killed").iterdir()] == [whole.folder.name]
    assert not trained(wanted(encoder), tmp_path / "killed", steps.append).fresh
    assert len(steps) == 11


def test_two_commands_do_not_train_the_same_model_at_once(tmp_path: Path, encoder: Path) -> None:
    said: list[str] = []

    def second_command(_loss: float) -> None:
        if not said:
            with pytest.raises(Refused) as refused:
                trained(wanted(encoder), tmp_path)
            said.append(str(refused.value))

    found = trained(wanted(encoder), tmp_path, second_command)

    assert "is being trained by another command" in said[0]
    assert [one.name for one in tmp_path.iterdir()] == [found.folder.name]


def test_the_folder_is_served_by_its_reference_and_says_where_it_comes_from(tmp_path: Path, encoder: Path) -> None:
    one, other = trained(wanted(encoder), tmp_path), trained(wanted(encoder, seed=2), tmp_path)

    served = load_model(task("sentiment"), reference_of([one]))
    both = load_model(task("sentiment"), reference_of([one, other]))

    assert served.card == one.card
    assert (one.card.seed, one.card.licence) == (1, "mit; cc-by-nc-4.0")
    assert one.card.weights_sha256 != other.card.weights_sha256
    assert isinstance(both, Ensemble)
    assert set(both.predict_all([("the staff was good",)])[0].probabilities) == set(CODES)
    card = (one.folder / "README.md").read_text(encoding="utf-8")
    assert "round 1 is cc-by-nc-4.0: not for commercial use" in card
    assert "| round 1, test | 6 |" in card
    assert one.facts["data"][0]["facts"]["sha256"] == "a"
    assert one.facts["weights_sha256"] == one.card.weights_sha256
    assert one.facts["start"]["reference"] == "dir:tiny-bert"
    for place in (tmp_path, encoder.parent):
        assert str(place) not in card + (one.folder / "dynahit.json").read_text(encoding="utf-8")


def test_a_tuned_model_goes_on_with_its_head_whatever_the_order_of_its_labels(tmp_path: Path, encoder: Path) -> None:
    many = Settings(epochs=40, batch_size=24, length=16, body_rate=3e-3, head_rate=3e-3, dropout=0, dev_percent=0)
    learning = prepare(task("sentiment"), [Source("round 1", rows(8))], many)

    found = train_model(wanted(encoder, kind="tuned", settings=many), learning, tmp_path, threads=1, code={})

    assert found.card.labels == LABELS
    learned = rows(8)
    said = load_model(task("sentiment"), reference_of([found])).predict_all([one.texts for one in learned])
    assert [one.label for one in said] == [one.label for one in learned]


def test_a_folder_with_other_labels_is_refused_by_name(tmp_path: Path, encoder: Path) -> None:
    found = trained(wanted(encoder), tmp_path)
    config = json.loads((found.folder / "config.json").read_text())
    config["id2label"] = {"0": "hateful", "1": "not_hateful", "2": "neutral"}
    (found.folder / "config.json").write_text(json.dumps(config))

    with pytest.raises(LabelsUnknown, match="hateful"):
        trained(wanted(encoder), tmp_path)


def test_a_reader_of_passages_learns_where_answers_stand(tmp_path: Path) -> None:
    reader = save_model(tmp_path / "reader", "bert", None)
    asked = [
        Asked(
            f"the room was cold and the food was {word}", f"food {number}", (AnswerSpan(35, 35 + len(word), word),), ""
        )
        for number in range(8)
        for word in ("good", "bad")
    ]
    source = Source("base", asked, facts={"sha256": "b"})
    settings = Settings(
        epochs=8, batch_size=4, length=32, body_rate=5e-3, head_rate=5e-3, dropout=0, dev_percent=0, patience=99
    )
    one = Wanted(task("qa"), (), f"dir:{reader}", "tuned", 1, settings)

    found = train_model(one, prepare(task("qa"), [source], settings), tmp_path / "out", threads=1, code={})

    said = load_model(task("qa"), reference_of([found])).predict_all([(asked[0].passage, "food 3")])[0]
    assert said.span is not None
    assert said.span.text == "good"


def test_nothing_of_a_test_split_is_learned_also_where_a_limit_leaves_some_of_it_out() -> None:
    held = rows(6, "the food")
    base = Source("base a", [*rows(6, "the room"), *reversed(held)], dev=rows(1, "the view"))
    first = Source("round 1", rows(3), dev=rows(1, "the view"), test=held)

    found = prepare(task("sentiment"), [base, first], Settings(limit_per_source=4))

    assert [(len(source.train), len(source.test)) for source in found.sources] == [(4, 0), (4, 4)]
    assert not set(found.rows) & set(held)


def test_nothing_to_learn_a_missing_label_and_settings_out_of_bounds_are_said() -> None:
    with pytest.raises(InvalidInput, match="nothing to learn from"):
        prepare(task("sentiment"), [Source("a", [], rows(1))], FAST)
    with pytest.raises(InvalidInput, match="No training row has the label 'neutral'"):
        prepare(task("sentiment"), [Source("a", [one for one in rows(9) if one.label != "neutral"])], FAST)
    with pytest.raises(InvalidInput, match="leave an epoch without rows"):
        prepare(task("sentiment"), [Source("a", rows(4), weight=0)], FAST)
    with pytest.raises(InvalidInput, match="epochs is 0; it must be from 1 to 100"):
        Settings(epochs=0)


def launched(encoder: Path, out: Path, *, workers: int, dies_at: int = 0) -> int:
    """Train in processes of their own, as `torchrun` starts them, and return how the launcher ended."""
    out.mkdir(exist_ok=True)
    program = [sys.executable]
    if workers > 1:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        program += ["-m", "torch.distributed.run", "--nproc_per_node", str(workers)]
        program += ["--master_addr", "127.0.0.1", "--master_port", str(port)]
    program += ["-m", "tests.inference.training.one_of_several", str(encoder), str(out), str(dies_at)]
    # Gloo looks for the address of the machine's name, which need not be loopback.
    more = {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    return subprocess.run(program, cwd=ROOT, env=os.environ | more, check=False, timeout=600).returncode


@pytest.mark.slow
def test_two_workers_agree_and_come_close_to_one(tmp_path: Path, encoder: Path) -> None:
    from safetensors.torch import load_file

    assert launched(encoder, tmp_path / "one", workers=1) == 0
    assert launched(encoder, tmp_path / "two", workers=2) == 0

    first, second = (json.loads((tmp_path / "two" / f"worker-{rank}.json").read_text()) for rank in range(2))
    assert (first["workers"], second["workers"]) == (2, 2)
    assert first["sha256"] == second["sha256"]
    alone, together = (
        load_file(next((tmp_path / name / "models").glob("*/model.safetensors"))) for name in ("one", "two")
    )
    for name, value in alone.items():
        # Without dropout both see the same batches; sums are in another order. What keys are shifted by changes no
        # attention, so that only noise moves it.
        if not name.endswith("key.bias"):
            assert (value - together[name]).abs().max() < 1e-4, name


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_processes_that_were_killed_go_on_and_give_the_same_weights(
    tmp_path: Path, encoder: Path, workers: int
) -> None:
    assert launched(encoder, tmp_path / "whole", workers=workers) == 0
    assert launched(encoder, tmp_path / "killed", workers=workers, dies_at=5) != 0
    assert not list((tmp_path / "killed" / "models").glob("*/model.safetensors"))
    assert launched(encoder, tmp_path / "killed", workers=workers) == 0

    whole, killed = (json.loads((tmp_path / name / "worker-0.json").read_text()) for name in ("whole", "killed"))
    assert killed["sha256"] == whole["sha256"]
    assert killed["steps"] < whole["steps"]
