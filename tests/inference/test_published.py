"""Models from elsewhere: read as the library reads them, labels by name, and nothing unsafe is loaded."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from inference.base_weights import file_sha256
from inference.bert import LoadedModel
from inference.classify import Classifier
from inference.errors import LabelsUnknown, ModelUnusable
from inference.explain import STEPS
from inference.methods import METHODS
from inference.published import load_published, weights_sha256
from inference.read_span import SpanReader
from tests.inference.published import ARCHITECTURES, save_model

torch = pytest.importorskip("torch")

NLI = ("entailment", "neutral", "contradiction")
PAIR = ("the food was good", "the staff was cold, but it was not loud")
LONG_PAIR = ("the room was very loud and " * 12, "the staff was cold")
PASSAGE = "The room was loud. The food was cold and the staff was not good. " * 6
QUESTION = "was the staff good?"


def load(folder: Path, labels: tuple[str, ...] = NLI, stated: tuple[str, ...] = ()) -> LoadedModel:
    return load_published(folder, labels, source="dir:/models/x", model_id="x", stated_labels=stated)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier and a reader of each architecture."""
    root = tmp_path_factory.mktemp("models")
    for architecture in ARCHITECTURES:
        save_model(root / architecture, architecture, ("contradiction", "entailment", "neutral"))
        save_model(root / f"{architecture}-reader", architecture, None)
    return root


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_pair_is_answered_as_the_librarys_own_tokenizer_and_model_answer_it(folders: Path, architecture: str) -> None:
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    folder = str(folders / architecture)
    own = AutoModelForSequenceClassification.from_pretrained(folder, local_files_only=True).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    types = architecture in ("bert", "electra")
    encoded = tokenizer(*PAIR, return_tensors="pt", return_token_type_ids=types)
    with torch.no_grad():
        expected = own(**encoded).logits.softmax(-1)[0].tolist()

    prediction = Classifier(load(folders / architecture), NLI, ("premise", "hypothesis")).predict(*PAIR)

    by_name = dict(zip(("contradiction", "entailment", "neutral"), expected, strict=True))
    assert dict(prediction.probabilities) == pytest.approx(by_name, abs=1e-5)
    assert list(prediction.probabilities) == list(NLI)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_in_a_batch_with_longer_ones_a_pair_gets_the_same_numbers(folders: Path, architecture: str) -> None:
    classifier = Classifier(load(folders / architecture), NLI, ("premise", "hypothesis"))
    inputs = [PAIR, ("the food", "good"), LONG_PAIR, (PAIR[0] + " " + PAIR[1], "it was not good")]

    for item, together in zip(inputs, classifier.predict_all(inputs), strict=True):
        assert dict(together.probabilities) == pytest.approx(dict(classifier.predict(*item).probabilities), abs=1e-5)
    assert classifier.predict(*LONG_PAIR).truncated
    assert len(classifier.encode(LONG_PAIR).ids) == classifier.loaded.max_length == 64


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_embeddings_put_in_directly_give_the_same_score_as_the_words(folders: Path, architecture: str) -> None:
    """Explanations go in through the embeddings: positions and types must be those of a plain prediction."""
    classifier = Classifier(load(folders / architecture), NLI, ("premise", "hypothesis"))
    score = classifier.score(PAIR, "neutral")
    logits = classifier.loaded.forward([score.sequence]).logits[0]

    with torch.no_grad():
        assert float(score.values(score.inputs)[0]) == pytest.approx(
            float(logits[classifier.loaded.labels.index("neutral")]), abs=1e-4
        )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_architecture_is_explained_by_every_method(folders: Path, architecture: str, method: str) -> None:
    classifier = Classifier(load(folders / architecture), NLI, ("premise", "hypothesis"))

    attribution = classifier.explain(PAIR, "neutral", method)

    for field, text in zip(("premise", "hypothesis"), PAIR, strict=True):
        mine = [word for word in attribution.words if word.field == field]
        assert all(text[word.start : word.end] == word.text for word in mine)
        assert "".join(word.text for word in mine) == text.replace(" ", "")
    assert any(abs(word.score) > 1e-3 for word in attribution.words)
    if method == METHODS[0]:
        assert attribution.steps in STEPS
        total = sum(word.score for word in attribution.words)
        score = classifier.score(PAIR, "neutral")
        with torch.no_grad():
            change = float(score.values(score.inputs)[0] - score.values(score.baseline)[0])
        assert total - change == pytest.approx(attribution.convergence_delta, abs=1e-3)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_architecture_reads_passages_and_is_explained(folders: Path, architecture: str) -> None:
    reader = SpanReader(load(folders / f"{architecture}-reader", ()))
    assert len(reader.windows((PASSAGE, QUESTION))) > 1

    prediction = reader.predict(PASSAGE, QUESTION)

    assert prediction.span is not None
    assert PASSAGE[prediction.span.start : prediction.span.end] == prediction.span.text
    attribution = reader.explain((PASSAGE, QUESTION), f"{prediction.span.start}-{prediction.span.end}")
    assert {word.field for word in attribution.words} == {"passage", "question"}


def test_only_models_with_token_types_get_them(folders: Path) -> None:
    types = {name: load(folders / name).takes_type_ids for name in ARCHITECTURES}

    assert types == {
        "bert": True,
        "electra": True,
        "distilbert": False,
        "mpnet": False,
        "roberta": False,
        "deberta-v2": False,
    }
    assert load(folders / "roberta").pad_token_id == 1


def test_the_card_tells_hash_size_licence_and_whose_label_is_whose(tmp_path: Path) -> None:
    folder = save_model(tmp_path / "m", "bert", ("CONTRADICTION", "NEUTRAL", "ENTAILMENT"), card={"license": "mit"})

    loaded = load(folder)

    card = loaded.described()
    assert card.weights_sha256 == file_sha256(folder / "model.safetensors")
    assert card.revision == loaded.revision == str(card.weights_sha256)[:16]
    assert card.licence == "mit"
    assert card.parameters == sum(parameter.numel() for parameter in loaded.model.parameters())
    assert card.label_map == {"CONTRADICTION": "contradiction", "NEUTRAL": "neutral", "ENTAILMENT": "entailment"}
    assert loaded.labels == ("contradiction", "neutral", "entailment")


@pytest.mark.parametrize("readme", [None, "no header", "---\nlicense: [mit, apache-2.0]\n---\n", "---\n: : :\n---\n"])
def test_a_licence_that_is_not_stated_stays_unknown(tmp_path: Path, readme: str | None) -> None:
    folder = save_model(tmp_path / "m", "bert", NLI)
    if readme is not None:
        (folder / "README.md").write_text(readme, encoding="utf-8")

    assert load(folder).described().licence == ("mit, apache-2.0" if readme and "mit" in readme else None)


def test_the_hash_over_several_files_changes_with_each_of_them(tmp_path: Path) -> None:
    files = [tmp_path / f"model-0000{number}-of-00002.safetensors" for number in (1, 2)]
    for number, file in enumerate(files):
        file.write_bytes(bytes([number]) * 10)
    before = weights_sha256(files)
    listed = "\n".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}" for file in files)

    assert before == hashlib.sha256(listed.encode()).hexdigest() == weights_sha256(files[::-1])
    files[1].write_bytes(b"other bytes")
    assert weights_sha256(files) != before


def test_unnamed_labels_are_refused_with_the_list_and_taken_when_somebody_states_them(tmp_path: Path) -> None:
    folder = save_model(tmp_path / "m", "bert", ("LABEL_0", "LABEL_1", "LABEL_2"))

    with pytest.raises(LabelsUnknown, match=r"LABEL_0.*LABEL_2.*\?labels=entailment,neutral,contradiction"):
        load(folder)
    assert load(folder, stated=("neutral", "contradiction", "entailment")).labels == (
        "neutral",
        "contradiction",
        "entailment",
    )


def test_weights_in_another_form_than_safetensors_are_never_opened(tmp_path: Path) -> None:
    folder = save_model(tmp_path / "m", "bert", NLI)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")

    with pytest.raises(ModelUnusable, match=r"pytorch_model\.bin.*can run code"):
        load(folder)


def test_code_in_the_folder_is_not_run(tmp_path: Path) -> None:
    folder = save_model(tmp_path / "m", "bert", NLI)
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "unheard-of", "auto_map": {"AutoConfig": "evil.Config", "AutoModel": "evil.Model"}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "evil.py").write_text(f"import pathlib\npathlib.Path({str(tmp_path / 'ran')!r}).touch()\n")

    with pytest.raises(ModelUnusable):
        load(folder)
    assert not (tmp_path / "ran").exists()


def test_a_base_model_without_a_trained_head_is_refused_since_it_would_guess(tmp_path: Path) -> None:
    from transformers import AutoModel

    folder = save_model(tmp_path / "m", "bert", NLI)
    AutoModel.from_pretrained(folder).save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"id2label": dict(enumerate(NLI))}))

    with pytest.raises(ModelUnusable, match="would guess"):
        load(folder)


def test_a_classifier_is_no_reader_of_passages(folders: Path) -> None:
    with pytest.raises(ModelUnusable, match="qa_outputs"):
        load(folders / "bert", ())


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("config.json", None, r"config\.json"),
        ("config.json", "[]", r"config\.json"),
        ("config.json", "{", r"config\.json"),
        ("model.safetensors", "not weights", "can't load it"),
        ("tokenizer.json", "{}", "tokenizer"),
    ],
)
def test_a_damaged_folder_is_a_message_with_a_next_step(
    tmp_path: Path, name: str, content: str | None, said: str
) -> None:
    folder = save_model(tmp_path / "m", "bert", NLI)
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_text(content)

    with pytest.raises(ModelUnusable, match=said) as caught:
        load(folder)
    assert "dir:/models/x" in str(caught.value)
    assert str(caught.value).count("\n") == 0


def test_weights_with_a_number_that_is_none_are_refused(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = save_model(tmp_path / "m", "bert", NLI)
    state = load_file(folder / "model.safetensors")
    state["classifier.weight"][0, 0] = float("nan")
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})

    with pytest.raises(ModelUnusable, match="not finite"):
        load(folder)
