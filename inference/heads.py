"""Puts a classifier's or a reader's head on the base; models of one process share the base's embeddings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inference.bert import classifier_of
from inference.runtime import single_threaded_torch

if TYPE_CHECKING:
    from torch import Tensor

POOLER = "bert.pooler."
"""Classifiers read the first position through it; readers have none."""


def model_of(folder: Path, state: Mapping[str, Tensor] | None, labels: Sequence[str]) -> Any:
    """Return a BERT of the folder's configuration: a classifier of these labels, or a reader when there are none.

    It is in evaluation mode with frozen single-precision parameters, and random where there is no state. Tensors of
    the state that need no change are used as they are, not copied.
    Raises ValueError when a tensor is missing or left over.
    """
    torch = single_threaded_torch()
    from transformers import BertConfig

    config = BertConfig.from_json_file(str(folder / "config.json"))
    if state is None:
        return _bert(config, labels)
    # Random weights that are thrown away at once would cost a second and leave holes in the memory of the process.
    with torch.device("meta"):
        model = _bert(config, labels)
    wanted = {name: value.to(torch.float32) for name, value in state.items() if labels or POOLER not in name}
    result = model.load_state_dict(wanted, strict=False, assign=True)
    if result.missing_keys or result.unexpected_keys:
        raise ValueError(f"tensors missing: {result.missing_keys}; left over: {result.unexpected_keys}")
    _fill_counters(model, config)
    return model.eval().requires_grad_(False)


def untrained_state(folder: Path, base_state: Mapping[str, Tensor], labels: Sequence[str]) -> dict[str, Tensor]:
    """Return the base's tensors with a random head beside them, each tensor a copy."""
    fresh = model_of(folder, None, labels).state_dict()
    return {name: base_state.get(name, value).clone() for name, value in fresh.items()}


def _bert(config: Any, labels: Sequence[str]) -> Any:
    from transformers import BertForQuestionAnswering

    if labels:
        return classifier_of(config, None, labels)
    config.num_labels = 2
    return BertForQuestionAnswering(config).eval().requires_grad_(False)


def _fill_counters(model: Any, config: Any) -> None:
    """Give the model what no state holds: the positions and token types that BERT counts beside its weights."""
    from transformers import BertConfig, BertModel

    small = BertConfig(
        vocab_size=1,
        pad_token_id=0,
        hidden_size=1,
        num_attention_heads=1,
        num_hidden_layers=0,
        intermediate_size=1,
        max_position_embeddings=config.max_position_embeddings,
    )
    counters = dict(BertModel(small, add_pooling_layer=False).named_buffers())
    for name, buffer in list(model.named_buffers()):
        if buffer.is_meta:
            owner, _, own_name = name.rpartition(".")
            model.get_submodule(owner).register_buffer(own_name, counters[name.removeprefix("bert.")], persistent=False)
