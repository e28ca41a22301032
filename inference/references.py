"""Names of models as they are configured: embedded:TASK, hub:OWNER/NAME@REVISION, dir:PATH, served:NAME, ensembles."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl

from hits.errors import InvalidInput

FORMS = (
    "embedded:TASK",
    "hub:OWNER/NAME@REVISION",
    "dir:/PATH",
    "served:NAME",
    "ensemble:POLICY(REFERENCE, REFERENCE, ...)",
)
POLICIES = ("random", "random:SEED", "mean", "majority", "wrong>=NUMBER")
_HUB = re.compile(r"(?!.*\.\.)(?P<repository>[\w.-]+/[\w.-]+)(?:@(?P<revision>[\w./-]+))?", re.ASCII)
_ENSEMBLE = re.compile(r"(?P<policy>[^()]*)\((?P<members>.*)\)", re.DOTALL)
_POLICY = re.compile(r"(?P<name>random|mean|majority|wrong)(?::(?P<seed>\d{1,9})|>=(?P<needed>\d{1,3}))?")


@dataclass(frozen=True)
class EmbeddedReference:
    """The model that comes with the repository for a task."""

    task_code: str

    def __str__(self) -> str:
        return f"embedded:{self.task_code}"


@dataclass(frozen=True)
class HubReference:
    """A model on the Hugging Face hub at one revision: a commit, or a tag that is resolved to one when it is loaded.

    ``labels`` are the task's labels in the order of the model's outputs, for models that don't name theirs.
    """

    repository: str
    revision: str
    labels: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"hub:{self.repository}@{self.revision}{_query(self.labels)}"


@dataclass(frozen=True)
class FolderReference:
    """A model in a folder on this machine; ``labels`` as for the hub."""

    folder: Path
    labels: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"dir:{self.folder}{_query(self.labels)}"


@dataclass(frozen=True)
class ServedReference:
    """A model on the configured model server, by the name that it has there; ``labels`` as for the hub."""

    name: str
    labels: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"served:{self.name}{_query(self.labels)}"


@dataclass(frozen=True)
class EnsembleReference:
    """Several models behind one answer. ``seed`` is of the policy random, ``needed`` of wrong>=needed."""

    policy: str
    members: tuple[SingleReference, ...]
    seed: int = 0
    needed: int | None = None

    def __str__(self) -> str:
        more = f":{self.seed}" if self.seed else f">={self.needed}" if self.needed is not None else ""
        return f"ensemble:{self.policy}{more}({', '.join(map(str, self.members))})"


SingleReference = EmbeddedReference | HubReference | FolderReference | ServedReference
Reference = SingleReference | EnsembleReference


def parse_reference(text: str) -> Reference:
    """Return what a configured name stands for. Raises InvalidInput that shows the name and what to write instead."""
    kind, _, rest = text.strip().partition(":")
    if kind == "ensemble":
        return _ensemble(text, rest)
    name, _, query = rest.partition("?")
    if kind == "embedded" and re.fullmatch(r"\w+", name) and not query:
        return EmbeddedReference(name)
    if kind == "hub" and (match := _HUB.fullmatch(name)):
        if match["revision"] is None:
            raise InvalidInput(
                f"{text!r} names no revision, so it could change unseen. "
                f"Write hub:{match['repository']}@COMMIT with a commit or tag from the model's page."
            )
        return HubReference(match["repository"], match["revision"], _labels(text, query))
    if kind == "served" and re.fullmatch(r"[\w.-]+", name, re.ASCII):
        return ServedReference(name, _labels(text, query))
    if kind == "dir" and name:
        return FolderReference(Path(name), _labels(text, query))
    raise InvalidInput(f"{text!r} names no model. Write one of {'; '.join(FORMS)}.")


def _ensemble(text: str, rest: str) -> EnsembleReference:
    match = _ENSEMBLE.fullmatch(rest.strip())
    policy = _POLICY.fullmatch(match["policy"].strip()) if match else None
    if match is None or policy is None or not _fits(policy):
        raise InvalidInput(
            f"{text!r} is no ensemble. Write ensemble:POLICY(REFERENCE, REFERENCE, ...); "
            f"the policies are {', '.join(POLICIES)}."
        )
    if "ensemble:" in match["members"]:
        raise InvalidInput(f"{text!r} has an ensemble inside an ensemble. Name the models themselves.")
    members = [parse_reference(part) for part in _split(match["members"])]
    singles = tuple(member for member in members if not isinstance(member, EnsembleReference))
    if len(singles) < 2 or len(set(singles)) != len(singles):
        raise InvalidInput(f"{text!r} has {len(singles)} members; an ensemble needs two or more, all different.")
    needed = int(policy["needed"]) if policy["needed"] else None
    if needed is not None and not 1 <= needed <= len(singles):
        raise InvalidInput(f"{text!r} wants {needed} wrong members of {len(singles)}. Write 1 to {len(singles)}.")
    return EnsembleReference(policy["name"], singles, seed=int(policy["seed"] or 0), needed=needed)


def _fits(policy: re.Match[str]) -> bool:
    return (policy["needed"] is not None) == (policy["name"] == "wrong") and (
        policy["seed"] is None or policy["name"] == "random"
    )


def _split(members: str) -> list[str]:
    """Split at the commas that stand before a new reference; those inside ``?labels=a,b`` don't."""
    return [
        part.strip() for part in re.split(r",\s*(?=(?:embedded|hub|dir|served|ensemble):)", members) if part.strip()
    ]


def _labels(text: str, query: str) -> tuple[str, ...]:
    if not query:
        return ()
    pairs = parse_qsl(query, keep_blank_values=True)
    if [name for name, _ in pairs] != ["labels"]:
        raise InvalidInput(f"{text!r} ends in ?{query}; only ?labels=ONE,OTHER is known there.")
    labels = tuple(label.strip() for label in pairs[0][1].split(","))
    if not all(labels) or len(set(labels)) != len(labels):
        raise InvalidInput(f"{text!r} names the labels {list(labels)}. Name each once, in the order of the outputs.")
    return labels


def _query(labels: tuple[str, ...]) -> str:
    return f"?labels={','.join(labels)}" if labels else ""
