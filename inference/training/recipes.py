"""What each embedded model learns from and is measured on. Rows of the tests share no group with what is learned."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from inference.training import corpora
from inference.training.corpora import Asked, Row
from inference.training.fine_tune import Schedule
from inference.training.splits import by_place, sample, within, without

Head = Literal["text", "pair", "span"]
Rows = Sequence[Row | Asked]


@dataclass(frozen=True)
class DataFile:
    """A published file: where it lies under --data, and what the card calls it."""

    path: str
    source: str
    licence: str


@dataclass(frozen=True)
class Part:
    """Rows out of published files. ``which`` tells a reader of the card which rows these are."""

    files: tuple[DataFile, ...]
    which: str
    rows: Callable[[Path], Rows]


@dataclass(frozen=True)
class Recipe:
    """All that decides a fine-tuning but the seed and the data.

    Every epoch learns all rows, unless ``rows_of_epoch`` takes some for it. ``lengths`` are the most positions of an
    input in each epoch, ``max_length`` those when serving; ``stride`` is what windows over a passage share.
    ``chosen_on`` are the rows by which the recipe was chosen: neither learned nor tests. ``choice`` tells how.
    ``aims`` is what the model should reach, by test: accuracy, or F1 of a reader.
    """

    model_id: str
    task: str
    head: Head
    labels: tuple[str, ...]
    train: Part
    tests: Mapping[str, Part]
    aims: Mapping[str, float]
    chosen_on: Part | None
    licence: str
    schedule: Schedule
    lengths: tuple[int, ...]
    rank: int = 32
    max_length: int = 256
    stride: int = 64
    members: int = 1
    emoji_names: bool = False
    rows_of_epoch: Callable[[Rows, int], Rows] | None = None
    choice: str = ""

    def learned_in(self, rows: Rows, epoch: int) -> Rows:
        """Return which of the training rows an epoch learns."""
        return rows if self.rows_of_epoch is None else self.rows_of_epoch(rows, epoch)


_ONE_RUN = (
    "Set beforehand, after earlier trials with models of this size on the same files; nothing was tuned on these rows, "
    "and the first run was kept."
)

_DYNASENT = "DynaSent v1.1 (github.com/cgpotts/dynasent), "
_SENTIMENT_LABELS = ("negative", "positive", "neutral")


def _dynasent(name: str, which: str) -> Part:
    path = f"sentiment_dynasent/dynasent-v1.1-{name}"

    def rows(data: Path) -> list[Row]:
        return corpora.dynasent(data / path, _SENTIMENT_LABELS)

    return Part((DataFile(path, _DYNASENT + which, "CC BY 4.0"),), "all rows", rows)


_NLI_LABELS = ("entailment", "neutral", "contradiction")
_MNLI = DataFile(
    "nli_base/mnli_dev_matched_and_mismatched.csv.gz",
    "MultiNLI dev, matched and mismatched (copy in github.com/felipessalvatore/NLI_datasets)",
    "OANC; fiction part CC BY, CC BY-SA or public domain",
)
_SNLI = DataFile(
    "nli_base/snli_dev.csv.gz", "SNLI dev (copy in github.com/felipessalvatore/NLI_datasets)", "CC BY-SA 4.0"
)
_CAD_TEST = DataFile(
    "nli_base/cad_nli_all_combined_test.tsv",
    "counterfactually augmented SNLI, test (github.com/acmi-lab/counterfactually-augmented-data)",
    "Apache-2.0, made from SNLI (CC BY-SA 4.0)",
)
_PAIR_COLUMNS = ("premise", "hypothesis", "label")


def _nli(file: DataFile, start: int, end: int, data: Path) -> list[Row]:
    return within(corpora.sentence_pairs(data / file.path, _NLI_LABELS, columns=_PAIR_COLUMNS), start, end)


def _nli_train(data: Path) -> list[Row]:
    return [*sample(_nli(_MNLI, 1500, 10_000, data), 13_000), *_nli(_SNLI, 1500, 10_000, data)]


def _nli_chosen(data: Path) -> list[Row]:
    return [*_nli(_MNLI, 1000, 1500, data), *_nli(_SNLI, 1000, 1500, data)]


def _cad_test(data: Path) -> list[Row]:
    columns = ("sentence1", "sentence2", "gold_label")
    found = corpora.sentence_pairs(data / _CAD_TEST.path, _NLI_LABELS, columns=columns)
    return without(found, _nli_train(data))


_TENTH = "premises whose hash falls into the first tenth; no premise is in two parts"

_HATE_LABELS = ("not_hateful", "hateful")
_DAVIDSON = DataFile(
    "hate_base/davidson_labeled_data.csv.gz",
    "hate speech and offensive language (github.com/t-davidson/hate-speech-and-offensive-language)",
    "MIT",
)
_HATECHECK = DataFile(
    "hate_base/hatecheck_test_suite_cases.csv", "HateCheck (github.com/paul-rottger/hatecheck-data)", "CC BY 4.0"
)
_HATEMOJI = tuple(
    DataFile(
        f"hate_hatemoji/HatemojiBuild_{split}.csv",
        f"HatemojiBuild, {split} (github.com/HannahKirk/Hatemoji)",
        "CC BY 4.0",
    )
    for split in ("train", "validation", "test")
)
_OF_AN_EPOCH = {"0": 700, "1": 350, "2": 350}


def _hatemoji(files: Sequence[DataFile], rounds: Sequence[str], data: Path) -> list[Row]:
    return [row for file in files for row in corpora.hatemoji(data / file.path, _HATE_LABELS, rounds=rounds)]


def _davidson(kind: str, start: int, end: int, data: Path) -> list[Row]:
    return within(corpora.davidson(data / _DAVIDSON.path, _HATE_LABELS, kind=kind), start, end)


def _hatecheck(data: Path) -> list[Row]:
    return corpora.hatecheck(data / _HATECHECK.path, _HATE_LABELS)


def _hate_train(data: Path) -> list[Row]:
    tweets = [row for kind in _OF_AN_EPOCH for row in _davidson(kind, 1000, 10_000, data)]
    learned = [*within(_hatemoji(_HATEMOJI, ("5",), data), 1000, 10_000), *tweets]
    # Some texts were written again in a later round.
    held_out = {row.texts for row in [*_hatemoji(_HATEMOJI, ("6", "7"), data), *_hatecheck(data)]}
    return [row for row in learned if row.texts not in held_out]


def _hate_epoch(rows: Rows, epoch: int) -> list[Row]:
    """Take all of HatemojiBuild, and other tweets in each epoch."""
    known = [row for row in rows if isinstance(row, Row)]
    chosen = [row for row in known if row.kind not in _OF_AN_EPOCH]
    for kind, count in _OF_AN_EPOCH.items():
        some = [row for row in known if row.kind == kind]
        chosen += [some[(epoch * count + index) % len(some)] for index in range(count)]
    return chosen


def _hate_chosen(data: Path) -> list[Row]:
    tweets = [row for kind in _OF_AN_EPOCH for row in sample(_davidson(kind, 0, 1000, data), 100)]
    return [*within(_hatemoji(_HATEMOJI, ("5",), data), 0, 1000), *tweets]


_SQUAD = DataFile(
    "qa_squad/squad_v1.1_dev_from_explorer.json.gz",
    "SQuAD v1.1 dev, from its article pages (github.com/rajpurkar/SQuAD-explorer)",
    "CC BY-SA 4.0",
)
_NEW_WIKI = DataFile(
    "qa_squad/squadshifts_new_wiki_v1.0.json.gz",
    "SquadShifts, new Wikipedia (github.com/modestyachts/squadshifts-website)",
    "CC BY-SA 4.0 (Wikipedia's text; the repository itself states none)",
)
_SHORT, _LONG = 8000, 3500
"""How many questions the two epochs of a reader have; no question is in both."""


def _squad(start: int, end: int, data: Path) -> list[Asked]:
    return within(corpora.squad(data / _SQUAD.path), start, end)


def _qa_train(data: Path) -> list[Asked]:
    new_wiki = within(corpora.squad(data / _NEW_WIKI.path), 500, 10_000)
    # The files hold some questions several times.
    once = {(row.passage, row.question): row for row in [*new_wiki, *_squad(3000, 10_000, data)]}
    return by_place(once.values())


def _qa_epoch(rows: Rows, epoch: int) -> list[Asked]:
    asked = [row for row in rows if isinstance(row, Asked)]
    return asked[:_SHORT] if epoch == 0 else asked[_SHORT : _SHORT + _LONG]


RECIPES = {
    "sentiment": Recipe(
        model_id="dynahit/sentiment-minilm-l6-r32",
        task="sentiment",
        head="text",
        labels=_SENTIMENT_LABELS,
        train=_dynasent("round01-yelp-dev.jsonl.gz", "round 1 dev"),
        tests={
            "round 1 test": _dynasent("round01-yelp-test.jsonl.gz", "round 1 test"),
            "round 2 dev": _dynasent("round02-dynabench-dev.jsonl", "round 2 dev"),
        },
        aims={"round 1 test": 0.70},
        chosen_on=None,
        licence="Apache-2.0 (base weights); the fine-tuning was made from CC BY 4.0 data, named below",
        schedule=Schedule(bfloat16=True),
        choice="Round 2 dev was looked at while the recipe was chosen, round 1 test was not.",
        lengths=(256, 256),
        members=4,
    ),
    "nli": Recipe(
        model_id="dynahit/nli-minilm-l6-r32",
        task="nli",
        head="pair",
        labels=_NLI_LABELS,
        train=Part(
            (_MNLI, _SNLI),
            "premises outside the tests' and the choice's: 13,000 of MultiNLI, spread evenly, and all of SNLI",
            _nli_train,
        ),
        tests={
            "MultiNLI": Part((_MNLI,), _TENTH, partial(_nli, _MNLI, 0, 1000)),
            "SNLI": Part((_SNLI,), _TENTH, partial(_nli, _SNLI, 0, 1000)),
            "counterfactual SNLI": Part((_CAD_TEST,), "all rows whose premise was not learned", _cad_test),
        },
        aims={"MultiNLI": 0.65, "SNLI": 0.77},
        chosen_on=Part((_MNLI, _SNLI), "the next twentieth of the premises", _nli_chosen),
        licence="CC BY-SA 4.0 (made from SNLI); base weights Apache-2.0",
        schedule=Schedule(batch_size=16, body_rate=1.5e-4, head_rate=6e-4, dropout=0.1),
        choice=_ONE_RUN,
        lengths=(128,),
    ),
    "hate": Recipe(
        model_id="dynahit/hate-minilm-l6-r32",
        task="hate",
        head="text",
        labels=_HATE_LABELS,
        train=Part(
            (_DAVIDSON, *_HATEMOJI),
            "round 5 of HatemojiBuild but for a tenth of the pairs, in every epoch; and in each epoch 700 hateful, 350 "
            "offensive and 350 other tweets",
            _hate_train,
        ),
        tests={
            "HatemojiBuild round 6 test": Part(_HATEMOJI[2:], "round 6", partial(_hatemoji, _HATEMOJI[2:], ("6",))),
            "HatemojiBuild round 7 test": Part(_HATEMOJI[2:], "round 7", partial(_hatemoji, _HATEMOJI[2:], ("7",))),
            "HatemojiBuild rounds 6 and 7": Part(
                _HATEMOJI, "all rows of both rounds", partial(_hatemoji, _HATEMOJI, ("6", "7"))
            ),
            "HateCheck": Part((_HATECHECK,), "all rows", _hatecheck),
        },
        aims={"HatemojiBuild round 6 test": 0.70, "HatemojiBuild round 7 test": 0.70, "HateCheck": 0.70},
        chosen_on=Part((_DAVIDSON, *_HATEMOJI), "a tenth of the pairs of round 5 and 300 other tweets", _hate_chosen),
        licence="Apache-2.0 (base weights); the fine-tuning was made from MIT and CC BY 4.0 data, named below",
        schedule=Schedule(batch_size=16, body_rate=1e-4, head_rate=6e-4, dropout=0.1),
        choice=_ONE_RUN,
        lengths=(128, 128, 128),
        rows_of_epoch=_hate_epoch,
        emoji_names=True,
    ),
    "qa": Recipe(
        model_id="dynahit/qa-minilm-l6-r48",
        task="qa",
        head="span",
        labels=(),
        train=Part(
            (_SQUAD, _NEW_WIKI),
            "questions of articles outside the tests' and the choice's, mixed: 8,000 with passages cut to 96 word "
            "pieces, then 3,500 others with 224",
            _qa_train,
        ),
        tests={
            "SQuAD, unseen articles": Part(
                (_SQUAD,),
                "articles whose hash falls into the first quarter; no article is in two parts",
                partial(_squad, 0, 2500),
            ),
        },
        aims={"SQuAD, unseen articles": 0.65},
        chosen_on=Part((_SQUAD,), "articles in the next twentieth", partial(_squad, 2500, 3000)),
        licence="CC BY-SA 4.0 (made from SQuAD and Wikipedia's text); base weights Apache-2.0",
        schedule=Schedule(batch_size=16, body_rate=1.5e-4, head_rate=6e-4, dropout=0.1),
        choice=_ONE_RUN,
        lengths=(96, 224),
        rank=48,
        rows_of_epoch=_qa_epoch,
    ),
}
