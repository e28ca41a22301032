"""What must hold for each task, whichever tasks there are."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

from hits.errors import InvalidAnswer, InvalidInput, NotFound
from hits.tasks import TASKS, Fit, TaskSpec, find_tasks, task
from hits.tasks._spec import incomplete

every_task = pytest.mark.parametrize("spec", TASKS.values(), ids=lambda spec: spec.code)


@every_task
def test_it_is_complete(spec: TaskSpec) -> None:
    assert incomplete(spec) == []
    assert {example.label for example in spec.examples} == set(spec.label_codes)
    assert len(spec.title) <= 128
    assert len(spec.description) <= 2000


@every_task
def test_its_quiz_asks_for_every_label(spec: TaskSpec) -> None:
    assert set(Counter(item.right for item in spec.quiz)) == set(spec.label_codes)


@every_task
def test_it_has_a_goal_in_words_and_never_asks_for_what_readers_would_reject(spec: TaskSpec) -> None:
    assert spec.goals
    assert not set(spec.goals) & set(spec.rejecting_labels)
    for goal in spec.goals:
        assert spec.label(goal).goal in spec.goal_sentence(goal)


@every_task
def test_an_unknown_label_is_refused_with_the_list(spec: TaskSpec) -> None:
    with pytest.raises(InvalidInput, match=spec.label_codes[0]):
        spec.goal_sentence("LABEL_0")


@every_task
def test_its_examples_and_quiz_are_long_enough_to_teach(spec: TaskSpec) -> None:
    assert len(spec.examples) >= 3
    for quiz in (spec.quiz, spec.writer_quiz):
        assert len(quiz) >= 14
        assert len({(item.text, item.marked) for item in quiz}) == len(quiz)
        assert all(item.feedback for item in quiz)
        assert all(
            set(item.context) == ({field.name for field in spec.context_fields} if item.context else set())
            for item in quiz
        )


@every_task
def test_its_writers_quiz_asks_for_every_goal_and_every_answer(spec: TaskSpec) -> None:
    assert {item.goal for item in spec.writer_quiz} == set(spec.goals)
    assert {item.right for item in spec.writer_quiz} == set(Fit)
    # What writers and readers are asked differs, so that one quiz does not give the other away.
    assert not {item.text for item in spec.writer_quiz} & {item.text for item in spec.quiz}
    taught = {text for example in spec.examples for text in example.answer.values()}
    assert not taught & {item.text for item in (*spec.writer_quiz, *spec.quiz)}


@every_task
def test_its_fields_refuse_what_is_no_text(spec: TaskSpec) -> None:
    with pytest.raises(InvalidAnswer):
        spec.check_answer({}, {field.name: "x" for field in spec.context_fields})
    with pytest.raises(InvalidAnswer):
        spec.check_context({"unknown": "x"})


def test_an_unknown_task_is_refused_with_the_list() -> None:
    with pytest.raises(NotFound, match="sentiment"):
        task("poetry")


@pytest.mark.parametrize(
    ("source", "error"), [("", TypeError), ("TASK = 3", TypeError), ("from hits.tasks.sentiment import TASK", None)]
)
def test_a_package_of_tasks_is_read_loudly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, error: type[Exception] | None
) -> None:
    package = tmp_path / f"tasks_{abs(hash(source))}"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "_notes.py").write_text("raise RuntimeError")
    (package / "one.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    if error:
        with pytest.raises(error, match=r"one must define TASK"):
            find_tasks(package.name, [str(package)])
    else:
        assert list(find_tasks(package.name, [str(package)])) == ["sentiment"]
        (package / "two.py").write_text(source)
        with pytest.raises(ValueError, match="repeats"):
            find_tasks(package.name, [str(package)])
