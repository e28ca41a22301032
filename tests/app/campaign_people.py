"""Forty simulated people with habits, at browsers of their own, and the little language in which they write and read.

Nobody here knows what anybody else meant: a reader says what the words on the page say.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qs, urlsplit

from app.cli.demo import goal_of
from app.cli.visitor import Page, Visitor
from hits.tasks import task
from tests.market import PASSWORD

LABELS: Final = task("sentiment").label_codes
ADJECTIVES: Final[Mapping[str, Sequence[str]]] = {
    "positive": ("good", "lovely", "great", "kind"),
    "negative": ("bad", "awful", "dirty", "rude"),
    "neutral": ("there", "open", "new", "closed"),
}
THINGS: Final = ("food", "room", "staff", "garden", "soup", "lift", "show", "shop", "hall", "boat", "song", "bread")
OPPOSITE: Final = {"positive": "negative", "negative": "positive"}
#: What a model's tokenizer has to know.
WORDS: Final = (
    *("the", "was", "very", "never", "nothing", "about", "they", "ask", "if", "a", "friend", "says", "it", "not"),
    *THINGS,
    *(word for words in ADJECTIVES.values() for word in words),
)
#: How many of whom: 24 writers and 16 readers.
WRITERS: Final = ("good",) * 14 + ("lazy",) * 6 + ("spamming",) * 4
READERS: Final = ("good",) * 11 + ("lazy",) * 3 + ("spamming",) * 2
#: Of a lazy reader's judgements, the share that is made without reading.
UNREAD: Final = 0.25


def meaning(text: str) -> str | None:
    """Return the label of a sentence of this language, None when it makes no sense."""
    words = text.split()
    label = next((label for label, known in ADJECTIVES.items() for word in words if word in known), None)
    if label is None or "was" not in words:
        return None
    if "if" in words:
        return "neutral"
    if {"never", "nothing", "not"} & set(words):
        return OPPOSITE.get(label, label)
    return label


def plain(label: str, chance: random.Random) -> str:
    """A sentence that says what it means."""
    very = "very " if label != "neutral" and chance.random() < 0.4 else ""
    return f"the {chance.choice(THINGS)} was {very}{chance.choice(ADJECTIVES[label])}"


def tricky(label: str, chance: random.Random) -> str:
    """A sentence whose strongest word says something else than the sentence."""
    thing, other = chance.choice(THINGS), chance.choice(THINGS)
    if label == "neutral":
        word = chance.choice(ADJECTIVES[chance.choice(("positive", "negative"))])
        return f"they ask if the {thing} was {word} and the {other} not"
    word = chance.choice(ADJECTIVES[OPPOSITE[label]])
    return chance.choice(
        (
            f"the {thing} was never {word} nor the {other}",
            f"nothing about the {thing} and the {other} was {word}",
            f"a friend says the {thing} was {word} , like the {other} , it was not",
        )
    )


def base_rows(count: int, seed: int) -> list[tuple[str, str]]:
    """Plain sentences with their labels, the labels in turn: what a first model learns from."""
    chance = random.Random(seed)
    return [(f"{plain(LABELS[n % 3], chance)} , day {n}", LABELS[n % 3]) for n in range(count)]


@dataclass
class Person:
    """A worker with a browser, signed in to the worker site, and a habit."""

    name: str
    habit: str
    site: str
    chance: random.Random
    visitor: Visitor = field(default_factory=Visitor)
    #: HITs that held nothing for this person.
    passed_over: set[str] = field(default_factory=set)
    worker_id: str = ""
    handed_in: int = 0

    def join(self, code: str) -> None:
        """Make an account by invitation."""
        page = self.visitor.open(f"{self.site}/join?code={code}")
        self.visitor.send(page, "/join", {"user_name": self.name, "password": PASSWORD})

    def offered(self, words: str = "") -> Iterator[str]:
        """Yield the HITs that the site's search finds for this person; without words, all that they may do."""
        listing = self.visitor.open(f"{self.site}/hits?qualified=1&q={words}")
        paths = (urlsplit(str(link)).path for link in listing.content.xpath("//main//a/@href"))
        for hit_id in dict.fromkeys(path.removeprefix("/hits/") for path in paths if path.startswith("/hits/")):
            if hit_id not in self.passed_over:
                yield hit_id

    def write(self, hit_id: str) -> None:
        """Do a writing HIT as one's habit is: preview, accept, agree, ask the model, hand in."""
        visitor = self.visitor
        preview = visitor.open(f"{self.site}/hits/{hit_id}")
        visitor.frame(preview)
        work = visitor.send(preview, f"/hits/{hit_id}/accept")
        page = self._opened(work)
        goal = goal_of(page)
        tried: set[str] = set()
        while page.forms("/work/attempts", with_field="statement"):
            text = next(text for text in iter(lambda: self._text(goal), None) if text not in tried)
            tried.add(text)
            page = visitor.send(page, "/work/attempts", {"statement": text}, with_field="statement")
        self._hand_in(visitor.send(page, "/work/submit", {"why": ""}))

    def _opened(self, work: Page) -> Page:
        """Open the frame of an accepted HIT, and agree to what has to be agreed to."""
        page = self.visitor.frame(work)
        (self.worker_id,) = parse_qs(urlsplit(page.url).query)["workerId"]
        return self.visitor.go_on(page)

    def _hand_in(self, saved: Page) -> None:
        self.visitor.send(saved, "/mturk/externalSubmit")
        self.handed_in += 1

    def _text(self, goal: str) -> str:
        if self.habit == "good":
            return tricky(goal, self.chance)
        if self.habit == "lazy":
            return plain(goal, self.chance)
        # Either a statement of another label, on which everybody but the form agrees, or words without sense.
        if self.chance.random() < 0.5:
            return plain(self.chance.choice([label for label in LABELS if label != goal]), self.chance)
        return " ".join(self.chance.choices(THINGS, k=5))

    def judge(self) -> bool:
        """Do one validation HIT; False when there is none for this person."""
        hit_id = next(self.offered("short+statements"), None)
        if hit_id is None:
            return False
        visitor = self.visitor
        work = visitor.send(visitor.open(f"{self.site}/hits/{hit_id}"), f"/hits/{hit_id}/accept")
        page = self._opened(work)
        while page.forms("/validate/votes"):
            label = self._opinion(page.text("blockquote"))
            said = ("label", label) if label else ("flag_reason", "These are words without sense.")
            page = visitor.send(page, "/validate/votes", dict([said]), with_field=said[0])
        if not page.forms("/validate/submit"):
            self.passed_over.add(hit_id)
            visitor.send(visitor.open(f"{work.url}/return"), "/return")
            return True
        self._hand_in(visitor.send(page, "/validate/submit"))
        return True

    def _opinion(self, text: str) -> str | None:
        """The label this reader gives, None for a flag."""
        if self.habit == "spamming":
            return "positive"
        if self.habit == "lazy":
            return self.chance.choice(LABELS) if self.chance.random() < UNREAD else meaning(text) or "neutral"
        return meaning(text)
