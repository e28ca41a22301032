"""Folders as a hub would serve them: tiny random models of several architectures, made in code and saved."""

from __future__ import annotations

import json
import string
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
WORDS = ("the", "food", "was", "good", "bad", "not", "very", "room", "and", "but", "it", "staff", "loud", "cold")
SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "initializer_range": 0.3,
}
BERT_LIKE = {"bert": "BertTokenizer", "electra": "ElectraTokenizer", "distilbert": "DistilBertTokenizer"}
ARCHITECTURES = ("bert", "electra", "distilbert", "mpnet", "roberta", "deberta-v2")


def save_model(
    folder: Path,
    architecture: str,
    labels: Sequence[str] | None,
    *,
    card: Mapping[str, Any] | None = None,
    seed: int = 0,
    words: Sequence[str] = WORDS,
    **sizes: Any,
) -> Path:
    """Save a random classifier with these label names, or a reader of passages without any; return the folder.

    ``words`` are those that its tokenizer knows whole, ``sizes`` change the configuration.
    """
    import torch
    from transformers import AutoConfig, AutoModelForQuestionAnswering, AutoModelForSequenceClassification

    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = _save_tokenizer(folder, architecture, words)
    more: dict[str, Any] = dict(SIZES)
    if architecture == "distilbert":
        more = {"dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 64, "initializer_range": 0.3}
    if architecture == "electra":
        more["embedding_size"] = 16
    if architecture == "deberta-v2":
        more |= {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "type_vocab_size": 0}
    if architecture == "roberta":
        more["type_vocab_size"] = 1
    more |= sizes
    positions = 66 if architecture in ("roberta", "mpnet") else 64
    config = AutoConfig.for_model(
        architecture,
        vocab_size=len(vocabulary),
        max_position_embeddings=positions,
        pad_token_id=vocabulary["<pad>" if architecture in ("roberta", "mpnet") else "[PAD]"],
        **more,
    )
    if labels is not None:
        config.id2label = dict(enumerate(labels))
        config.label2id = {label: index for index, label in enumerate(labels)}
    kind = AutoModelForSequenceClassification if labels is not None else AutoModelForQuestionAnswering
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = kind.from_config(config)
    model.save_pretrained(folder)
    if card is not None:
        lines = "\n".join(f"{name}: {json.dumps(value)}" for name, value in card.items())
        (folder / "README.md").write_text(f"---\n{lines}\n---\n# A model\n", encoding="utf-8")
    return folder


def _save_tokenizer(folder: Path, architecture: str, words: Sequence[str]) -> dict[str, int]:
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    if architecture == "roberta":
        pieces = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
        vocabulary = {piece: index for index, piece in enumerate(pieces)}
        tokenizer = Tokenizer(models.BPE(vocabulary, [], unk_token="<unk>"))
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
        described = {"tokenizer_class": "RobertaTokenizer", "pad_token": "<pad>", "unk_token": "<unk>"}
    else:
        special = SPECIAL
        if architecture == "mpnet":
            special = ("<s>", "<pad>", "</s>", "[UNK]", "<mask>")
        first, last = (special[0], special[2]) if architecture == "mpnet" else ("[CLS]", "[SEP]")
        pieces = [*special, *words, *string.ascii_lowercase, *string.digits, *string.punctuation]
        pieces += [f"##{letter}" for letter in string.ascii_lowercase + string.digits]
        vocabulary = {piece: index for index, piece in enumerate(dict.fromkeys(pieces))}
        tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))
        tokenizer.normalizer = normalizers.BertNormalizer()
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        if architecture == "mpnet":
            tokenizer.post_processor = processors.RobertaProcessing((last, 2), (first, 0))
        else:
            tokenizer.post_processor = processors.BertProcessing((last, vocabulary[last]), (first, vocabulary[first]))
        described = {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "pad_token": special[1 if architecture == "mpnet" else 0],
        }
        described["unk_token"] = "[UNK]"
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({**described, "model_max_length": 64}), encoding="utf-8")
    return vocabulary
