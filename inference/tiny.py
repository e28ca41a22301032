"""A seeded random two-layer model with a tokenizer made in code: the real machinery in milliseconds, for tests."""

from __future__ import annotations

import string
from collections.abc import Sequence
from dataclasses import replace

from inference.bert import LoadedModel, classifier_of
from inference.runtime import single_threaded_torch

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
WORDS = ("the", "food", "was", "good", "bad", "not", "very", "room", "and", "but", "i", "it", "staff", "loud", "cold")
LABELS = ("negative", "positive", "neutral")


def tiny_model(
    labels: Sequence[str] = LABELS, *, seed: int = 0, max_length: int = 64, spread: float = 0.3
) -> LoadedModel:
    """Return a random classifier of 2 layers and 32 dimensions; the same seed gives the same model.

    The vocabulary is WORDS, the Latin letters and digits, and ASCII punctuation; the rest becomes [UNK]. ``spread`` is
    the deviation of the random weights; large values make confident answers.
    """
    return _tiny(labels, seed=seed, max_length=max_length, spread=spread)


def tiny_reader(*, seed: int = 0, max_length: int = 64, stride: int = 16, spread: float = 0.3) -> LoadedModel:
    """Return a random reader of passages of the same size and vocabulary."""
    return replace(_tiny((), seed=seed, max_length=max_length, spread=spread), head="span", stride=stride)


def _tiny(labels: Sequence[str], *, seed: int, max_length: int, spread: float) -> LoadedModel:
    torch = single_threaded_torch()
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertForQuestionAnswering

    pieces = [*SPECIAL, *WORDS]
    pieces += [letter for letter in string.ascii_lowercase + string.digits if letter not in WORDS]
    pieces += [f"##{letter}" for letter in string.ascii_lowercase + string.digits]
    pieces += list(string.punctuation)
    vocabulary = {piece: index for index, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))  # noqa: S106
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", vocabulary["[SEP]"]), ("[CLS]", vocabulary["[CLS]"]))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        config = BertConfig(
            vocab_size=len(vocabulary),
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=64,
            max_position_embeddings=512,
            initializer_range=spread,
            pad_token_id=vocabulary["[PAD]"],
        )
        model = classifier_of(config, None, labels) if labels else BertForQuestionAnswering(config)
        model.eval().requires_grad_(False)
    return LoadedModel(
        model_id="dynahit/tiny",
        revision=f"seed-{seed}",
        labels=tuple(labels),
        model=model,
        tokenizer=tokenizer,
        max_length=max_length,
        pad_token_id=vocabulary["[PAD]"],
    )
