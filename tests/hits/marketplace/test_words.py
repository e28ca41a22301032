"""Sentences that are English where they are printed and can still be said in another language."""

from __future__ import annotations

from hits.marketplace.words import counted, in_english, words


def test_words_are_the_english_sentence_and_keep_its_pattern() -> None:
    said = words("The user name %(name)s is taken.", name="ada")

    assert said == "The user name ada is taken."
    assert (said.text, dict(said.values)) == ("The user name %(name)s is taken.", {"name": "ada"})
    assert in_english("de", said) == "The user name ada is taken."


def test_without_values_a_percent_sign_stands_for_itself() -> None:
    assert words("100 % sure, not %(name)s") == "100 % sure, not %(name)s"


def test_counted_words_choose_the_form_by_the_number() -> None:
    one, many = (counted("One answer", "%(count)d answers", count) for count in (1, 3))

    assert (one, many) == ("One answer", "3 answers")
    assert (many.text, many.plural) == ("One answer", "%(count)d answers")
