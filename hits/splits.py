"""Train, dev and test without leaks: no writer, no text, no context and no family of examples in two of them.

Examples that share one of these belong together and go to one split whole. Where everything hangs together (few
contexts, many writers) such a group is cut, and the examples that would tie the splits together are withheld.
"""

from __future__ import annotations

import hashlib
import unicodedata
from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from hits.errors import InvalidInput, Refused
from hits.states import Split

#: By the codes that are counted with; an example of none of the first three is withheld.
SPLITS: Final = (Split.TRAIN, Split.DEV, Split.TEST, Split.WITHHELD)
TRAIN, DEV, TEST, WITHHELD = range(4)
DEFAULT_SHARES: Final = (0.8, 0.1, 0.1)
#: A split below this part of its share is filled by cutting a group that hangs together.
FULL_ENOUGH: Final = 0.5
_NOBODY: Final = 0

Codes = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Candidate:
    """An example as the splits see it: who wrote what about what, and whether its label is verified.

    ``writer``, ``context`` and ``family`` are None where there is none, or where it is not known. ``label`` is None
    for an example without a label that counts; it is withheld. ``fixed`` is the split that it has from before.
    """

    key: str
    writer: str | None
    text: str
    context: str | None
    label: str | None
    verified: bool
    model_label: str | None = None
    family: str | None = None
    fixed: Split | None = None


def assign(
    examples: Iterable[Candidate],
    *,
    seed: int,
    shares: Sequence[float] = DEFAULT_SHARES,
    exclusive_writers: Collection[str] = frozenset(),
    balanced: Collection[str] = (),
) -> dict[str, Split]:
    """Return the split of every example by its key. The order of the examples does not matter.

    As Splitter.assign, which holds a million of them.
    """
    splitter = Splitter(seed)
    keys = []
    for example in examples:
        splitter.add(example)
        keys.append(example.key)
    codes = splitter.assign(shares=shares, exclusive_writers=exclusive_writers, balanced=balanced)
    return {key: SPLITS[code] for key, code in zip(keys, codes.tolist(), strict=True)}


class Splitter:
    """Takes the examples one by one, keeps some fifty bytes of each, and assigns them."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._orders, self._writers, self._texts = array("Q"), array("Q"), array("Q")
        self._contexts, self._families = array("Q"), array("Q")
        self._cells, self._labels = array("q"), dict[tuple[str, str | None], int]()
        self._usable, self._verified, self._fixed = bytearray(), bytearray(), bytearray()

    def __len__(self) -> int:
        return len(self._orders)

    def add(self, example: Candidate) -> None:
        """Take an example in."""
        self._orders.append(self._number("example", example.key))
        self._writers.append(self._number("writer", example.writer))
        self._texts.append(self._number("words", normalised(example.text)))
        self._contexts.append(self._number("words", normalised(example.context or "")))
        self._families.append(self._number("family", example.family))
        cell = (example.label or "", example.model_label)
        self._cells.append(self._labels.setdefault(cell, len(self._labels)))
        fixed = example.fixed
        self._usable.append((example.label is not None) if fixed is None else fixed is not Split.WITHHELD)
        self._verified.append(example.verified)
        self._fixed.append(WITHHELD + 1 if fixed is None else SPLITS.index(fixed))

    def assign(
        self,
        *,
        shares: Sequence[float] = DEFAULT_SHARES,
        exclusive_writers: Collection[str] = frozenset(),
        balanced: Collection[str] = (),
    ) -> Codes:
        """Return the code of each example's split, in the order in which they were added.

        ``shares`` (train, dev, test) are of the verified examples, since dev and test hold no others. With
        ``exclusive_writers`` the test split has their examples only. With ``balanced``, the labels that can be right, a
        model that answers as the target did is right by chance in dev and test: as many examples for each right label
        and each answer. Raises InvalidInput for unusable shares, Refused where an example is missing to balance them.
        """
        _check_shares(shares)
        count = len(self)
        codes = np.full(count, WITHHELD, dtype=np.uint8)
        if count == 0:
            return codes
        keys = _Keys(
            np.array(self._writers, dtype=np.uint64),
            np.array(self._texts, dtype=np.uint64),
            np.array(self._contexts, dtype=np.uint64),
            np.array(self._families, dtype=np.uint64),
        )
        orders = np.array(self._orders, dtype=np.uint64)
        usable = np.frombuffer(bytes(self._usable), dtype=np.uint8).astype(bool)
        verified = np.frombuffer(bytes(self._verified), dtype=np.uint8).astype(bool) & usable
        fixed = np.frombuffer(bytes(self._fixed), dtype=np.uint8)
        is_new = fixed > WITHHELD
        codes[usable] = TRAIN
        codes[~is_new] = fixed[~is_new]
        chosen = np.array(sorted(self._number("writer", name) for name in exclusive_writers), dtype=np.uint64)
        exclusive = np.isin(keys.writers, chosen) & usable & is_new
        counted = verified & is_new
        targets = {split: shares[split] * int(counted.sum()) for split in (TEST, DEV)}
        only = exclusive if len(chosen) else None
        filled = _whole_groups(codes, keys, orders, usable, is_new, counted, targets, only)
        for split in (TEST, DEV):
            left = targets[split] - filled[split]
            if left >= max(1.0, (1 - FULL_ENOUGH) * targets[split]):
                pool = is_new & usable & (codes == TRAIN)
                _cut(codes, keys, orders, split, pool, counted, left, only if split == TEST else None)
            # Their hand is known from the test split, so that it may not be learned from.
            codes[exclusive & (codes != TEST)] = WITHHELD
        for groups in (keys.writer_groups(), keys.word_groups(), keys.family_groups()):
            _keep_apart(codes, *groups, is_new)
        codes[is_new & ~verified & ((codes == DEV) | (codes == TEST))] = WITHHELD
        if balanced:
            self._balance(codes, orders, is_new, balanced)
        return codes

    def _balance(self, codes: Codes, orders: Codes, is_new: Codes, labels: Collection[str]) -> None:
        cells = np.array(self._cells)
        answers = sorted({said for _, said in self._labels if said is not None})
        wanted = [(right, said) for right in labels for said in answers]
        for split in (DEV, TEST):
            here = is_new & (codes == split)
            members: dict[tuple[str, str], Codes] = {
                cell: np.flatnonzero(here & (cells == self._labels[cell])) if cell in self._labels else cells[:0]
                for cell in wanted
            }
            missing = [
                f"{right} that the model took for {said}" for (right, said), rows in members.items() if not len(rows)
            ]
            if missing:
                raise Refused(
                    f"{SPLITS[split]} can't be balanced: it has no verified example of {', '.join(missing)}."
                    " Validate examples that did not fool the model as well, or freeze without balancing."
                )
            least = min(len(rows) for rows in members.values())
            kept = [rows[np.argsort(orders[rows], kind="stable")][:least] for rows in members.values()]
            codes[here] = WITHHELD
            codes[np.concatenate(kept)] = split

    def _number(self, kind: str, value: str | None) -> int:
        if not value:
            return _NOBODY
        return max(1, int.from_bytes(hashlib.sha256(f"{self._seed}:{kind}:{value}".encode()).digest()[:8], "big"))


@dataclass(frozen=True)
class _Keys:
    """What may not stand in two splits, as a number of each example; 0 for nothing."""

    writers: Codes
    texts: Codes
    contexts: Codes
    families: Codes

    def writer_groups(self) -> tuple[Codes, Codes]:
        return _grouped(self.writers)

    def word_groups(self) -> tuple[Codes, Codes]:
        # A text that is somebody else's context is the same words.
        return _grouped(self.texts, self.contexts)

    def family_groups(self) -> tuple[Codes, Codes]:
        return _grouped(self.families)


def normalised(text: str) -> str:
    """Return what two texts have in common that differ in case, white space or forms of characters only."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _check_shares(shares: Sequence[float]) -> None:
    if len(shares) != 3 or any(not 0 <= share <= 1 for share in shares) or abs(sum(shares) - 1) > 1e-6:
        shown = ", ".join(f"{share:g}" for share in shares)
        raise InvalidInput(f"Shares of train, dev and test must be three numbers that sum to 1; given were {shown}.")


def _grouped(*kinds: Codes) -> tuple[Codes, Codes]:
    """Return the members of all groups of two and more, one group after the other, and where each one begins."""
    numbers = np.concatenate(kinds)
    members = np.concatenate([np.arange(len(kind), dtype=np.int64) for kind in kinds])
    known = numbers != _NOBODY
    numbers, members = numbers[known], members[known]
    by_number = np.argsort(numbers, kind="stable")
    numbers, members = numbers[by_number], members[by_number]
    if len(numbers) == 0:
        return members, np.zeros(0, dtype=np.int64)
    starts = np.flatnonzero(np.concatenate([[True], numbers[1:] != numbers[:-1]]))
    sizes = np.diff(np.append(starts, len(numbers)))
    several = np.repeat(sizes > 1, sizes)
    sizes = sizes[sizes > 1]
    return members[several], np.cumsum(sizes) - sizes


def _components(keys: _Keys, usable: Codes) -> Codes:
    """Return for each example the number of the group that hangs together with it; of an unusable one, its own."""
    parent = list(range(len(usable)))

    def root(one: int) -> int:
        while parent[one] != one:
            parent[one] = parent[parent[one]]
            one = parent[one]
        return one

    for members, starts in (keys.writer_groups(), keys.word_groups(), keys.family_groups()):
        for group in _each(members, starts):
            together = group[usable[group]].tolist()
            for other in together[1:]:
                first, second = root(together[0]), root(other)
                parent[max(first, second)] = min(first, second)
    return np.array([root(one) for one in range(len(parent))], dtype=np.int64)


def _each(members: Codes, starts: Codes) -> Iterator[Codes]:
    if len(starts):
        yield from np.split(members, starts[1:])


def _whole_groups(
    codes: Codes,
    keys: _Keys,
    orders: Codes,
    usable: Codes,
    is_new: Codes,
    counted: Codes,
    targets: dict[int, float],
    exclusive: Codes | None,
) -> dict[int, int]:
    """Give whole groups to test and dev, in an order that the seed decides, as long as that brings them nearer.

    Returns how many verified examples each of the two has got.
    """
    group_of = _components(keys, usable)
    count = len(codes)
    sizes = np.bincount(group_of[counted], minlength=count)
    rank = np.full(count, np.iinfo(np.uint64).max, dtype=np.uint64)
    np.minimum.at(rank, group_of[usable & is_new], orders[usable & is_new])
    bound = _bound_groups(codes, group_of, usable & ~is_new)
    new_roots = np.unique(group_of[usable & is_new])
    filled = {TEST: 0, DEV: 0}
    split_of = np.full(count, TRAIN, dtype=np.uint8)
    free = []
    for one in new_roots[np.argsort(rank[new_roots], kind="stable")].tolist():
        said = bound.get(one)
        if said is None:
            free.append(one)
        elif len(said) == 1:
            split_of[one] = said[0]
            if said[0] != TRAIN:
                filled[said[0]] += int(sizes[one])
    only_test = set(np.unique(group_of[exclusive]).tolist()) if exclusive is not None else None
    everybody = None if exclusive is None else _all_inside(group_of, usable & is_new, exclusive)
    for one in free:
        size = int(sizes[one])
        for split in (TEST, DEV):
            if split == TEST and everybody is not None and only_test is not None:
                fits = one in only_test and bool(everybody[one])
            elif only_test is not None and one in only_test:
                fits = False
            else:
                fits = 0 < size < 2 * (targets[split] - filled[split])
            if fits:
                split_of[one] = split
                filled[split] += size
                break
    moved = usable & is_new
    codes[moved] = split_of[group_of[moved]]
    _follow_earlier(codes, keys, moved & np.isin(group_of, [one for one, said in bound.items() if len(said) > 1]))
    return filled


def _bound_groups(codes: Codes, group_of: Codes, earlier: Codes) -> dict[int, list[int]]:
    """Return the splits that the earlier examples of each group stand in."""
    pairs = np.unique(np.stack([group_of[earlier], codes[earlier].astype(np.int64)]), axis=1)
    found: dict[int, list[int]] = {}
    for group, code in zip(*pairs.tolist(), strict=True):
        found.setdefault(group, []).append(code)
    return found


def _all_inside(group_of: Codes, moved: Codes, inside: Codes) -> Codes:
    whole = np.bincount(group_of[moved], minlength=len(group_of))
    all_inside: Codes = np.bincount(group_of[moved & inside], minlength=len(group_of)) == whole
    return all_inside


def _follow_earlier(codes: Codes, keys: _Keys, torn: Codes) -> None:
    """Where a group holds earlier examples of several splits, let each new one follow what it shares."""
    if not torn.any():
        return
    earlier = np.full((len(codes), 3), False)
    for members, starts in (keys.writer_groups(), keys.word_groups(), keys.family_groups()):
        for group in _each(members, starts):
            if torn[group].any():
                for code in np.unique(codes[group[~torn[group]]]).tolist():
                    if code < WITHHELD:
                        earlier[group, code] = True
    said = earlier[torn]
    codes[torn] = np.where(said.sum(axis=1) > 1, WITHHELD, np.where(said.any(axis=1), said.argmax(axis=1), TRAIN))


def _cut(
    codes: Codes,
    keys: _Keys,
    orders: Codes,
    split: int,
    pool: Codes,
    counted: Codes,
    wanted: float,
    inside: Codes | None,
) -> None:
    """Fill a split that is far from full out of the training examples, at the least price in withheld ones."""
    within = counted & pool
    total = int(within.sum())
    share = wanted / total if total else 0.0
    if total < 2 or not 0 < share < 1:
        return
    rows = np.flatnonzero(pool)
    writers = _compact(keys.writers[rows], orders[rows])
    contexts = _compact(keys.contexts[rows], orders[rows])
    verified = within[rows]
    parts = [share, min(0.5, 2 * share), min(0.5, 4 * share), share**0.5]
    tried = (
        [_cut_at(writers, contexts, verified, inside[rows], wanted)]
        if inside is not None
        else [_cut_at(writers, contexts, verified, _some_writers(writers, verified, part), wanted) for part in parts]
    )
    best = min(tried, key=lambda one: (-min(one[0], wanted * FULL_ENOUGH), one[1]))
    if best[0]:
        codes[rows] = np.where(best[2], split, np.where(best[3], WITHHELD, codes[rows]))


def _compact(numbers: Codes, orders: Codes) -> Codes:
    """Return small numbers in the order of the given ones, which the seed decides; each 0 gets one of its own.

    Those come last, by ``orders``, which the seed decides as well, so that it matters to nobody who was added first.
    """
    found, compact = np.unique(numbers, return_inverse=True)
    if len(found) and found[0] == _NOBODY:
        alone = np.flatnonzero(numbers == _NOBODY)
        compact = compact.copy()
        compact[alone[np.argsort(orders[alone], kind="stable")]] = len(found) + np.arange(len(alone))
    return compact


def _some_writers(writers: Codes, verified: Codes, part: float) -> Codes:
    """Tell which examples are of the first writers who have that part of the verified ones together."""
    sizes = np.bincount(writers[verified], minlength=int(writers.max()) + 1)
    first: Codes = np.cumsum(sizes) - sizes < part * sizes.sum()
    return first[writers]


def _cut_at(
    writers: Codes, contexts: Codes, verified: Codes, inside: Codes, wanted: float
) -> tuple[int, int, Codes, Codes]:
    """Return how many verified examples the split gets, how many are withheld, and which are which.

    The chosen writers take the contexts that are theirs most of all, until there is enough.
    """
    count = int(contexts.max()) + 1
    won = np.bincount(contexts[inside & verified], minlength=count)
    lost = np.bincount(contexts[~inside], minlength=count)
    order = np.lexsort((np.arange(count), lost / np.maximum(won, 1)))
    order = order[won[order] > 0]
    enough = np.cumsum(won[order]) - won[order] < wanted
    owned = np.zeros(count, dtype=bool)
    owned[order[enough]] = True
    here = inside & owned[contexts]
    withheld = inside != owned[contexts]
    return int((here & verified).sum()), int(withheld.sum()), here, withheld


def _keep_apart(codes: Codes, members: Codes, starts: Codes, is_new: Codes) -> None:
    """Withhold new examples that share something with another split: earlier ones stay, then test, dev, train."""
    if len(starts) == 0:
        return
    rank = np.where(codes == WITHHELD, 9, np.where(is_new, 5 - codes, -1 - codes.astype(np.int64))).astype(np.int64)
    best = np.minimum.reduceat(rank[members], starts)
    sizes = np.diff(np.append(starts, len(members)))
    kept = np.where(best < 0, -1 - best, 5 - best)
    differs = (codes[members] != np.repeat(kept, sizes)) & is_new[members]
    codes[members[differs]] = WITHHELD
