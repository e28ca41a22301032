"""Trains the fine-tunings that come with the repository: ``dynahit model train TASK --data DIR --out DIR``.

Members are fine-tuned from the same start in different orders of the data, their weights are averaged, and the
difference to the base is kept at low rank. What the card reports is measured on exactly that merged model.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from inference.base_weights import locate_base_weights
from inference.bert import load_tokenizer, read_base_state
from inference.embedded import DELTA
from inference.heads import model_of, untrained_state
from inference.low_rank import factor, save_delta
from inference.runtime import single_threaded_torch
from inference.training.cards import rows_to_measure, write_card
from inference.training.corpora import Asked, Row
from inference.training.fine_tune import Places, Votes, average, fine_tune
from inference.training.items import places_of, votes_of
from inference.training.recipes import Recipe, Rows

if TYPE_CHECKING:
    from tokenizers import Tokenizer


def items_of(recipe: Recipe, rows: Rows, tokenizer: Tokenizer) -> list[list[Votes] | list[Places]]:
    """Return what is learned in each epoch."""
    made: list[list[Votes] | list[Places]] = []
    for epoch, length in enumerate(recipe.lengths):
        learned = recipe.learned_in(rows, epoch)
        if recipe.head == "span":
            asked = [row for row in learned if isinstance(row, Asked)]
            made.append(places_of(asked, tokenizer, length, with_empty=epoch == len(recipe.lengths) - 1))
        else:
            texts = [row for row in learned if isinstance(row, Row)]
            made.append(votes_of(texts, tokenizer, length, emoji_names=recipe.emoji_names))
    return made


def train(recipe: Recipe, data: Path, out: Path, *, seed: int, base: Path | None, console: Console) -> dict[str, Any]:
    """Train, write delta and card to ``out``, and return the card. Raises BaseWeightsMissing, FileNotFoundError."""
    torch = single_threaded_torch()
    started = time.process_time()
    folder = locate_base_weights(base)
    tokenizer = load_tokenizer(folder / "tokenizer.json")
    epochs = items_of(recipe, recipe.train.rows(data), tokenizer)
    base_state = read_base_state(folder)
    torch.manual_seed(seed)
    # Members must start from one head, or their average means nothing.
    start = untrained_state(folder, base_state, recipe.labels)
    steps = sum(math.ceil(len(items) / recipe.schedule.batch_size) for items in epochs)
    members = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as progress:
        for member in range(recipe.members):
            own = {name: value.clone() for name, value in start.items()}
            title = f"member {member + 1} of {recipe.members}"
            advance = _learning(progress, progress.add_task(title, total=steps), title)
            model = model_of(folder, own, recipe.labels)
            chosen = seed * 1000 + member
            members.append(fine_tune(model, epochs, recipe.schedule, seed=chosen, advance=advance).state)
        out.mkdir(parents=True, exist_ok=True)
        save_delta(out / DELTA, factor(base_state, average(members), rank=recipe.rank))
        seconds = round(time.process_time() - started)
        measured = progress.add_task("measuring", total=rows_to_measure(recipe, data))
        return write_card(
            recipe,
            data,
            out,
            seed=seed,
            folder=folder,
            training_cpu_seconds=seconds,
            advance=partial(progress.advance, measured),
        )


def _learning(progress: Progress, bar: TaskID, title: str) -> Callable[[float], None]:
    smooth: list[float] = []

    def advance(loss: float) -> None:
        smooth[:] = [loss if not smooth else 0.98 * smooth[0] + 0.02 * loss]
        progress.update(bar, advance=1, description=f"{title}, loss {smooth[0]:.3f}")

    return advance
