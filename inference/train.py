"""Trains the fine-tunings that come with the repository: ``python -m inference.train sentiment --data DIR --out DIR``.

Several members are fine-tuned from the same start in different orders of the data, their weights are averaged, and the
difference to the base is kept at low rank. What the card reports was measured on exactly that merged model.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import math
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import Progress

from inference.base_weights import BASE_SHA256, HUB_ID, HUB_REVISION, file_sha256, locate_base_weights
from inference.bert import LoadedModel, build_classifier, classifier_of, load_tokenizer, padded, read_base_state
from inference.classify import Classifier
from inference.embedded import CARD, DELTA, revision_of, vocabulary_sha256
from inference.low_rank import factor, merge, read_delta, save_delta
from inference.runtime import single_threaded_torch

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from torch import Tensor


@dataclass(frozen=True)
class DataFile:
    """A published file of labelled sentences: where it lies under --data, and what the card calls it."""

    path: str
    source: str
    licence: str


@dataclass(frozen=True)
class Recipe:
    """All that decides a fine-tuning but the seed and the data."""

    model_id: str
    task: str
    labels: tuple[str, ...]
    train: DataFile
    tests: Mapping[str, DataFile]
    rank: int = 32
    max_length: int = 256
    members: int = 4
    epochs: int = 2
    batch_size: int = 32
    body_rate: float = 8e-5
    head_rate: float = 3e-4
    warm_up: float = 0.1
    weight_decay: float = 0.05
    clip_norm: float = 1.0


@dataclass(frozen=True)
class Row:
    """A sentence with its label and what part of its validators voted for each label, in the recipe's order."""

    text: str
    label: str
    votes: tuple[float, ...]


_DYNASENT = "DynaSent v1.1 (github.com/cgpotts/dynasent), "
RECIPES = {
    "sentiment": Recipe(
        model_id="dynahit/sentiment-minilm-l6-r32",
        task="sentiment",
        labels=("negative", "positive", "neutral"),
        train=DataFile(
            "sentiment_dynasent/dynasent-v1.1-round01-yelp-dev.jsonl.gz", _DYNASENT + "round 1 dev", "CC BY 4.0"
        ),
        tests={
            "round 1 test": DataFile(
                "sentiment_dynasent/dynasent-v1.1-round01-yelp-test.jsonl.gz", _DYNASENT + "round 1 test", "CC BY 4.0"
            ),
            "round 2 dev": DataFile(
                "sentiment_dynasent/dynasent-v1.1-round02-dynabench-dev.jsonl", _DYNASENT + "round 2 dev", "CC BY 4.0"
            ),
        },
    )
}


def read_rows(path: Path, labels: Sequence[str]) -> list[Row]:
    """Read a DynaSent file. Raises ValueError that names the line when a row has no such label."""
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode("utf-8")
    rows: list[Row] = []
    for number, line in enumerate(text.removesuffix("\n").split("\n"), start=1):
        item = json.loads(line)
        if item["gold_label"] not in labels:
            raise ValueError(f"{path}:{number}: gold_label is {item['gold_label']!r}, not one of {list(labels)}")
        counts = [len(item["label_distribution"][label]) for label in labels]
        rows.append(Row(item["sentence"], item["gold_label"], tuple(count / max(1, sum(counts)) for count in counts)))
    return rows


def fine_tune(
    recipe: Recipe, rows: Sequence[Row], tokenizer: Tokenizer, model: Any, *, seed: int, progress: Progress
) -> dict[str, Tensor]:
    """Fine-tune the model in place on the validators' votes and return its tensors; embeddings stay as they are."""
    torch = single_threaded_torch()
    torch.manual_seed(seed)
    order = random.Random(seed)  # noqa: S311, shuffling is no secret
    optimizer = torch.optim.AdamW(_parameter_groups(recipe, model))
    total = math.ceil(len(rows) / recipe.batch_size) * recipe.epochs
    warm_up = max(1, round(total * recipe.warm_up))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / warm_up, max(0, total - step) / (total - warm_up))
    )
    sequences = [encoding.ids for encoding in tokenizer.encode_batch([row.text for row in rows])]
    targets = torch.tensor([row.votes for row in rows], dtype=torch.float32)
    bar = progress.add_task(f"seed {seed}", total=total)
    model.train()
    for _ in range(recipe.epochs):
        for batch in _batches([len(sequence) for sequence in sequences], recipe.batch_size, order):
            ids, mask = padded([sequences[index] for index in batch], model.config.pad_token_id)
            with torch.autocast("cpu", torch.bfloat16):
                logits = model(input_ids=ids, attention_mask=mask).logits
            loss = torch.nn.functional.cross_entropy(logits.float(), targets[batch])
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.clip_norm)
            optimizer.step()
            optimizer.zero_grad()
            schedule.step()
            progress.advance(bar)
    model.eval().requires_grad_(False)
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


def average(members: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """Return the mean of several members' tensors."""
    torch = single_threaded_torch()
    return {name: torch.stack([member[name] for member in members]).mean(0) for name in members[0]}


def measure(classifier: Classifier, rows: Sequence[Row]) -> dict[str, Any]:
    """Return accuracy, row count and confusion (right label -> answered label -> rows) on labelled rows."""
    confusion = {right: dict.fromkeys(classifier.labels, 0) for right in classifier.labels}
    for start in range(0, len(rows), 32):
        part = rows[start : start + 32]
        for row, prediction in zip(part, classifier.predict_all([row.text for row in part]), strict=True):
            confusion[row.label][prediction.label] += 1
    right = sum(confusion[label][label] for label in classifier.labels)
    return {"rows": len(rows), "accuracy": round(right / len(rows), 4), "confusion": confusion}


def train(recipe: Recipe, data: Path, out: Path, *, seed: int, base: Path | None, console: Console) -> dict[str, Any]:
    """Train, write delta and card to ``out``, and return the card. Raises BaseWeightsMissing, FileNotFoundError."""
    torch = single_threaded_torch()
    started = time.process_time()
    folder = locate_base_weights(base)
    tokenizer = load_tokenizer(folder / "tokenizer.json", max_length=recipe.max_length)
    rows = read_rows(data / recipe.train.path, recipe.labels)
    base_state = read_base_state(folder)
    torch.manual_seed(seed)
    start = _untrained(folder, base_state, recipe.labels)
    members = []
    with Progress(console=console) as progress:
        for member in range(recipe.members):
            model = build_classifier(folder, start, recipe.labels)
            members.append(fine_tune(recipe, rows, tokenizer, model, seed=seed * 1000 + member, progress=progress))
    out.mkdir(parents=True, exist_ok=True)
    save_delta(out / DELTA, factor(base_state, average(members), rank=recipe.rank))
    seconds = round(time.process_time() - started)
    return write_card(recipe, data, out, seed=seed, folder=folder, training_cpu_seconds=seconds)


def write_card(
    recipe: Recipe, data: Path, out: Path, *, seed: int, folder: Path, training_cpu_seconds: int
) -> dict[str, Any]:
    """Measure the delta in ``out`` on the recipe's test files, write its card beside it and return the card."""
    base_state = read_base_state(folder)
    tokenizer = load_tokenizer(folder / "tokenizer.json", max_length=recipe.max_length)
    rows = read_rows(data / recipe.train.path, recipe.labels)
    delta_sha256 = file_sha256(out / DELTA)
    merged = build_classifier(folder, merge(base_state, read_delta(out / DELTA)), recipe.labels)
    loaded = LoadedModel(
        model_id=recipe.model_id,
        revision=revision_of(BASE_SHA256, delta_sha256),
        labels=recipe.labels,
        model=merged,
        tokenizer=tokenizer,
        max_length=recipe.max_length,
        pad_token_id=int(merged.config.pad_token_id),
    )
    classifier = Classifier(loaded, recipe.labels)
    settings = {key: value for key, value in asdict(recipe).items() if isinstance(value, int | float)}
    card = {
        "model_id": recipe.model_id,
        "revision": loaded.revision,
        "task": recipe.task,
        "labels": list(recipe.labels),
        "max_length": recipe.max_length,
        "licence": "Apache-2.0 (base weights); the fine-tuning was made from CC BY 4.0 data, named below",
        "base": {
            "hub_id": HUB_ID,
            "hub_revision": HUB_REVISION,
            "sha256": BASE_SHA256,
            "vocabulary_sha256": vocabulary_sha256(tokenizer.get_vocab()),
            "licence": "Apache-2.0",
        },
        "delta": {"file": DELTA, "sha256": delta_sha256, "bytes": (out / DELTA).stat().st_size},
        "training_data": _described(recipe.train, data, len(rows)),
        "command": f"python -m inference.train {recipe.task} --data DIR --out DIR --seed {seed}",
        "seed": seed,
        "recipe": settings | {"loss": "cross-entropy on the validators' votes", "arithmetic": "bfloat16 autocast"},
        "evaluation_of": "the merged low-rank model in single precision, as it is served",
        "evaluation": {
            name: _described(file, data, None) | measure(classifier, read_rows(data / file.path, recipe.labels))
            for name, file in recipe.tests.items()
        },
        "versions": {name: version(name) for name in ("torch", "transformers", "tokenizers")},
        "training_cpu_seconds": training_cpu_seconds,
    }
    (out / CARD).write_text(json.dumps(card, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return card


def main(arguments: Sequence[str] | None = None) -> None:
    """Train the named task's model from the command line."""
    parser = argparse.ArgumentParser(prog="python -m inference.train", description="Train an embedded model.")
    parser.add_argument("task", choices=sorted(RECIPES))
    parser.add_argument("--data", type=Path, required=True, help="folder with the published data sets")
    parser.add_argument("--out", type=Path, required=True, help="folder for delta.safetensors and card.json")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--base", type=Path, help="folder with the base weights, if they are not found by themselves")
    chosen = parser.parse_args(arguments)
    console = Console()
    card = train(RECIPES[chosen.task], chosen.data, chosen.out, seed=chosen.seed, base=chosen.base, console=console)
    for name, result in card["evaluation"].items():
        console.print(f"{name}: {result['accuracy']:.1%} right of {result['rows']} rows")
    console.print(f"{chosen.out / DELTA}: {card['delta']['bytes'] / 1e6:.1f} MB, revision {card['revision']}")


def _untrained(folder: Path, base_state: Mapping[str, Tensor], labels: Sequence[str]) -> dict[str, Tensor]:
    # Members must start from one head, or their average means nothing.
    from transformers import BertConfig

    fresh = classifier_of(BertConfig.from_json_file(str(folder / "config.json")), None, labels).state_dict()
    return {name: base_state.get(name, value).clone() for name, value in fresh.items()}


def _parameter_groups(recipe: Recipe, model: Any) -> list[dict[str, Any]]:
    groups = []
    for name, parameter in model.named_parameters():
        # Half of all parameters are embeddings; training them would double the file for no measured gain.
        if name.startswith("bert.embeddings.") and "LayerNorm" not in name:
            continue
        parameter.requires_grad_(True)
        is_head = name.startswith(("classifier.", "bert.pooler."))
        groups.append(
            {
                "params": [parameter],
                "lr": recipe.head_rate if is_head else recipe.body_rate,
                "weight_decay": recipe.weight_decay if parameter.dim() > 1 else 0.0,
            }
        )
    return groups


def _batches(lengths: Sequence[int], size: int, order: random.Random) -> Iterator[list[int]]:
    indices = list(range(len(lengths)))
    order.shuffle(indices)
    batches = []
    for start in range(0, len(indices), 8 * size):
        window = sorted(indices[start : start + 8 * size], key=lengths.__getitem__)
        batches += [window[at : at + size] for at in range(0, len(window), size)]
    order.shuffle(batches)
    yield from batches


def _described(file: DataFile, data: Path, rows: int | None) -> dict[str, Any]:
    content = hashlib.sha256((data / file.path).read_bytes()).hexdigest()
    described = {"source": file.source, "licence": file.licence, "file": Path(file.path).name, "sha256": content}
    return described if rows is None else described | {"rows": rows}


if __name__ == "__main__":
    main()
