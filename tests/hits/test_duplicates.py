"""Near duplicates and copies, from texts alone."""

from __future__ import annotations

import random

import pytest

from hits.duplicates import NEAR, Known, Seen, bands_of, copied, normalised, similarity

TRAIN = "The train was late again, but the conductor brought us free coffee and we laughed."


def test_case_marks_and_white_space_make_no_other_text() -> None:
    assert normalised("  Ｔhe TRAIN,\nwas — late! ") == "the train was late"
    assert similarity("The train was late.", "the TRAIN was   late") == 1


def test_a_text_without_words_keeps_its_signs() -> None:
    assert normalised("!!  ?") == "!! ?"
    assert similarity("!", "?") < 1


def test_one_changed_word_is_nearly_the_same_and_another_story_is_not() -> None:
    assert similarity(TRAIN, TRAIN.replace("coffee", "tea")) >= NEAR
    assert similarity(TRAIN, "Nobody spoke at the museum, which was closed on Mondays.") < 0.2


@pytest.mark.parametrize("text", ["", "!", "no", "🙂", "Ein Zug fuhr ab."])
def test_every_text_has_a_signature_that_stays_the_same(text: str) -> None:
    assert bands_of(text) == bands_of(text)
    assert all(-(2**63) <= band < 2**63 for band in bands_of(text))


def test_stored_signatures_fit_those_of_a_later_version() -> None:
    assert bands_of("The soup was cold.")[0] == 1072945280513793540


def test_another_scope_has_other_bands() -> None:
    assert not set(bands_of(TRAIN, "1")) & set(bands_of(TRAIN, "2"))


def test_bands_meet_as_often_as_theory_says() -> None:
    chance = random.Random(5)
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(2, 9))) for _ in range(2000)]
    near = far = near_met = far_met = 0
    for _ in range(200):
        text = chance.choices(words, k=20)
        other = list(text)
        other[chance.randrange(20)] = chance.choice(words)
        near, near_met = near + 1, near_met + bool(set(bands_of(" ".join(text))) & set(bands_of(" ".join(other))))
        far += 1
        far_met += bool(set(bands_of(" ".join(text))) & set(bands_of(" ".join(chance.choices(words, k=20)))))

    assert near_met >= 0.97 * near
    assert far_met <= 0.03 * far


def test_a_copy_is_measured_by_stretches_of_three_words_or_more() -> None:
    premise = "A man is playing a guitar on a stage in the dark while people listen."

    assert copied("A man is playing a guitar.", premise).is_copy
    assert copied("a man IS playing a guitar", premise) == copied("A man is playing a guitar.", premise)
    found = copied("People say that a man is playing a guitar badly.", premise)
    assert (found.share, found.longest_run) == (0.6, 6)
    assert copied("Someone makes music in a hall.", premise).longest_run == 0
    assert not copied("on a stage", premise).is_copy
    assert copied("", premise).share == 0


def test_texts_met_before_are_found_again() -> None:
    seen = Seen()
    seen.add(Known.of(TRAIN), 7)

    assert seen.same(Known.of(TRAIN.upper())) == 7
    assert seen.same(Known.of("Another text.")) is None
    found = seen.near(Known.of(TRAIN.replace("coffee", "tea")))
    assert found is not None
    assert found[0] == 7
    assert seen.near(Known.of("Nobody spoke at the museum.")) is None
