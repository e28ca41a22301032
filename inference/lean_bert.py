"""BERT's forward pass with nothing but what an answer needs: the fast way through the weights of BERT models.

Queries, keys and values are one product, and a classifier's last layer is computed for the first position only, the one
that its head reads. Importing this module imports torch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from inference.runtime import single_threaded_torch
from inference.twin import product

single_threaded_torch()
import torch  # noqa: E402 - the thread settings must stand before it is imported
from torch.nn.functional import gelu, layer_norm, scaled_dot_product_attention  # noqa: E402

TOLERANCE = 1e-3
"""How far the output may be from the model's own, in logits, before this way is not used."""


Product = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
"""Inputs times weights plus bias."""


@dataclass(frozen=True)
class _Affine:
    weight: torch.Tensor
    bias: torch.Tensor
    times: Product

    @classmethod
    def of(cls, *layers: torch.nn.Linear, dtype: torch.dtype, times: Product) -> _Affine:
        weight = (
            torch.cat([layer.weight.detach() for layer in layers]) if len(layers) > 1 else layers[0].weight.detach()
        )
        bias = torch.cat([layer.bias.detach() for layer in layers]) if len(layers) > 1 else layers[0].bias.detach()
        return cls(weight.to(dtype), bias.to(dtype), times)

    def __call__(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.times(inputs, self.weight, self.bias)


@dataclass(frozen=True)
class _Norm:
    weight: torch.Tensor
    bias: torch.Tensor
    eps: float

    @classmethod
    def of(cls, layer: torch.nn.LayerNorm) -> _Norm:
        return cls(layer.weight.detach(), layer.bias.detach(), layer.eps)

    def __call__(self, inputs: torch.Tensor) -> torch.Tensor:
        return layer_norm(inputs, self.weight.shape, self.weight, self.bias, self.eps)


@dataclass(frozen=True)
class _Layer:
    queries: _Affine
    keys_and_values: _Affine
    attended: _Affine
    attended_norm: _Norm
    wide: _Affine
    narrow: _Affine
    output_norm: _Norm
    heads: int

    def __call__(self, states: torch.Tensor, seen: torch.Tensor | None, *, first_only: bool) -> torch.Tensor:
        """Return the layer's output of shape (rows, positions, dimensions), or (rows, 1, dimensions)."""
        asking = states[:, :1] if first_only else states
        queries = self._by_head(self.queries(asking))
        keys, values = (self._by_head(half) for half in self.keys_and_values(states).chunk(2, dim=-1))
        attention = scaled_dot_product_attention(queries, keys, values, attn_mask=seen)
        attention = attention.transpose(1, 2).reshape(asking.shape)
        middle = self.attended_norm(self.attended(attention) + asking)
        return self.output_norm(self.narrow(gelu(self.wide(middle))) + middle)

    def _by_head(self, states: torch.Tensor) -> torch.Tensor:
        rows, positions, dimensions = states.shape
        return states.view(rows, positions, self.heads, dimensions // self.heads).transpose(1, 2)


@dataclass(frozen=True)
class LeanOutput:
    """As much of the library's output as a score is picked from."""

    logits: torch.Tensor | None = None
    start_logits: torch.Tensor | None = None
    end_logits: torch.Tensor | None = None


class LeanBert:
    """Called as the model is, with embeddings; without a mask all rows are full sequences."""

    def __init__(self, model: torch.nn.Module, *, half: bool, times: Product = product) -> None:
        body: Any = model.bert
        config: Any = model.config
        dtype = torch.bfloat16 if half else torch.float32
        self._positions = body.embeddings.position_embeddings.weight.detach()
        self._types = body.embeddings.token_type_embeddings.weight.detach()
        self._norm = _Norm.of(body.embeddings.LayerNorm)
        self._layers = [
            _Layer(
                queries=_Affine.of(layer.attention.self.query, dtype=dtype, times=times),
                keys_and_values=_Affine.of(
                    layer.attention.self.key, layer.attention.self.value, dtype=dtype, times=times
                ),
                attended=_Affine.of(layer.attention.output.dense, dtype=dtype, times=times),
                attended_norm=_Norm.of(layer.attention.output.LayerNorm),
                wide=_Affine.of(layer.intermediate.dense, dtype=dtype, times=times),
                narrow=_Affine.of(layer.output.dense, dtype=dtype, times=times),
                output_norm=_Norm.of(layer.output.LayerNorm),
                heads=config.num_attention_heads,
            )
            for layer in body.encoder.layer
        ]
        single = torch.float32
        self._classifies = hasattr(model, "classifier")
        self._pooler = _Affine.of(body.pooler.dense, dtype=single, times=times) if self._classifies else None
        head: Any = model.classifier if self._classifies else model.qa_outputs
        self._head = _Affine.of(head, dtype=single, times=times)

    def __call__(
        self, *, inputs_embeds: torch.Tensor, token_type_ids: torch.Tensor, attention_mask: torch.Tensor | None = None
    ) -> LeanOutput:
        """Return the model's logits for rows of embeddings of shape (rows, positions, dimensions)."""
        states = self._norm(inputs_embeds + self._positions[: inputs_embeds.shape[1]] + self._types[token_type_ids])
        seen = None if attention_mask is None else attention_mask[:, None, None, :].bool()
        for number, layer in enumerate(self._layers, start=1):
            states = layer(states, seen, first_only=self._classifies and number == len(self._layers))
        if self._pooler is not None:
            return LeanOutput(logits=self._head(torch.tanh(self._pooler(states[:, 0]))))
        starts, ends = self._head(states).unbind(-1)
        return LeanOutput(start_logits=starts, end_logits=ends)


def lean_bert_of(model: torch.nn.Module, *, half: bool, times: Product = product) -> LeanBert | None:
    """Return the fast way through a model, or None when it is no plain BERT, seen by its class and by its answers.

    ``times`` multiplies; the usual one passes an explanation's checkpoints.
    """
    from transformers import BertForQuestionAnswering, BertForSequenceClassification

    if type(model) not in (BertForSequenceClassification, BertForQuestionAnswering):
        return None
    config: Any = model.config
    if config.hidden_act != "gelu" or config.type_vocab_size < 2 or getattr(config, "is_decoder", False):
        return None
    single = LeanBert(model, half=False, times=times)
    generator = torch.Generator().manual_seed(0)
    positions = min(7, config.max_position_embeddings)
    inputs = torch.randn(2, positions, config.hidden_size, generator=generator) * config.initializer_range
    types = torch.arange(positions).remainder(2).expand(2, -1)
    with torch.inference_mode():
        own = model(inputs_embeds=inputs, token_type_ids=types)
        lean = single(inputs_embeds=inputs, token_type_ids=types)
    names = ("logits",) if lean.logits is not None else ("start_logits", "end_logits")
    if any(float((getattr(own, name) - getattr(lean, name)).abs().max()) > TOLERANCE for name in names):
        return None
    return LeanBert(model, half=True, times=times) if half else single
