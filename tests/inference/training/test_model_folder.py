"""Cards of trained models: what licences mean is said, scores are shown, and nothing is promised that was not found."""

from __future__ import annotations

from typing import Any

from inference.training.model_folder import card_of, consequences


def facts(**more: Any) -> dict[str, Any]:
    return {
        "name": "nli-r2-x-s1-abc",
        "task": "nli",
        "labels": ["entailment", "neutral", "contradiction"],
        "rounds": [1, 2],
        "identity": "abc",
        "seed": 1,
        "licence": "mit; cc-by-nc-4.0",
        "start": {"reference": "hub:a/b@c", "kind": "pretrained"},
        "consequences": [],
        "data": [
            {
                "name": "round 1",
                "train": 1000,
                "dev": 5,
                "test": 6,
                "weight": 2.0,
                "licence": "cc-by-nc-4.0",
                "left_out": {"no label that counts": 3},
                "facts": {"manifest_sha256": "d" * 64},
            }
        ],
        "settings": {"epochs": 3},
        "code": {"git_commit": "e" * 40},
        "versions": {"torch": "2"},
        "training": {
            "steps": 9, "planned_steps": 10, "best_step": 5, "ended": "no better", "processes": 1, "threads": 2
        },
        "scores": {"round 1, test": {"rows": 6, "accuracy": 0.5, "macro_f1": 0.25}},
    } | more  # fmt: skip


def test_licences_have_consequences_in_words() -> None:
    said = consequences({"a": "cc-by-nc-4.0", "b": "CC BY-SA 4.0", "c": "not stated", "d": "cc-by-4.0", "e": "mit"})

    assert len(said) == 5
    assert "not for commercial use" in said[0]
    assert any(line.startswith("b") and "same licence" in line for line in said)
    assert any(line.startswith("c states no licence") for line in said)
    assert any(line.startswith("d") and "name its authors" in line for line in said)
    assert not any(line.startswith("e") for line in said)


def test_a_card_names_data_hashes_scores_and_how_it_ended() -> None:
    card = card_of(facts(consequences=["It is so."]))

    for shown in (
        'license_name: "mit; cc-by-nc-4.0"',
        "| round 1 | 1,000 | 5 | 6 | 2 | cc-by-nc-4.0 |",
        "- round 1: 3 × no label that counts",
        "d" * 64,
        "- It is so.",
        "| round 1, test | 6 | 50.0% | 25.0% |",
        "9 of 10 steps (ended: no better)",
        "e" * 40,
        "rounds 1, 2 of adversarial collection",
    ):
        assert shown in card


def test_a_reader_of_passages_has_its_own_scores_and_a_model_without_rows_has_none() -> None:
    reader = card_of(facts(labels=[], rounds=[], scores={"a": {"rows": 2, "exact_match": 0.5, "f1": 0.75}}))

    assert "| rows | count | exact match | F1 |" in reader
    assert "question-answering" in reader
    assert "no round of adversarial collection" in reader
    assert "There were no rows to measure on." in card_of(facts(scores={}))
