"""The manifest of a frozen round: everything that made its data what they are, and the hashes by which it is checked.

Whoever has the manifest can tell whether an export is of exactly these data; the same manifest gives the same export.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from hits.arms import plans
from hits.errors import Refused
from hits.export.stored import StoredExample, hashed
from hits.models import Context, ContextUpload, GoldItem, HitBatch, ModelVersion, Round
from hits.tasks import task

#: Rises when a part of the manifest changes its name or meaning.
FORMAT_VERSION: Final = 1

#: What of a round decided how its data came about, besides the tables that are hashed.
_ROUND_FIELDS: Final = (
    "seed",
    "agreeing_votes",
    "max_votes",
    "split_votes",
    "senior_value",
    "non_fooling_percent",
    "gold_items",
    "gold_warning_percent",
    "pair_percent",
)
_BATCH_FIELDS: Final = (
    "kind",
    "title",
    "description",
    "keywords",
    "reward",
    "bonus",
    "extras",
    "tries",
    "minutes",
    "assignment_seconds",
    "auto_approval_seconds",
    "lifetime_seconds",
    "requirements",
    "practice",
    "contexts_by",
    "per_context",
    "items",
    "senior_value",
)


@dataclass(frozen=True)
class SplitTerms:
    """How the splits of a round are made; the writers of ``exclusive_writers`` are in the test split alone."""

    seed: int = 0
    shares: tuple[float, float, float] = (0.8, 0.1, 0.1)
    exclusive_writers: tuple[str, ...] = ()
    balanced: bool = False


class Digest:
    """A hash over a round's examples and votes, taken one by one in their one order, and the models met on the way."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self.examples = 0
        self.votes = 0
        self.splits: Counter[str] = Counter()
        self.models: set[tuple[str, str]] = set()
        self.policies: set[str] = set()

    def add(self, stored: StoredExample) -> None:
        """Take the next example in."""
        self._hash.update(_canonical(hashed(stored)) + b"\n")
        self.examples += 1
        self.votes += len(stored.votes)
        self.splits[stored.split.value if stored.split is not None else ""] += 1
        model = stored.model
        if model is None:
            return
        self.models.add((model["id"], model["revision"]))
        if model["policy"]:
            self.policies.add(model["policy"])
        for member in model["members"] or ():
            self.models.add((member["model_id"], member["revision"]))

    @property
    def sha256(self) -> str:
        """The hash over what was taken in so far."""
        return self._hash.hexdigest()


def made_of(
    session: Session, round_: Round, digest: Digest, terms: SplitTerms, *, code: Mapping[str, Any], frozen_at: datetime
) -> dict[str, Any]:
    """Return the manifest of a round whose examples ``digest`` has taken in. Reads only.

    ``code`` tells by which commit and which versions of packages it was made. No person stands in it by any name.
    """
    spec = task(round_.task_code)
    contexts = session.scalars(
        select(Context.digest)
        .where(Context.round_id == round_.id)
        .order_by(Context.digest)
        .execution_options(yield_per=5000)
    )
    uploads = session.execute(
        select(ContextUpload.source, ContextUpload.licence, ContextUpload.file_sha256, ContextUpload.added)
        .where(ContextUpload.round_id == round_.id)
        .order_by(ContextUpload.file_sha256, ContextUpload.id)
    ).all()
    gold = session.execute(select(GoldItem.digest, GoldItem.label).where(GoldItem.round_id == round_.id))
    batches = session.scalars(select(HitBatch).where(HitBatch.round_id == round_.id).order_by(HitBatch.id)).all()
    split = asdict(terms) | {"shares": list(terms.shares), "exclusive_writers": len(terms.exclusive_writers)}
    return {
        "format": FORMAT_VERSION,
        "task": {
            "code": round_.task_code,
            "version": round_.task_version,
            # The specification as it stands now; the version says which one the collection was made with.
            "sha256": hashlib.sha256(_canonical(asdict(spec))).hexdigest(),
        },
        "round": round_.number,
        "frozen_at": frozen_at.isoformat(),
        "configuration": {name: getattr(round_, name) for name in _ROUND_FIELDS} | _arms(session, round_),
        "batches": [{name: _plain(getattr(one, name)) for name in _BATCH_FIELDS} for one in _distinct(batches)],
        "origin": round_.origin,
        "contexts": _set_of(contexts),
        "context_uploads": [
            {"source": row[0], "licence": row[1], "file_sha256": row[2], "contexts": row[3]} for row in uploads
        ],
        "gold": _set_of(sorted(f"{row[0]} {row[1]}" for row in gold)),
        "examples": {"count": digest.examples, "sha256": digest.sha256},
        "votes": digest.votes,
        "models": _models(session, digest.models),
        "ensemble_policies": sorted(digest.policies),
        "splits": split | {"counts": dict(sorted(digest.splits.items()))},
        "code": dict(code),
    }


def _arms(session: Session, round_: Round) -> dict[str, Any]:
    """Return every plan of a round's arms, with its shares; nothing for a round without arms."""
    found = [{"version": one.version, "seed": one.seed, "arms": one.arms} for one in plans(session, round_.id)]
    return {"arms": found} if found else {}


def sha256_of(manifest: Mapping[str, Any]) -> str:
    """Return the hash over a manifest."""
    return hashlib.sha256(_canonical(manifest)).hexdigest()


def require_unchanged(round_: Round, digest: Digest) -> None:
    """Raise Refused when the examples that were taken in are not those that the round's manifest is about."""
    said = (round_.manifest or {}).get("examples", {})
    if (said.get("count"), said.get("sha256")) != (digest.examples, digest.sha256):
        raise Refused(
            f"The data of round {round_.number} of the {round_.task_code} task are not those of its manifest"
            f" ({digest.examples} examples with hash {digest.sha256[:12]}, frozen were {said.get('count')} with"
            f" {str(said.get('sha256'))[:12]}). Somebody has changed the database by hand: restore it from a backup."
        )


def _models(session: Session, models: Iterable[tuple[str, str]]) -> list[dict[str, Any]]:
    found = []
    for model_id, revision in sorted(models):
        known = session.scalar(
            select(ModelVersion).where(ModelVersion.model_id == model_id, ModelVersion.revision == revision)
        )
        found.append(
            {
                "id": model_id,
                "revision": revision,
                "weights_sha256": known.weights_sha256 if known is not None else None,
                "labels": known.labels if known is not None else None,
                "label_map": known.label_map if known is not None else None,
            }
        )
    return found


def _distinct(batches: Sequence[HitBatch]) -> list[HitBatch]:
    """Return batches of different terms: validation batches repeat the same ones by the dozen."""
    found: dict[bytes, HitBatch] = {}
    for one in batches:
        found.setdefault(_canonical({name: _plain(getattr(one, name)) for name in _BATCH_FIELDS}), one)
    return [found[key] for key in sorted(found)]


def _set_of(ordered: Iterable[str]) -> dict[str, Any]:
    """Return how many there are, and a hash over them in their order."""
    count, digest = 0, hashlib.sha256()
    for one in ordered:
        count += 1
        digest.update(one.encode() + b"\n")
    return {"count": count, "sha256": digest.hexdigest()}


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, str | int | list | dict) else str(value)


def _canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=_written).encode()


def _written(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "__dataclass_fields__"):
        return {name: getattr(value, name) for name in value.__dataclass_fields__}
    return str(value)
