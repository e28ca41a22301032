"""Fine-tunes a model in place on encoded rows, for classifiers and readers alike, the same way each time."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from inference.bert import padded
from inference.encoding import PASSAGE, Encoded
from inference.runtime import single_threaded_torch

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor


@dataclass(frozen=True)
class Schedule:
    """How long and how fast a model learns. ``bfloat16`` is quicker only where the processor computes with it.

    ``dropout`` None leaves the base's own; a number holds for hidden states, and attention then has none.
    """

    batch_size: int = 32
    body_rate: float = 8e-5
    head_rate: float = 3e-4
    warm_up: float = 0.1
    weight_decay: float = 0.05
    clip_norm: float = 1.0
    dropout: float | None = None
    bfloat16: bool = False


@dataclass(frozen=True)
class Votes:
    """What a classifier shall say to one input: the parts of the votes, in the order of the model's outputs."""

    encoded: Encoded
    parts: tuple[float, ...]


@dataclass(frozen=True)
class Places:
    """What a reader shall say to one window: by position, how probable it is that an answer starts or ends there.

    ``allowed`` are the positions that compete: the passage's, and the first one, which means that the window has no
    answer.
    """

    encoded: Encoded
    starts: Mapping[int, float]
    ends: Mapping[int, float]

    @property
    def allowed(self) -> list[int]:
        return [0, *(at for at, piece in enumerate(self.encoded.pieces) if piece.field == PASSAGE)]


def fine_tune(
    model: Any,
    epochs: Sequence[Sequence[Votes] | Sequence[Places]],
    schedule: Schedule,
    *,
    seed: int,
    advance: Callable[[float], None] = lambda loss: None,
) -> dict[str, Tensor]:
    """Fine-tune the model in place, one sequence of items for each epoch, and return its tensors.

    Embeddings stay as they are, so that all tasks share them. ``advance`` is called after each step with its loss. The
    same seed, items, machine and versions give the same tensors.
    """
    torch = single_threaded_torch()
    torch.manual_seed(seed)
    order = random.Random(seed)  # noqa: S311, shuffling is no secret
    _set_dropout(model, schedule.dropout)
    optimizer = torch.optim.AdamW(parameter_groups(model, schedule))
    total = sum(math.ceil(len(items) / schedule.batch_size) for items in epochs)
    warm_up = max(1, round(total * schedule.warm_up))
    rate = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / warm_up, max(0, total - step) / (total - warm_up))
    )
    model.train()
    for items in epochs:
        for batch in batches([len(item.encoded.ids) for item in items], schedule.batch_size, order):
            loss = _loss(model, [items[index] for index in batch], schedule.bfloat16)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), schedule.clip_norm)
            optimizer.step()
            optimizer.zero_grad()
            rate.step()
            advance(float(loss.detach()))
    model.eval().requires_grad_(False)
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


def average(members: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """Return the mean of several members' tensors."""
    torch = single_threaded_torch()
    return {name: torch.stack([member[name] for member in members]).mean(0) for name in members[0]}


def batches(lengths: Sequence[int], size: int, order: random.Random) -> Iterator[list[int]]:
    """Yield every index once, in random batches of like lengths."""
    indices = list(range(len(lengths)))
    order.shuffle(indices)
    made = []
    for start in range(0, len(indices), 8 * size):
        window = sorted(indices[start : start + 8 * size], key=lengths.__getitem__)
        made += [window[at : at + size] for at in range(0, len(window), size)]
    order.shuffle(made)
    yield from made


def parameter_groups(model: Any, schedule: Schedule) -> list[dict[str, Any]]:
    """Make all parameters but the embeddings learn, the head at its own rate, and return them for an optimizer."""
    groups = []
    for name, parameter in model.named_parameters():
        # Half of all parameters are embeddings; training them would double the file, and nothing could be shared.
        if name.startswith("bert.embeddings.") and "LayerNorm" not in name:
            continue
        parameter.requires_grad_(True)
        is_head = name.startswith(("classifier.", "qa_outputs.", "bert.pooler."))
        groups.append(
            {
                "params": [parameter],
                "lr": schedule.head_rate if is_head else schedule.body_rate,
                "weight_decay": schedule.weight_decay if parameter.dim() > 1 else 0.0,
            }
        )
    return groups


def _set_dropout(model: Any, dropout: float | None) -> None:
    if dropout is None:
        return
    torch = single_threaded_torch()
    for name, module in model.named_modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0 if "attention.self" in name else dropout


def _loss(model: Any, items: Sequence[Any], bfloat16: bool) -> Any:
    torch = single_threaded_torch()
    ids, mask = padded([item.encoded.ids for item in items], model.config.pad_token_id)
    type_ids, _ = padded([item.encoded.type_ids for item in items], 0)
    with torch.autocast("cpu", torch.bfloat16, enabled=bfloat16):
        answer = model(input_ids=ids, attention_mask=mask, token_type_ids=type_ids)
    if isinstance(items[0], Votes):
        return torch.nn.functional.cross_entropy(answer.logits.float(), torch.tensor([item.parts for item in items]))
    allowed = torch.zeros(ids.shape, dtype=torch.bool)
    for row, item in enumerate(items):
        allowed[row, item.allowed] = True
    return (
        _place_loss(answer.start_logits, allowed, [item.starts for item in items])
        + _place_loss(answer.end_logits, allowed, [item.ends for item in items])
    ) / 2


def _place_loss(logits: Any, allowed: Tensor, places: Sequence[Mapping[int, float]]) -> Any:
    torch = single_threaded_torch()
    logarithms = logits.float().masked_fill(~allowed, float("-inf")).log_softmax(-1)
    rows = [row for row, one in enumerate(places) for _ in one]
    columns = [at for one in places for at in one]
    weights = torch.tensor([part for one in places for part in one.values()])
    return -(logarithms[rows, columns] * weights).sum() / len(places)
