"""A loaded model and its batches; reads BERT's base weights and tokenizers from plain files, without hub access."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal

from inference.encoding import Encoded
from inference.runtime import single_threaded_torch
from inference.target import ModelCard

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from torch import Tensor

BODY = "bert."


@dataclass(frozen=True)
class LoadedModel:
    """A target model in memory. ``labels`` is in the order of the model's own outputs, empty for one that reads spans.

    ``tokenizer`` neither cuts nor pads (inference.encoding does). ``takes_type_ids`` tells whether the forward pass
    tells texts apart by token types; ``stride`` is how many word pieces two windows of a passage share. A model that is
    ``learning`` changes between two calls and may be on another device, so that it is asked as it is.
    """

    model_id: str
    revision: str
    labels: tuple[str, ...]
    model: Any
    tokenizer: Tokenizer
    max_length: int
    pad_token_id: int
    head: Literal["classification", "span"] = "classification"
    takes_type_ids: bool = True
    emoji_names: bool = False
    stride: int = 128
    card: ModelCard | None = None
    learning: bool = False

    def described(self) -> ModelCard:
        """Return the model's card, or one with nothing but its names when it was made without."""
        if self.card is not None:
            return self.card
        return ModelCard(self.model_id, self.revision, self.labels, {label: label for label in self.labels})

    def forward(self, sequences: Sequence[Encoded]) -> Any:
        """Return the model's raw output for a batch of sequences, computed without gradients."""
        torch = single_threaded_torch()
        ids, mask = padded([sequence.ids for sequence in sequences], self.pad_token_id)
        more: dict[str, Tensor] = {}
        if self.takes_type_ids:
            more["token_type_ids"] = padded([sequence.type_ids for sequence in sequences], 0)[0]
        with torch.inference_mode():
            return self._pass(input_ids=ids, attention_mask=mask, **more)

    @cached_property
    def _pass(self) -> Any:
        """The fastest way through the model that says what the model says; the model itself if need be."""
        if self.learning:
            return self._ask_as_it_is
        from inference.graph import graph_of, lean_graph_of

        names = ("logits",) if self.head == "classification" else ("start_logits", "end_logits")
        return (
            lean_graph_of(self.model, longest=self.max_length)
            or graph_of(self.model, names, takes_type_ids=self.takes_type_ids, longest=self.max_length)
            or self.model
        )

    def _ask_as_it_is(self, **inputs: Tensor) -> Any:
        answer = self.model(**{name: value.to(self.model.device) for name, value in inputs.items()})
        return SimpleNamespace(**{name: value.cpu() for name, value in answer.items()})


def read_base_state(folder: Path) -> dict[str, Tensor]:
    """Return the base's tensors under the names that a classifier gives them."""
    from safetensors.torch import load_file

    state = load_file(folder / "model.safetensors")
    # A counter that older versions of the library stored; the model makes it itself.
    state.pop("embeddings.position_ids", None)
    return {BODY + name: value for name, value in state.items()}


def classifier_of(config: Any, state: Mapping[str, Tensor] | None, labels: Sequence[str]) -> Any:
    """Return the classifier for a configuration; its own random weights stay when there is no state."""
    torch = single_threaded_torch()
    from transformers import BertForSequenceClassification

    config.num_labels = len(labels)
    config.id2label = dict(enumerate(labels))
    config.label2id = {label: index for index, label in enumerate(labels)}
    config.problem_type = "single_label_classification"
    model = BertForSequenceClassification(config)
    if state is not None:
        result = model.load_state_dict(dict(state), strict=False)
        if result.missing_keys or result.unexpected_keys:
            raise ValueError(f"tensors missing: {result.missing_keys}; left over: {result.unexpected_keys}")
    model.to(torch.float32).eval().requires_grad_(False)
    return model


def load_tokenizer(path: Path, *, max_length: int | None = None) -> Tokenizer:
    """Return the tokenizer of the file without padding, cut at max_length; a typed "[SEP]" is text, not a separator.

    Without max_length it doesn't cut, as inference.encoding needs it.
    """
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(path))
    # The file bakes in padding to 128. The transformers wrapper isn't used: it changes truncation per call, which two
    # threads can't do to one tokenizer.
    tokenizer.no_padding()
    if max_length is None:
        tokenizer.no_truncation()
    else:
        tokenizer.enable_truncation(max_length)
    tokenizer.encode_special_tokens = True
    return tokenizer


def padded(sequences: Sequence[Sequence[int]], pad_token_id: int) -> tuple[Tensor, Tensor]:
    """Return token ids and attention mask of a batch, padded to its longest sequence."""
    torch = single_threaded_torch()
    longest = max(len(sequence) for sequence in sequences)
    ids = torch.full((len(sequences), longest), pad_token_id, dtype=torch.long)
    mask = torch.zeros((len(sequences), longest), dtype=torch.long)
    for row, sequence in enumerate(sequences):
        ids[row, : len(sequence)] = torch.tensor(sequence, dtype=torch.long)
        mask[row, : len(sequence)] = 1
    return ids, mask
