"""Writes a trained model as a folder that `dir:` names: weights, tokenizer, labels by name, and its card."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inference.emoji_names import PREPROCESSING
from inference.published import OWN_FACTS
from inference.training.starts import TOKENIZER_FILES, Start

if TYPE_CHECKING:
    from torch import Tensor


def write_model(folder: Path, start: Start, state: Mapping[str, Tensor]) -> None:
    """Write weights, configuration and tokenizer; the folder is new. The same tensors give the same bytes."""
    from safetensors.torch import save_file

    folder.mkdir(parents=True)
    save_file(
        {name: value.contiguous() for name, value in state.items()}, folder / "model.safetensors", {"format": "pt"}
    )
    # The library makes it for its owner alone, and the service may be somebody else.
    (folder / "model.safetensors").chmod(0o644)
    start.model.config.architectures = [type(start.model).__name__]
    start.model.config.save_pretrained(folder)
    _write_tokenizer(folder, start)


def write_facts(folder: Path, facts: Mapping[str, Any]) -> None:
    """Write what the model says of itself: for the loader and other programs, and for people."""
    (folder / OWN_FACTS).write_text(json.dumps(facts, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    (folder / "README.md").write_text(card_of(facts), encoding="utf-8")


def serving_facts(start: Start) -> dict[str, Any]:
    """Return what the loader needs to know besides the library's own files."""
    found: dict[str, Any] = {"stride": start.stride}
    if start.emoji_names:
        found["preprocessing"] = PREPROCESSING
    return found


def consequences(licences: Mapping[str, str]) -> list[str]:
    """Return in words what the licences of the sources (source -> licence) mean for whoever uses the model."""
    found = []
    for source, licence in licences.items():
        plain = licence.casefold()
        if "nc" in plain.replace("_", "-").split("-"):
            found.append(f"{source} is {licence}: not for commercial use, and neither is a model that learned from it.")
        if "by-sa" in plain:
            found.append(
                f"{source} is {licence}: whoever passes the model on may have to do so under the same licence."
            )
        if plain in ("not stated", "none", ""):
            found.append(f"{source} states no licence: ask its publisher before the model is passed on.")
        elif "by" in plain.replace("_", "-").split("-"):
            found.append(f"{source} is {licence}: name its authors where the model is used.")
    return found


def card_of(facts: Mapping[str, Any]) -> str:
    """Return the model's card in Markdown, with the header that the hub reads."""
    name, data = str(facts["name"]), facts["data"]
    header = {
        "license": "other",
        "license_name": facts["licence"],
        "pipeline_tag": "text-classification" if facts["labels"] else "question-answering",
        "base_model": facts["start"]["reference"],
        "tags": ["dynahit", "adversarial-data"],
    }
    lines = ["---", *(f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in header.items()), "---", ""]
    rounds = facts["rounds"]
    learned = (
        f"rounds {', '.join(map(str, rounds))}" if len(rounds) > 1 else f"round {rounds[0]}" if rounds else "no round"
    )
    base = "base data and " if any(one["name"].startswith("base") for one in data) else ""
    lines += [
        f"# {name}",
        "",
        f"A model of the `{facts['task']}` task that learned from {base}{learned} of adversarial collection,"
        f" trained by dynahit from {facts['start']['reference']} ({facts['start']['kind']}).",
        "",
        "## What it learned from",
        "",
        "| source | train | dev | test | weight | licence |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {one['name']} | {one['train']:,} | {one['dev']:,} | {one['test']:,} | {one['weight']:g} |"
        f" {one['licence']} |"
        for one in data
    ]
    lines += ["", "Left out:", ""]
    left = [f"- {one['name']}: {count:,} × {reason}" for one in data for reason, count in one["left_out"].items()]
    lines += left or ["- nothing"]
    lines += ["", "Hashes of the data:", ""]
    lines += [f"- {one['name']}: `{json.dumps(one['facts'], ensure_ascii=False)}`" for one in data]
    lines += ["", "## What the licences mean", ""]
    lines += [f"- {one}" for one in facts["consequences"]] or ["- No condition was found in the licences."]
    lines += ["", "## Scores", "", *_scores(facts["scores"])]
    training = facts["training"]
    lines += [
        "",
        "Dev rows decided when training ended and which weights were kept; test rows decided nothing.",
        "",
        "## How it was trained",
        "",
        f"{training['steps']:,} of {training['planned_steps']:,} steps (ended: {training['ended']}); the weights are"
        f" those after step {training['best_step']:,}. Seed {facts['seed']}, {training['processes']} process(es) with"
        f" {training['threads']} thread(s) each.",
        "",
        "```json",
        json.dumps({"settings": facts["settings"], "code": facts["code"], "versions": facts["versions"]}, indent=2),
        "```",
        "",
        f"Identity `{facts['identity']}`: the same identity, machine and threads give the same weights.",
        "",
    ]
    return "\n".join(lines)


def publish(made: Path, out: Path) -> None:
    """Give the finished folder its name, and remove what the training has left beside it."""
    out.parent.mkdir(parents=True, exist_ok=True)
    made.replace(out)
    shutil.rmtree(made.parent, ignore_errors=True)


def _scores(scores: Mapping[str, Mapping[str, Any]]) -> list[str]:
    if not scores:
        return ["There were no rows to measure on."]
    keys: Sequence[tuple[str, str]] = (("accuracy", "accuracy"), ("macro_f1", "macro F1"))
    if any("exact_match" in one for one in scores.values()):
        keys = (("exact_match", "exact match"), ("f1", "F1"))
    lines = [f"| rows | count | {keys[0][1]} | {keys[1][1]} |", "| --- | --- | --- | --- |"]
    return lines + [
        f"| {name} | {one['rows']:,} | {one[keys[0][0]]:.1%} | {one[keys[1][0]]:.1%} |" for name, one in scores.items()
    ]


def _write_tokenizer(folder: Path, start: Start) -> None:
    for name in TOKENIZER_FILES:
        if (start.folder / name).is_file():
            shutil.copyfile(start.folder / name, folder / name)
    for path in start.folder.glob("*.model"):
        shutil.copyfile(path, folder / path.name)
    # What stands in the file about cutting and padding is not how the model is asked here.
    start.tokenizer.save(str(folder / "tokenizer.json"))
    path = folder / "tokenizer_config.json"
    said = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    said.setdefault("tokenizer_class", "PreTrainedTokenizerFast")
    said["model_max_length"] = start.max_length
    path.write_text(json.dumps(said, indent=2, sort_keys=True) + "\n", encoding="utf-8")
