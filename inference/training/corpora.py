"""Reads published data sets as rows of texts with their right answers; which rows are held out is said elsewhere."""

from __future__ import annotations

import csv
import gzip
import html
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hits.predictions import AnswerSpan


@dataclass(frozen=True)
class Row:
    """Texts in the order in which the model reads them, their label, and what part of the votes each label got.

    ``votes`` is in the recipe's order of labels. Rows of one ``group`` belong together (one premise, one original with
    its perturbations): they are held out together or not at all. ``kind`` is the data set's own class of the row.
    """

    texts: tuple[str, ...]
    label: str
    votes: tuple[float, ...]
    group: str = ""
    kind: str = ""


@dataclass(frozen=True)
class Asked:
    """A question to a passage with everybody's answers to it; ``group`` is the article."""

    passage: str
    question: str
    answers: tuple[AnswerSpan, ...]
    group: str


def dynasent(path: Path, labels: Sequence[str]) -> list[Row]:
    """Read a DynaSent file with its validators' votes. Raises ValueError that names the line of an unknown label."""
    rows: list[Row] = []
    for number, line in enumerate(text_of(path).removesuffix("\n").split("\n"), start=1):
        item = json.loads(line)
        _check(item["gold_label"], labels, f"{path}:{number}: gold_label")
        counts = [len(item["label_distribution"][label]) for label in labels]
        votes = tuple(count / max(1, sum(counts)) for count in counts)
        rows.append(Row((item["sentence"],), item["gold_label"], votes))
    return rows


def sentence_pairs(path: Path, labels: Sequence[str], *, columns: tuple[str, str, str]) -> list[Row]:
    """Read premise, hypothesis and label from a table with these columns; the premise is the group.

    Rows that got no label (SNLI's "-") are left out. Raises ValueError as dynasent does.
    """
    rows: list[Row] = []
    for number, item in table(path):
        premise, hypothesis, label = (item[column].strip() for column in columns)
        if label == "-" or not premise or not hypothesis:
            continue
        _check(label, labels, f"{path}:{number}: {columns[2]}")
        rows.append(Row((premise, hypothesis), label, one_vote(label, labels), group=premise))
    return rows


def hatemoji(path: Path, labels: Sequence[str], *, rounds: Sequence[str]) -> list[Row]:
    """Read HatemojiBuild's rows of these rounds; ``labels`` are (not hateful, hateful).

    The group is the lesser entry number of a text and its perturbation, since nearly all such pairs have opposite
    labels and many lie in two splits.
    """
    rows: list[Row] = []
    for number, item in table(path):
        if item["round.base"] not in rounds:
            continue
        _check(item["label_gold"], ("0", "1"), f"{path}:{number}: label_gold")
        label = labels[int(item["label_gold"])]
        known = [int(part) for part in (item["entry_id"], item["matched_id"]) if part.strip().isdigit()]
        rows.append(Row((item["text"],), label, one_vote(label, labels), group=str(min(known))))
    return rows


def hatecheck(path: Path, labels: Sequence[str]) -> list[Row]:
    """Read HateCheck's cases; ``labels`` are (not hateful, hateful) and the group is the tested ability."""
    names = {"non-hateful": labels[0], "hateful": labels[1]}
    rows: list[Row] = []
    for number, item in table(path):
        _check(item["label_gold"], tuple(names), f"{path}:{number}: label_gold")
        label = names[item["label_gold"]]
        rows.append(Row((item["test_case"],), label, one_vote(label, labels), group=item["functionality"]))
    return rows


def davidson(path: Path, labels: Sequence[str], *, kind: str) -> list[Row]:
    """Read Davidson's tweets of a class ("0" hate speech, "1" merely offensive, "2" neither).

    ``labels`` are (not hateful, hateful); only the first class is hateful. The votes are the coders': what part of them
    called it hate speech. What only Twitter put into a text is taken out; equal texts are one group.
    """
    rows: list[Row] = []
    for number, item in table(path):
        _check(item["class"], ("0", "1", "2"), f"{path}:{number}: class")
        text = tweet(item["tweet"])
        if item["class"] != kind or not text:
            continue
        hateful = int(item["hate_speech"]) / int(item["count"])
        rows.append(Row((text,), labels[int(kind == "0")], (1 - hateful, hateful), group=text, kind=kind))
    return rows


def tweet(text: str) -> str:
    """Return a tweet's text without what only Twitter put there: entities, links, names of users, retweet marks."""
    plain = html.unescape(html.unescape(text))
    plain = re.sub(r"https?://\S+", "", plain)
    plain = re.sub(r"\bRT\b:?", "", plain)
    plain = re.sub(r"@\w+:?", "", plain)
    return re.sub(r"\s+", " ", plain).strip(' "!')


def squad(path: Path) -> list[Asked]:
    """Read questions in SQuAD's format, with distinct answers only once per person who gave them.

    Where an answer's stated offset doesn't hold its text, or the text stands at several places, the place is taken that
    overlaps most with the others' answers, and then the one whose surroundings share most words with the question.
    Raises ValueError for an answer that its passage doesn't hold.
    """
    asked: list[Asked] = []
    for article in json.loads(text_of(path))["data"]:
        for paragraph in article["paragraphs"]:
            passage = paragraph["context"]
            for item in paragraph["qas"]:
                answers = _placed(path, passage, item)
                asked.append(Asked(passage, item["question"].strip(), answers, article["title"]))
    return asked


def text_of(path: Path) -> str:
    """Return the file's text, unpacked when its name ends in .gz."""
    content = path.read_bytes()
    return (gzip.decompress(content) if path.suffix == ".gz" else content).decode("utf-8")


def table(path: Path) -> Iterator[tuple[int, Mapping[str, str]]]:
    """Yield (line number, row by column) of a comma- or tab-separated file."""
    tabs = ".tsv" in path.suffixes
    reader = csv.DictReader(
        io.StringIO(text_of(path), newline=""),
        delimiter="\t" if tabs else ",",
        quoting=csv.QUOTE_NONE if tabs else csv.QUOTE_MINIMAL,
    )
    for row in reader:
        yield reader.line_num, row


def one_vote(label: str, labels: Sequence[str]) -> tuple[float, ...]:
    """Return the votes of a row that has a label only."""
    return tuple(float(label == other) for other in labels)


def _check(found: str, known: Sequence[str], where: str) -> None:
    if found not in known:
        raise ValueError(f"{where} is {found!r}, not one of {list(known)}")


def _placed(path: Path, passage: str, item: Mapping[str, Any]) -> tuple[AnswerSpan, ...]:
    texts: list[tuple[str, list[int]]] = []
    for answer in item["answers"]:
        places = [match.start() for match in re.finditer(re.escape(answer["text"]), passage)]
        if not answer["text"].strip() or not places:
            raise ValueError(f"{path}: the passage of question {item['id']} doesn't hold its answer {answer['text']!r}")
        texts.append((answer["text"], places))
    sure = [(places[0], places[0] + len(text)) for text, places in texts if len(places) == 1]
    words = set(re.findall(r"\w{3,}", item["question"].lower()))

    def fit(place: int, text: str) -> tuple[int, int, int]:
        end = place + len(text)
        shared = sum(max(0, min(end, right) - max(place, left)) for left, right in sure)
        near = set(re.findall(r"\w{3,}", passage[max(0, place - 120) : end + 120].lower()))
        return shared, len(words & near), -place

    spans = []
    for text, places in texts:
        start = max(places, key=lambda place: fit(place, text))
        spans.append(AnswerSpan(start, start + len(text), text))
    return tuple(spans)
