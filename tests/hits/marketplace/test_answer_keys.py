"""Reading AnswerKey XML and scoring with it."""

from __future__ import annotations

import pytest

from hits.marketplace.answer_keys import read_answer_key
from hits.marketplace.errors import MarketplaceError
from hits.marketplace.form_reader import read_form
from tests.hits.marketplace.forms_for_tests import (
    KEY,
    PERCENTAGE,
    PRIMES,
    SKY,
    TEST,
    answer_key,
    free_text,
    question,
    question_form,
    right,
    selection,
)

FORM = read_form("Test", TEST)


def score(xml: str, sky: set[str], primes: set[str]) -> int:
    return read_answer_key(xml, FORM).score({"sky": frozenset(sky), "primes": frozenset(primes)})


@pytest.mark.parametrize(
    ("sky", "primes", "value"),
    [
        ({"blue"}, {"2", "3"}, 30),
        ({"blue"}, {"3", "2"}, 30),
        ({"blue"}, {"2"}, 15),
        ({"red"}, {"4"}, -7),
        ({"red"}, {"2", "3", "4"}, -1),
        (set(), set(), -1),
    ],
)
def test_an_option_counts_only_for_exactly_its_selections(sky: set[str], primes: set[str], value: int) -> None:
    assert score(answer_key(SKY, PRIMES), sky, primes) == value


@pytest.mark.parametrize(("primes", "value"), [({"2", "3"}, 100), ({"2"}, 50), ({"4"}, 10), ({"3"}, 30)])
def test_percentages_are_rounded_to_the_nearest(primes: set[str], value: int) -> None:
    assert score(answer_key(SKY, PRIMES, mapping=PERCENTAGE), {"blue"}, primes) == value


def test_halves_are_rounded_up_in_size() -> None:
    half = "<PercentageMapping><MaximumSummedScore>16</MaximumSummedScore></PercentageMapping>"
    key = answer_key(right("sky", (("blue",), 1), (("red",), -1)), mapping=half)
    assert score(key, {"blue"}, set()) == 6
    scale = answer_key(
        right("sky", (("blue",), 5), (("red",), -5)),
        mapping="<ScaleMapping><SummedScoreMultiplier>0.5</SummedScoreMultiplier></ScaleMapping>",
    )
    assert (score(scale, {"blue"}, set()), score(scale, {"red"}, set())) == (3, -3)


def test_the_first_range_that_fits_counts() -> None:
    ranges = (
        "<RangeMapping><SummedScoreRange><InclusiveLowerBound>5</InclusiveLowerBound><InclusiveUpperBound>29"
        "</InclusiveUpperBound><QualificationValue>1</QualificationValue></SummedScoreRange><SummedScoreRange>"
        "<InclusiveLowerBound>29</InclusiveLowerBound><InclusiveUpperBound>30</InclusiveUpperBound><QualificationValue>"
        "2</QualificationValue></SummedScoreRange><OutOfRangeQualificationValue>-9</OutOfRangeQualificationValue>"
        "</RangeMapping>"
    )
    key = answer_key(SKY, PRIMES, mapping=ranges)
    assert score(key, {"blue"}, {"2", "3"}) == 2
    assert score(key, {"blue"}, {"2"}) == 1
    assert score(key, {"blue"}, {"3"}) == 1
    assert score(key, {"red"}, {"2", "3"}) == 1
    assert score(key, {"red"}, {"4"}) == -9


def test_a_value_stays_within_32_bits() -> None:
    scale = "<ScaleMapping><SummedScoreMultiplier>1000000</SummedScoreMultiplier></ScaleMapping>"
    key = answer_key(right("sky", (("blue",), 1_000_000), (("red",), -1_000_000)), mapping=scale)
    assert score(key, {"blue"}, set()) == 2**31 - 1
    assert score(key, {"red"}, set()) == 1 - 2**31


@pytest.mark.parametrize(
    "xml",
    [
        "<AnswerKey/>",
        answer_key(),
        answer_key(SKY, SKY),
        answer_key(right("moon", (("blue",), 1))),
        answer_key(right("sky", (("green",), 1))),
        answer_key(right("sky")),
        answer_key(right("sky", ((), 1))),
        KEY.replace("<AnswerScore>10<", "<AnswerScore>ten<"),
        KEY.replace(">30<", ">0<"),
        answer_key(SKY, mapping="<GuessMapping/>"),
        answer_key(SKY, mapping="<ScaleMapping><SummedScoreMultiplier>NaN</SummedScoreMultiplier></ScaleMapping>"),
        answer_key(SKY, mapping="<ScaleMapping><SummedScoreMultiplier>1e9</SummedScoreMultiplier></ScaleMapping>"),
        answer_key(SKY, mapping="<RangeMapping/>"),
    ],
)
def test_keys_that_are_refused(xml: str) -> None:
    with pytest.raises(MarketplaceError) as caught:
        read_answer_key(xml, FORM)

    assert caught.value.type == "ParameterValidationError"
    assert "AnswerKey" in caught.value.message


@pytest.mark.parametrize("extra", [free_text(), selection("a", other="<OtherSelection/>")])
def test_a_test_with_free_words_cannot_have_a_key(extra: str) -> None:
    form = read_form("Test", question_form(question("sky", selection("blue", "red")), question("why", extra)))

    with pytest.raises(MarketplaceError, match="free words in 'why'"):
        read_answer_key(answer_key(SKY), form)
