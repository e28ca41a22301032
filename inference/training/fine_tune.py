"""Fine-tunes a model in place on encoded rows, for classifiers and readers alike, the same way each time.

Devices, several processes and the state that a checkpoint holds are the accelerate library's part.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from inference.bert import padded
from inference.encoding import PASSAGE, Encoded
from inference.published import takes_type_ids
from inference.runtime import single_threaded_torch
from inference.training.checkpoints import Checkpoints, Progress

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Schedule:
    """How long and how fast a model learns. ``bfloat16`` is quicker only where the processor computes with it.

    ``dropout`` None leaves the base's own; a number holds for hidden states, and attention then has none. Embeddings
    stay as they are unless ``embeddings_learn``.
    """

    batch_size: int = 32
    body_rate: float = 8e-5
    head_rate: float = 3e-4
    warm_up: float = 0.1
    weight_decay: float = 0.05
    clip_norm: float = 1.0
    dropout: float | None = None
    bfloat16: bool = False
    embeddings_learn: bool = False


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


class OnDemand(Sequence[Any]):
    """Items that are made anew whenever they are asked for, so that memory holds only the rows they are made of.

    ``lengths`` are the positions of each.
    """

    def __init__(self, make: Callable[[int], Votes | Places], lengths: Sequence[int]) -> None:
        self._make = make
        self.lengths = lengths

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, index: Any) -> Any:
        return self._make(index)


Items = Sequence[Votes] | Sequence[Places] | OnDemand


@dataclass(frozen=True)
class Watch:
    """Looks at the model every so many steps and ends the training when it gets no better.

    ``score`` is of the model in evaluation mode, the higher the better. After ``patience`` looks in a row that are no
    better than the best, or when ``deadline`` (of time.monotonic) has passed, training ends. The best is what is kept.
    """

    score: Callable[[Any], float]
    every: int
    patience: int
    deadline: float | None = None


@dataclass(frozen=True)
class Tuned:
    """What came of a fine-tuning. ``looks`` are (steps done, score); ``ended`` is planned, no better or time."""

    state: dict[str, Tensor]
    steps: int
    planned: int
    best_step: int
    looks: tuple[tuple[int, float], ...] = ()
    ended: str = "planned"
    workers: int = 1


def fine_tune(
    model: Any,
    epochs: Sequence[Items],
    schedule: Schedule,
    *,
    seed: int,
    advance: Callable[[float], None] = lambda loss: None,
    class_weights: Sequence[float] | None = None,
    watch: Watch | None = None,
    checkpoints: Checkpoints | None = None,
) -> Tuned:
    """Fine-tune the model in place, one sequence of items for each epoch.

    ``advance`` is called after each step with its loss (of this process's part). ``class_weights``, in the order of the
    model's outputs, say how much an item of each label counts. With ``checkpoints`` a training that was killed goes on
    where it was. The same seed, items, machine, threads and versions give the same tensors, killed or not. Several
    processes that a launcher has started share the items of each step, and all return the same tensors.
    """
    torch = single_threaded_torch()
    from accelerate import Accelerator

    torch.manual_seed(seed)
    # Without being told, several processes without any GPU would take themselves for single ones.
    accelerator = Accelerator(cpu="LOCAL_RANK" in os.environ and not torch.accelerator.is_available())
    _set_dropout(model, schedule.dropout)
    optimizer = torch.optim.AdamW(parameter_groups(model, schedule))
    order = random.Random(seed)  # noqa: S311, shuffling is no secret
    plan = [(items, batch) for items in epochs for batch in batches(_lengths(items), schedule.batch_size, order)]
    total = len(plan)
    warm_up = max(1, round(total * schedule.warm_up))
    rate = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / warm_up, max(0, total - step) / max(1, total - warm_up))
    )
    # The schedule counts steps of all processes together, so it is not one that is prepared.
    whole = model
    model, optimizer = accelerator.prepare(model, optimizer)
    accelerator.register_for_checkpointing(rate)
    progress = checkpoints.resume(accelerator) if checkpoints is not None else Progress()
    model.train()
    for items, batch in plan[progress.step :]:
        if progress.ended:
            break
        loss = _shared_loss(accelerator, model, [items[index] for index in batch], schedule.bfloat16, class_weights)
        accelerator.backward(loss)
        accelerator.clip_grad_norm_(model.parameters(), schedule.clip_norm)
        optimizer.step()
        optimizer.zero_grad()
        rate.step()
        progress.step += 1
        advance(float(loss.detach()))
        last = progress.step == total
        if watch is not None and (last or progress.step % watch.every == 0):
            _look(accelerator, whole, watch, progress, checkpoints)
        if checkpoints is not None and (last or progress.ended or checkpoints.due(progress.step)):
            checkpoints.save(accelerator, progress)
    accelerator.wait_for_everyone()
    if checkpoints is not None and progress.best is not None:
        whole.load_state_dict(checkpoints.best_state(progress))
    whole.to("cpu").eval().requires_grad_(False)
    return Tuned(
        state={name: value.detach().clone() for name, value in whole.state_dict().items()},
        steps=progress.step,
        planned=total,
        best_step=progress.best[0] if progress.best is not None else progress.step,
        looks=tuple(progress.looks),
        ended=progress.ended or "planned",
        workers=accelerator.num_processes,
    )


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
    body = f"{model.base_model_prefix}."
    for name, parameter in model.named_parameters():
        # Half of all parameters are embeddings; training them would double the file, and nothing could be shared.
        if not schedule.embeddings_learn and ".embeddings." in name and "LayerNorm" not in name:
            continue
        parameter.requires_grad_(True)
        is_head = not name.startswith(body) or name.startswith(f"{body}pooler.")
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


def _lengths(items: Items) -> Sequence[int]:
    return items.lengths if isinstance(items, OnDemand) else [len(item.encoded.ids) for item in items]


def _look(accelerator: Any, model: Any, watch: Watch, progress: Progress, checkpoints: Checkpoints | None) -> None:
    """Score the model in the first process, and tell all what follows from it."""
    from accelerate.utils import broadcast_object_list

    said: list[Any] = [None, None]
    if accelerator.is_main_process:
        model.eval()
        late = watch.deadline is not None and time.monotonic() > watch.deadline
        said = [watch.score(model), late]
        model.train()
    score, late = broadcast_object_list(said)
    progress.looks.append((progress.step, score))
    if progress.best is None or score > progress.best[1]:
        progress.best, progress.worse = (progress.step, score), 0
        if checkpoints is not None:
            checkpoints.keep_best(accelerator, model, progress)
    else:
        progress.worse += 1
    if late:
        progress.ended = "time"
    elif progress.worse >= watch.patience:
        progress.ended = "no better"


def _shared_loss(
    accelerator: Any, model: Any, items: Sequence[Any], bfloat16: bool, class_weights: Sequence[float] | None
) -> Any:
    """Return this process's part of the mean loss over the items; the mean over the processes is that of all."""
    weights = [_weight(item, class_weights) for item in items]
    workers, own = accelerator.num_processes, accelerator.process_index
    mine, factors = items[own::workers], weights[own::workers]
    if not mine:
        # Every process must take part in every step; here there is nothing left for this one.
        mine, factors = items[:1], [0.0]
    losses = _losses(model, mine, bfloat16, accelerator.device)
    torch = single_threaded_torch()
    return (losses * torch.tensor(factors, device=losses.device)).sum() * workers / sum(weights)


def _weight(item: Votes | Places, class_weights: Sequence[float] | None) -> float:
    if class_weights is None or isinstance(item, Places):
        return 1.0
    return sum(part * weight for part, weight in zip(item.parts, class_weights, strict=True))


def _losses(model: Any, items: Sequence[Any], bfloat16: bool, device: Any) -> Any:
    """Return each item's own loss."""
    torch = single_threaded_torch()
    config = getattr(model, "module", model).config
    ids, mask = padded([item.encoded.ids for item in items], config.pad_token_id)
    more = {}
    if takes_type_ids(getattr(model, "module", model)):
        more["token_type_ids"] = padded([item.encoded.type_ids for item in items], 0)[0].to(device)
    with torch.autocast(device.type, torch.bfloat16, enabled=bfloat16):
        answer = model(input_ids=ids.to(device), attention_mask=mask.to(device), **more)
    if isinstance(items[0], Votes):
        parts = torch.tensor([item.parts for item in items], device=device)
        return torch.nn.functional.cross_entropy(answer.logits.float(), parts, reduction="none")
    allowed = torch.zeros(ids.shape, dtype=torch.bool)
    for row, item in enumerate(items):
        allowed[row, item.allowed] = True
    allowed = allowed.to(device)
    starts = _place_losses(answer.start_logits, allowed, [item.starts for item in items])
    return (starts + _place_losses(answer.end_logits, allowed, [item.ends for item in items])) / 2


def _place_losses(logits: Any, allowed: Tensor, places: Sequence[Mapping[int, float]]) -> Any:
    torch = single_threaded_torch()
    logarithms = logits.float().masked_fill(~allowed, float("-inf")).log_softmax(-1)
    rows = torch.tensor([row for row, one in enumerate(places) for _ in one], device=logits.device)
    columns = [at for one in places for at in one]
    weights = torch.tensor([part for one in places for part in one.values()], device=logits.device)
    losses = torch.zeros(len(places), device=logits.device)
    return losses.index_add(0, rows, -(logarithms[rows, columns] * weights))
