"""How SQuAD v1.1 compares two answers: the one measure of the server, of training and of reports."""

from __future__ import annotations

import string
from collections import Counter

#: Below this overlap of words a model's answer counts as wrong; exactly this much is not wrong.
RIGHT_FROM_F1 = 0.4

_ARTICLES = frozenset({"a", "an", "the"})
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)


def answer_words(answer: str) -> list[str]:
    """Return the words that count: lower case, without ASCII punctuation, without a, an and the."""
    return [word for word in answer.lower().translate(_WITHOUT_PUNCTUATION).split() if word not in _ARTICLES]


def exact_match(answer: str, reference: str) -> bool:
    """Tell whether the words that count are the same, in the same order."""
    return answer_words(answer) == answer_words(reference)


def token_f1(answer: str, reference: str) -> float:
    """Return the overlap of two answers' words, from 0 to 1: 2 * shared words / all words of both.

    The quotient is rounded once, so that 2 shared words of 10 are the same number as ``RIGHT_FROM_F1``. Two answers
    without any word that counts are equal.
    """
    mine, theirs = answer_words(answer), answer_words(reference)
    if not mine and not theirs:
        return 1.0
    shared = (Counter(mine) & Counter(theirs)).total()
    return 2 * shared / (len(mine) + len(theirs))
