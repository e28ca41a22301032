"""A second way through a model's own weights for explanations: it stops at checkpoints, maybe in half precision.

The twin shares its tensors with the model that predicts and is a module tree of its own, so that nothing done to it
(hooks, replaced layers) can reach a prediction. Importing this module imports torch.
"""

from __future__ import annotations

import copy
from functools import cache
from pathlib import Path
from typing import Any

from inference.right_of_way import pass_checkpoint
from inference.runtime import single_threaded_torch

single_threaded_torch()
import torch  # noqa: E402 - the thread settings must stand before it is imported

HALF_FLAGS = frozenset({"avx512_bf16", "amx_bf16", "bf16"})
"""Processor flags (x86 and ARM) without which bfloat16 is slower than single precision."""
HEADS = ("pooler", "classifier", "pre_classifier", "qa_outputs")


@cache
def half_is_fast(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Tell whether this processor multiplies bfloat16 matrices itself."""
    try:
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return False
    flags = next((line for line in lines if line.lower().startswith(("flags", "features"))), "")
    return not HALF_FLAGS.isdisjoint(flags.partition(":")[2].split())


def twin_of(model: torch.nn.Module, *, half: bool) -> torch.nn.Module:
    """Return the twin of a frozen model in evaluation mode; with ``half`` the encoder's products are in bfloat16.

    Attention, normalisation and the head stay in single precision.
    """
    shared: dict[int, Any] = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    twin = copy.deepcopy(model, shared)
    layers = [(name, layer) for name, layer in twin.named_modules() if type(layer) is torch.nn.Linear]
    for name, layer in layers:
        in_head = not set(HEADS).isdisjoint(name.split("."))
        dtype = torch.bfloat16 if half and not in_head else torch.float32
        parent, _, last = name.rpartition(".")
        setattr(twin.get_submodule(parent), last, _PassingLinear(layer, dtype))
    return twin


class _PassingLinear(torch.nn.Module):
    """A linear layer that passes a checkpoint on its way forward and back."""

    def __init__(self, layer: torch.nn.Linear, dtype: torch.dtype) -> None:
        super().__init__()
        self.in_features, self.out_features = layer.in_features, layer.out_features
        self.weight: torch.Tensor
        self.bias: torch.Tensor | None
        self.register_buffer("weight", layer.weight.detach().to(dtype))
        self.register_buffer("bias", None if layer.bias is None else layer.bias.detach().to(dtype))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return product(inputs, self.weight, self.bias)


def product(inputs: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """Return inputs times frozen weights in single precision, computed in the weights'; passes a checkpoint."""
    result: torch.Tensor = _PassingProduct.apply(inputs, weight, bias)  # type: ignore[no-untyped-call]
    return result


class _PassingProduct(torch.autograd.Function):
    """Inputs times frozen weights; only the inputs get a gradient, and both ways are in the weights' precision."""

    @staticmethod
    def forward(ctx: Any, inputs: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        pass_checkpoint()
        ctx.save_for_backward(weight)
        return torch.nn.functional.linear(inputs.to(weight.dtype), weight, bias).float()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        pass_checkpoint()
        (weight,) = ctx.saved_tensors
        return (gradient.to(weight.dtype) @ weight).float(), None, None
