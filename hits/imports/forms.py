"""The forms of published adversarial data sets: where in a row of each the task's fields stand."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hits.errors import InvalidAnswer
from hits.imports.rows import LeftOut, PublishedModel, PublishedRow, PublishedVote

Read = Callable[["Source", Mapping[str, Any]], PublishedRow | LeftOut]


@dataclass(frozen=True)
class Source:
    """The file that a row stands in, and the published votes of other files by the row's name."""

    path: Path
    votes: Mapping[str, tuple[str, ...]]

    @property
    def split(self) -> str | None:
        """Which split the file's name says it is."""
        found = re.search(r"(?<![a-z])(train|dev|valid(?:ation)?|test)(?![a-z])", self.path.name.lower())
        return None if found is None else {"valid": "dev", "validation": "dev"}.get(found[1], found[1])


@dataclass(frozen=True)
class Form:
    """A published data set: of which task it is, how its readers' votes decided, and how its rows are read.

    ``round_of`` tells the published round of a row, of sets that hold several in one file.
    """

    name: str
    title: str
    task_code: str
    licence: str
    note: str
    read: Read
    round_of: Callable[[Mapping[str, Any]], int] | None = None
    agreeing_votes: int = 2
    max_votes: int = 3
    votes_of: Callable[[Mapping[str, Any]], tuple[str, tuple[str, ...]]] | None = None


def _needed(row: Mapping[str, Any], *names: str) -> Any:
    for name in names:
        if row.get(name) is not None:
            return row[name]
    raise InvalidAnswer(names[0], f"{' or '.join(repr(name) for name in names)} is missing")


def _text(row: Mapping[str, Any], *names: str) -> str:
    value = _needed(row, *names)
    if not isinstance(value, str):
        raise InvalidAnswer(names[0], f"{names[0]!r} must be text, not {str(value)[:60]!r}")
    return value


def _coded(row: Mapping[str, Any], codes: Mapping[str, str], *names: str) -> str:
    value = str(_needed(row, *names)).strip()
    if value not in codes:
        raise InvalidAnswer(names[0], f"{names[0]} {value[:60]!r} is none of {', '.join(codes)}")
    return codes[value]


_NLI: Final = {
    "e": "entailment",
    "n": "neutral",
    "c": "contradiction",
    "entailment": "entailment",
    "neutral": "neutral",
    "contradiction": "contradiction",
}


def _anli(source: Source, row: Mapping[str, Any]) -> PublishedRow:
    name = _text(row, "uid")
    votes = tuple(_NLI.get(vote, vote) for vote in source.votes.get(name, ()))
    said = row.get("adversary_pred") or row.get("model_label")
    model = None
    if said:
        model = PublishedModel("anli:target", _coded(row, _NLI, "adversary_pred", "model_label"))
    return PublishedRow(
        name,
        {"premise": _text(row, "context", "premise")},
        {"hypothesis": _text(row, "statement", "hypothesis")},
        _coded(row, _NLI, "gold_label", "label"),
        model=model,
        votes=tuple(PublishedVote(None, vote) for vote in votes),
        why=str(row.get("reason") or ""),
        split=source.split,
    )


def _anli_votes(row: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    labels = _needed(row, "verifier labels")
    if not isinstance(labels, list) or any(label not in _NLI for label in labels):
        raise InvalidAnswer("verifier labels", f"{str(labels)[:60]!r} are not labels e, n, c")
    return _text(row, "uid"), tuple(labels)


_SENTIMENTS: Final = {label: label for label in ("negative", "positive", "neutral")}


def _dynasent(source: Source, row: Mapping[str, Any]) -> PublishedRow | LeftOut:
    given = _needed(row, "label_distribution")
    if not isinstance(given, dict) or not all(isinstance(names, list) for names in given.values()):
        raise InvalidAnswer("label_distribution", f"{str(given)[:60]!r} does not list readers by label")
    if row.get("gold_label") in (None, "mixed"):
        return LeftOut("readers settled on no label of the task (none, or mixed)")
    number = next((number for number in (0, 1) if f"model_{number}_label" in row), None)
    model = None
    if number is not None:
        label = _coded(row, _SENTIMENTS, f"model_{number}_label")
        model = PublishedModel(f"dynasent:model_{number}", label, row.get(f"model_{number}_probs"))
    prompt = (row.get("prompt_data") or {}).get("prompt_sentence") if row.get("has_prompt") else None
    return PublishedRow(
        _text(row, "text_id"),
        {"prompt": prompt or ""},
        {"statement": _text(row, "sentence")},
        _coded(row, _SENTIMENTS, "gold_label"),
        writer=row.get("sentence_author") or None,
        model=model,
        votes=tuple(PublishedVote(str(name), label) for label, names in given.items() for name in names),
        split=source.split,
    )


def _adversarial_qa(source: Source, row: Mapping[str, Any]) -> PublishedRow | LeftOut:
    answers = _needed(row, "answers")
    if isinstance(answers, dict):
        pairs = list(zip(answers.get("text", []), answers.get("answer_start", []), strict=False))
    else:
        pairs = [(answer["text"], answer["answer_start"]) for answer in answers]
    if not pairs:
        return LeftOut("no answer was published")
    text, start = pairs[0]
    if not isinstance(text, str) or not isinstance(start, int):
        raise InvalidAnswer("answers", f"{str(pairs[0])[:60]!r} is not an answer with its place")
    return PublishedRow(
        str(_needed(row, "id")),
        {"passage": _text(row, "context")},
        {"question": _text(row, "question"), "answer": text, "answer_start": str(start)},
        "right",
        split=(row.get("metadata") or {}).get("split") or source.split,
    )


_HATE: Final = {"hate": "hateful", "nothate": "not_hateful", "1": "hateful", "0": "not_hateful"}
_TYPES: Final = {
    "derogation": "derogation",
    "animosity": "animosity",
    "dehumanization": "dehumanization",
    "dehumanizing": "dehumanization",
    "dehumanizinglanguage": "dehumanization",
    "threatening": "threat",
    "threateninglanguage": "threat",
}
#: Of the abbreviations for attacked groups, those that are not people of an origin, nation or colour.
_TARGETS: Final = {
    "mus": "religion",
    "jew": "religion",
    "hindu": "religion",
    "wom": "sex",
    "man": "sex",
    "men": "sex",
    "trans": "sex",
    "gender": "sex",
    "non": "sex",
    "gay": "orientation",
    "gaywom": "orientation",
    "gayman": "orientation",
    "bis": "orientation",
    "asex": "orientation",
    "dis": "disability",
    "old": "age",
    "young": "age",
    "other": "other",
    "wc": "other",
    "lgbtq": "orientation",
}


def _hate_details(kind: str, targets: list[str]) -> dict[str, list[str]]:
    found = {
        _TARGETS.get(part, "origin")
        for target in targets
        for part in re.split(r"[._ ]+", target.strip().lower())
        if part and part not in ("none", "notgiven", "notargetrecorded")
    }
    return {
        "hate_type": [_TYPES[kind]] if kind in _TYPES else [],
        "hate_target": sorted(found),
    }


def _round_number(row: Mapping[str, Any]) -> int:
    value = str(_needed(row, "round.base", "round"))
    found = re.match(r"\d+", value)
    if found is None:
        raise InvalidAnswer("round", f"the round {value[:60]!r} begins with no number")
    return int(found[0])


def _hatemoji(source: Source, row: Mapping[str, Any]) -> PublishedRow:
    targets = _text(row, "target")
    try:
        listed = ast.literal_eval(targets) if targets.startswith("[") else [targets]
    except (ValueError, SyntaxError) as error:
        raise InvalidAnswer("target", f"the target {targets[:60]!r} is not a list") from error
    name, kind = _text(row, "entry_id"), _text(row, "type").lower()
    return PublishedRow(
        name,
        {"prompt": ""},
        {"message": _text(row, "text")},
        _coded(row, _HATE, "label_gold", "label"),
        split=row.get("split") or source.split,
        family=_text(row, "matched_id") if row.get("set") == "perturbation" and row.get("matched_id") else name,
        details=_hate_details(kind, [str(one) for one in listed]),
        raw={"type": kind, "target": targets, "set": str(row.get("set") or "")},
    )


def _dghs(source: Source, row: Mapping[str, Any]) -> PublishedRow:
    name = _text(row, "acl.id", "id")
    targets = str(row.get("target") or "none")
    kind = str(row.get("type") or "none").lower()
    matched = str(row.get("acl.id.matched") or "").strip()
    perturbed = str(row.get("level") or "").lower().startswith("perturb")
    return PublishedRow(
        name,
        {"prompt": ""},
        {"message": _text(row, "text")},
        _coded(row, _HATE, "label"),
        writer=str(row.get("annotator") or "").strip() or None,
        split=row.get("split") or source.split,
        family=matched if perturbed and matched not in ("", "NA", "none", "0") else name,
        details=_hate_details(kind, re.split(r"[,;]", targets)),
        raw={"type": kind, "target": targets, "set": str(row.get("level") or "")},
    )


FORMS: Final = {
    form.name: form
    for form in (
        Form(
            "anli",
            "ANLI (Nie et al. 2020)",
            "nli",
            "cc-by-nc-4.0",
            "Writers are not told apart; verifiers' labels are in a file of their own, without names.",
            _anli,
            votes_of=_anli_votes,
        ),
        Form(
            "dynasent",
            "DynaSent v1.1 (Potts et al. 2021)",
            "sentiment",
            "cc-by-4.0",
            "The label that the writer was asked for was not published; the readers' stands for it.",
            _dynasent,
            agreeing_votes=3,
            max_votes=5,
        ),
        Form(
            "adversarialqa",
            "AdversarialQA (Bartolo et al. 2020)",
            "qa",
            "cc-by-sa-4.0",
            "The model's answers were not published; the first published answer is the writer's.",
            _adversarial_qa,
        ),
        Form(
            "dghs",
            "Dynamically Generated Hate Speech (Vidgen et al. 2021)",
            "hate",
            "not stated",
            "Neither the model's answers nor the votes were published.",
            _dghs,
            round_of=_round_number,
        ),
        Form(
            "hatemoji",
            "HatemojiBuild (Kirk et al. 2022)",
            "hate",
            "cc-by-4.0",
            "Neither writers nor the model's answers nor the votes were published.",
            _hatemoji,
            round_of=_round_number,
        ),
    )
}
