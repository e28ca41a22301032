"""How SQuAD compares two answers: the one measure of the server, of training and of reports.

The words are those of the official scripts (evaluate-v1.1.py, evaluate-v2.0.py), also beside punctuation that is not
ASCII: it stays, and an article next to it goes. What differs is said at ``token_f1``.
"""

from __future__ import annotations

import re
import string
from collections import Counter

#: Below this overlap of words a model's answer counts as wrong; exactly this much is not wrong.
RIGHT_FROM_F1 = 0.4

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)


def answer_words(answer: str) -> list[str]:
    """Return the words that count: lower case, without ASCII punctuation, without a, an and the."""
    return _ARTICLES.sub(" ", answer.lower().translate(_WITHOUT_PUNCTUATION)).split()


def exact_match(answer: str, reference: str) -> bool:
    """Tell whether the words that count are the same, in the same order."""
    return answer_words(answer) == answer_words(reference)


def token_f1(answer: str, reference: str) -> float:
    """Return the overlap of two answers' words, from 0 to 1: 2 * shared words / all words of both.

    The official scripts reckon it from precision and recall, which can differ in the last binary digit; here the
    quotient is rounded once, so that 2 shared words of 10 are the same number as ``RIGHT_FROM_F1``. Two answers without
    any word that counts are equal, as for evaluate-v2.0.py; evaluate-v1.1.py gives them 0.
    """
    mine, theirs = answer_words(answer), answer_words(reference)
    if not mine and not theirs:
        return 1.0
    shared = (Counter(mine) & Counter(theirs)).total()
    return 2 * shared / (len(mine) + len(theirs))
