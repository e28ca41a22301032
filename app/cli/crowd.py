"""What the simulated crowd of `dynahit demo` writes and thinks of it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Opinion:
    """How the simulated validators see a statement: the label of most, of single others, or a flag of all."""

    label: str
    others: Mapping[int, str] = field(default_factory=dict)
    flag: str = ""

    def of(self, validator: int) -> str:
        """Return the label that this validator gives; meaningless for a flagged statement."""
        return self.others.get(validator, self.label)


#: Statements that the embedded model takes for what they are, by label.
PLAIN: Mapping[str, Sequence[str]] = {
    "negative": (
        "The soup was cold and the waiter was rude to us.",
        "I am very disappointed with this hotel, the room was dirty.",
        "The worst haircut I have ever had, I will never go back.",
        "This phone is terrible, it breaks down every day.",
        "The film was boring and far too long.",
        "They lost my parcel and nobody apologised.",
        "The pizza was burnt and tasted awful.",
        "A horrible journey: dirty seats and no heating.",
        "The staff ignored us and the food made me sick.",
        "I hate this app, it loses everything I write.",
        "The concert was a disaster, the sound was dreadful.",
        "Bad service, overpriced food, never again.",
        "The course was useless and the teacher was unprepared.",
        "Our room smelled bad and the bed was broken.",
    ),
    "positive": (
        "The soup was delicious and the waiter was very kind.",
        "I love this hotel, the room was clean and beautiful.",
        "The best haircut I have ever had, I will come back soon.",
        "This phone is wonderful, it works perfectly every day.",
        "The film was exciting and great fun from start to end.",
        "My parcel came early and everybody was friendly.",
        "The pizza was excellent and fresh.",
        "A fantastic journey: comfortable seats and a lovely view.",
        "The staff were helpful and the food was amazing.",
        "I love this app, it makes my day easier.",
        "The concert was brilliant, the sound was superb.",
        "Great service, fair prices, highly recommended.",
        "The course was excellent and the teacher was inspiring.",
        "Our room was bright, quiet and very comfortable.",
        "The garden looks gorgeous, we enjoyed every minute.",
        "What a delightful little shop, I am so happy I found it.",
        "The museum was fascinating and the guide was superb.",
    ),
    "neutral": (
        "The restaurant is on the second floor and has thirty tables.",
        "We went to the hotel on Monday and left on Wednesday.",
        "The shop is open from nine to five.",
        "I bought the phone in March.",
        "The film is two hours long and has subtitles.",
        "The parcel is at the post office on Main Street.",
        "I ordered a pizza and a glass of water.",
        "The train goes from the harbour to the airport.",
        "There are four people working at the counter.",
        "The app has a menu with six items.",
        "The concert takes place in the town hall on Friday.",
        "The menu lists soups, salads and main courses.",
        "The course has three parts and ends in June.",
        "Our room had two beds and a table.",
        "The garden is behind the house.",
        "They sell shoes and bags.",
        "The museum has two entrances.",
    ),
}

#: Statements that fool the embedded model, by the label that their writer gives them. Readers agree with most of them.
TRICKY: Mapping[str, Sequence[str]] = {
    "negative": (
        "The best thing about the hotel was the moment we left.",
        "Great, another update that hides the button I use every day.",
        "Everybody was kind to us and the evening was lovely.",
        "We paid for a sea view and got a lovely view of the bins.",
        "My favourite part of the concert was the exit.",
        "The waiter smiled a lot, mostly while forgetting our order.",
    ),
    "positive": (
        "I was sure I would hate it, and I have never been so happy to be wrong.",
        "The queue was long for a reason.",
        "The ghost train scared me to death from start to end.",
        "The old phone was a nightmare; this one never lets me down.",
        "My only regret is that I didn't find this place years ago.",
    ),
    "neutral": (
        "The shop sells lottery tickets and wishes each customer good luck.",
        "Happy spoon the of laughing seven table yes yes.",
        "The best man holds the rings until the ceremony begins.",
        "The dictionary explains the word terrible on page nine hundred.",
    ),
}

#: How many of a label's HITs end with a statement that fools the model; in the others the writer never finds one.
FOOLING_HITS: Mapping[str, int] = {"negative": 4, "positive": 3, "neutral": 3}

#: Statements about which the validators do not simply agree with the writer.
OPINIONS: Mapping[str, Opinion] = {
    "Everybody was kind to us and the evening was lovely.": Opinion("positive"),
    "The queue was long for a reason.": Opinion("positive", others={2: "neutral"}),
    "The ghost train scared me to death from start to end.": Opinion("neutral", others={1: "positive", 2: "negative"}),
    "Happy spoon the of laughing seven table yes yes.": Opinion("neutral", flag="It makes no sense."),
}


class Supply:
    """Hands out the crowd's statements by label, in order, so that no two HITs of a demo get the same ones."""

    def __init__(self) -> None:
        self._plain = {label: list(texts) for label, texts in PLAIN.items()}
        self._tricky = {label: list(texts) for label, texts in TRICKY.items()}
        self._fooling = dict(FOOLING_HITS)

    def for_hit(self, goal: str) -> Iterator[str]:
        """Yield what a writer tries in one HIT: plain statements, and tricky ones from the third on in some HITs."""
        plain, tricky = self._plain[goal], self._tricky[goal]
        fools = self._fooling[goal] > 0
        self._fooling[goal] -= 1
        used = []
        for number in itertools.count(1):
            pool = tricky if fools and number > 2 and tricky else plain
            if not pool:
                break
            used.append(pool.pop(0))
            yield used[-1]
        # More HITs of this label than the crowd has ideas for: it says again what it said elsewhere.
        yield from (text for text in PLAIN[goal] if text not in used)


def opinion_of(text: str) -> Opinion | None:
    """Return how the crowd sees a statement; None for one that it did not write, which it must not judge."""
    if text in OPINIONS:
        return OPINIONS[text]
    for pool in (PLAIN, TRICKY):
        for label, texts in pool.items():
            if text in texts:
                return Opinion(label)
    return None
