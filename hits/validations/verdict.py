"""What votes say, by a round's policy. The verdict tables are in docs/verdicts.md and in this module's test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from hits.errors import InvalidInput
from hits.models import Round
from hits.states import Moderation, Verdict

#: More readers of one statement than anybody has asked for.
MOST_VOTES = 25


@dataclass(frozen=True)
class Policy:
    """How the votes of a round decide.

    ``agreeing_votes`` for one label, more than for any other, settle an example. Once readers have differed,
    ``split_votes`` are needed instead (None: as many), so that 2, 3 and 5 at most reads: two who agree are enough, else
    three of five. From then on only readers of ``senior_value`` in the validators' qualification are asked (None: all).
    """

    agreeing_votes: int = 2
    max_votes: int = 3
    split_votes: int | None = None
    senior_value: int | None = None

    def __post_init__(self) -> None:
        split = self.agreeing_votes if self.split_votes is None else self.split_votes
        if not 1 <= self.agreeing_votes <= split <= self.max_votes <= MOST_VOTES:
            raise InvalidInput(
                f"{self.agreeing_votes} agreeing votes, {split} once readers have differed, {self.max_votes} at most:"
                f" each must be as large as the one before it, from 1 to {MOST_VOTES}."
            )
        if self.senior_value is not None and self.senior_value < 1:
            raise InvalidInput(f"A senior validator's value must be 1 or more, not {self.senior_value}.")

    def votes_needed(self, labels: Collection[str]) -> int:
        """Return how many votes for one label settle an example on which these were given."""
        if self.split_votes is None or len(set(labels)) < 2:
            return self.agreeing_votes
        return self.split_votes

    def __str__(self) -> str:
        words = f"{self.agreeing_votes} must agree, {self.max_votes} are asked at most"
        if self.split_votes not in (None, self.agreeing_votes):
            words += f"; once readers have differed, {self.split_votes} must agree"
        if self.senior_value is not None:
            words += f"; ties are broken by validators with value {self.senior_value} or more"
        return words


@dataclass(frozen=True)
class Override:
    """What the requester decided against the votes: a label, or None for an example that is out."""

    label: str | None


@dataclass(frozen=True)
class Outcome:
    """What a set of votes says. ``votes_wanted`` more could decide it; 0 when it is decided or waits for a person.

    ``writer_confirmed``: the readers agree with the writer and the model was wrong; only this earns the bonus.
    ``for_seniors``: the votes that are wanted may come from senior validators only.
    """

    verdict: Verdict
    final_label: str | None
    votes_wanted: int
    writer_confirmed: bool
    for_seniors: bool = False


def policy_of(round_: Round) -> Policy:
    """Return the policy that is stored with a round."""
    return Policy(round_.agreeing_votes, round_.max_votes, round_.split_votes, round_.senior_value)


def outcome(
    goal_label: str,
    model_label: str,
    labels: Sequence[str],
    flags: int,
    *,
    policy: Policy,
    moderation: Moderation | None = None,
    override: Override | None = None,
    rejecting_labels: Collection[str] = (),
) -> Outcome:
    """Return what the votes say, whatever their order. ``labels`` are the label votes.

    - ``flags`` counts those that nobody has decided about. One stops everything until the requester has looked; upheld,
      the example is invalid; dismissed, the flag is no vote at all.
    - The requester's override stands above the votes.
    - Enough votes for one label, more than for any other, settle it: the readers' label is the final one, also
      against the writer's. The model was wrong if its label differs from theirs. Agreement on one of
      ``rejecting_labels`` makes the example invalid.
    - Otherwise another vote is asked for, up to the policy's most.
    - At the most votes without agreement: invalid if the majority is against the writer's label, else unresolved.
    """
    if moderation is Moderation.UPHELD:
        return Outcome(Verdict.INVALID, None, 0, False)
    if flags:
        return Outcome(Verdict.FLAGGED, None, 0, False)
    if override is not None:
        if override.label is None:
            return Outcome(Verdict.INVALID, None, 0, False)
        return _settled(override.label, goal_label, model_label, rejecting_labels)
    ranked = Counter(labels).most_common()
    top = ranked[0][1] if ranked else 0
    leads_alone = len(ranked) == 1 or (len(ranked) > 1 and ranked[1][1] < top)
    needed = policy.votes_needed(labels)
    if top >= needed and leads_alone:
        return _settled(ranked[0][0], goal_label, model_label, rejecting_labels)
    left = policy.max_votes - len(labels)
    if left > 0:
        for_seniors = policy.senior_value is not None and len(ranked) > 1
        return Outcome(Verdict.PENDING, None, min(left, max(needed - top, 1)), False, for_seniors)
    against = sum(label != goal_label for label in labels)
    verdict = Verdict.INVALID if 2 * against > len(labels) else Verdict.UNRESOLVED
    return Outcome(verdict, None, 0, False)


def _settled(final: str, goal_label: str, model_label: str, rejecting_labels: Collection[str]) -> Outcome:
    if final in rejecting_labels:
        return Outcome(Verdict.INVALID, final, 0, False)
    model_wrong = final != model_label
    verdict = Verdict.VALID_AND_MODEL_WRONG if model_wrong else Verdict.VALID_AND_MODEL_RIGHT
    return Outcome(verdict, final, 0, model_wrong and final == goal_label)
