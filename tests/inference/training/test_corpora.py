"""The published formats: each row with its right answer, and what cannot be read named with its line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from hits.predictions import AnswerSpan
from inference.training.corpora import Row, davidson, dynasent, hatecheck, hatemoji, sentence_pairs, squad, tweet

SENTIMENT = ("negative", "positive", "neutral")
NLI = ("entailment", "neutral", "contradiction")
HATE = ("not_hateful", "hateful")


def write(path: Path, content: str) -> Path:
    path.write_bytes(gzip.compress(content.encode()) if path.suffix == ".gz" else content.encode())
    return path


def votes(**counts: int) -> dict[str, list[str]]:
    return {label: ["w"] * counts.get(label, 0) for label in (*SENTIMENT, "mixed")}


def sentences(**changes: object) -> str:
    rows: list[dict[str, object]] = [
        {"sentence": "good food", "gold_label": "positive", "label_distribution": votes(positive=5)},
        {"sentence": "it was\u2028so", "gold_label": "neutral", "label_distribution": votes(neutral=4)},
        {
            "sentence": "good and bad",
            "gold_label": "positive",
            "label_distribution": votes(positive=3, neutral=1, mixed=1),
            **changes,
        },
    ]
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.jsonl.gz"])
def test_sentences_carry_text_label_and_votes(tmp_path: Path, name: str) -> None:
    rows = dynasent(write(tmp_path / name, sentences()), SENTIMENT)

    assert [row.label for row in rows] == ["positive", "neutral", "positive"]
    assert rows[1].texts == ("it was\u2028so",)
    assert rows[2] == Row(("good and bad",), "positive", (0.0, 0.75, 0.25))


def test_an_unknown_label_is_named_with_its_line(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", sentences(gold_label="mixed"))

    with pytest.raises(ValueError, match=r"rows\.jsonl:3: gold_label is 'mixed'"):
        dynasent(path, SENTIMENT)


def test_pairs_are_grouped_by_premise_and_rows_without_label_left_out(tmp_path: Path) -> None:
    path = write(tmp_path / "p.csv.gz", 'premise,hypothesis,label\n"A, b",C ,neutral\n"A, b",D,-\nE,F,entailment\n')

    rows = sentence_pairs(path, NLI, columns=("premise", "hypothesis", "label"))

    assert [(row.texts, row.label, row.group) for row in rows] == [
        (("A, b", "C"), "neutral", "A, b"),
        (("E", "F"), "entailment", "E"),
    ]
    assert rows[0].votes == (0.0, 1.0, 0.0)


def test_quotation_marks_of_a_tab_separated_file_are_text(tmp_path: Path) -> None:
    path = write(tmp_path / "p.tsv", 'sentence1\tsentence2\tgold_label\n"A man" sits\tB\tcontradiction\n')

    (row,) = sentence_pairs(path, NLI, columns=("sentence1", "sentence2", "gold_label"))

    assert row.texts == ('"A man" sits', "B")


HATEMOJI_HEAD = "entry_id,text,type,target,round.base,round.set,set,split,label_gold,matched_text,matched_id\n"


def test_a_text_and_its_perturbation_are_one_group_and_other_rounds_are_left_out(tmp_path: Path) -> None:
    path = write(
        tmp_path / "h.csv",
        HATEMOJI_HEAD
        + "4,I like 👏 them,none,['none'],5,5b,perturbation,test,0,I 🔪 them,3\n"
        + "3,I 🔪 them,threat,['x'],5,5a,original,train,1,I like 👏 them,4\n"
        + "9,alone,none,['none'],6,6a,original,train,0,,\n",
    )

    rows = hatemoji(path, HATE, rounds=("5",))

    assert [(row.texts[0], row.label, row.group) for row in rows] == [
        ("I like 👏 them", "not_hateful", "3"),
        ("I 🔪 them", "hateful", "3"),
    ]
    assert [row.group for row in hatemoji(path, HATE, rounds=("6",))] == ["9"]


def test_cases_of_hatecheck_carry_the_ability_that_they_test(tmp_path: Path) -> None:
    path = write(
        tmp_path / "c.csv", ",functionality,case_id,test_case,label_gold\n0,negate,1,I like them.,non-hateful\n"
    )

    assert [(row.label, row.group) for row in hatecheck(path, HATE)] == [("not_hateful", "negate")]


def test_only_hate_speech_is_hateful_and_the_votes_are_the_coders(tmp_path: Path) -> None:
    path = write(
        tmp_path / "d.csv",
        ",count,hate_speech,offensive_language,neither,class,tweet\n"
        + "0,4,3,1,0,0,RT @a: text one\n1,4,1,3,0,1,two\n2,3,0,0,3,2,@b\n",
    )

    (hateful,) = davidson(path, HATE, kind="0")
    (offensive,) = davidson(path, HATE, kind="1")

    assert (hateful.texts, hateful.label, hateful.votes) == (("text one",), "hateful", (0.25, 0.75))
    assert (offensive.label, offensive.votes) == ("not_hateful", (0.75, 0.25))
    assert davidson(path, HATE, kind="2") == []


def test_what_only_twitter_wrote_is_taken_out() -> None:
    assert tweet("!!! RT @some_one: Bob &amp;amp; I  won http://t.co/x #yes") == "Bob & I won #yes"


def article(passage: str, *questions: tuple[str, list[str]]) -> str:
    qas = [
        {"id": str(number), "question": question, "answers": [{"text": text, "answer_start": 0} for text in texts]}
        for number, (question, texts) in enumerate(questions)
    ]
    data: dict[str, Any] = {"data": [{"title": "Oil", "paragraphs": [{"context": passage, "qas": qas}]}]}
    return json.dumps(data)


def test_answers_stand_where_the_passage_holds_them(tmp_path: Path) -> None:
    path = write(tmp_path / "s.json", article("It began in May 1973.", (" When? ", ["May 1973", "1973"])))

    (asked,) = squad(path)

    assert (asked.question, asked.group) == ("When?", "Oil")
    assert asked.answers == (AnswerSpan(12, 20, "May 1973"), AnswerSpan(16, 20, "1973"))
    assert all(asked.passage[answer.start : answer.end] == answer.text for answer in asked.answers)


def test_of_several_places_the_one_is_taken_that_the_others_mean(tmp_path: Path) -> None:
    passage = (
        "In 1973 prices rose. " + "Nothing else happened there for long. " * 8 + "The embargo ended in March 1973."
    )
    path = write(
        tmp_path / "s.json", article(passage, ("When?", ["March 1973", "1973"]), ("When ended the embargo?", ["1973"]))
    )

    sure, by_words = squad(path)

    assert sure.answers[1].start == passage.rindex("1973")
    assert by_words.answers[0].start == passage.rindex("1973")


def test_an_answer_that_the_passage_lacks_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="question 0 doesn't hold its answer 'June'"):
        squad(write(tmp_path / "s.json", article("It began in May.", ("When?", ["June"]))))
