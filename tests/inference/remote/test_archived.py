"""An archive carries all that serves the model: it is unpacked elsewhere and asked with no other code in reach."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from hits.errors import InvalidInput
from hits.tasks import task
from inference.errors import EngineRefused
from inference.loading import load_model
from inference.remote.archived import code_files, files_of, load_archived, write_archive
from tests.inference.published import save_model

SPEC = task("sentiment")

ASK = """
import sys
sys.path = [sys.argv[1]] + [entry for entry in sys.path if "site-packages" in entry or "/lib/python" in entry]
import json
from types import SimpleNamespace
from handler import Handler
import inference, hits
assert inference.__file__.startswith(sys.argv[1]) and hits.__file__.startswith(sys.argv[1])
handler = Handler()
handler.initialize(SimpleNamespace(system_properties={"model_dir": sys.argv[1]}))
asked = [{"inputs": [["the food was good"]]}, json.dumps({"describe": True}).encode(), b"{"]
print(json.dumps(handler.handle([{"body": body} for body in asked], None)))
"""


@pytest.fixture
def published(tmp_path: Path) -> Path:
    return save_model(tmp_path / "model", "bert", ["neutral", "NEGATIVE", "positive"])


def test_what_is_unpacked_elsewhere_answers_as_the_model_here(published: Path, tmp_path: Path) -> None:
    path = write_archive(SPEC, files_of(SPEC, f"dir:{published}"), tmp_path / "store", name="mine")
    elsewhere = tmp_path / "unpacked"
    zipfile.ZipFile(path).extractall(elsewhere)

    run = subprocess.run(
        [sys.executable, "-I", "-c", ASK, str(elsewhere)], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert run.returncode == 0, run.stderr
    predicted, described, refused = json.loads(run.stdout)
    here = load_model(SPEC, f"dir:{published}")
    (expected,) = here.predict_all([("the food was good",)])
    assert predicted["predictions"][0]["probabilities"] == pytest.approx(dict(expected.probabilities), abs=1e-6)
    assert (described["card"]["model_id"], described["card"]["revision"]) == (here.model_id, here.revision)
    assert refused["error"]["kind"] == "malformed"


def test_the_same_model_gives_the_same_archive(published: Path, tmp_path: Path) -> None:
    files = files_of(SPEC, f"dir:{published}")

    one = write_archive(SPEC, files, tmp_path / "a", name="m").read_bytes()
    assert write_archive(SPEC, files, tmp_path / "b", name="m").read_bytes() == one
    manifest = json.loads(zipfile.ZipFile(tmp_path / "a/m.mar").read("MAR-INF/MANIFEST.json"))
    assert manifest["model"] == {"modelName": "m", "handler": "handler.py", "modelVersion": "1.0"}


def test_no_code_beyond_the_models_goes_along() -> None:
    tops = {path.relative_to(Path(__file__).resolve().parents[3]).parts[:2] for path in code_files()}

    assert {top for top, *_ in tops} == {"hits", "inference"}
    assert ("hits", "marketplace") not in tops
    assert ("hits", "models") not in tops


@pytest.mark.parametrize("name", ["", "a b", "../x", "é/x"])
def test_a_name_that_is_none_is_refused(published: Path, tmp_path: Path, name: str) -> None:
    with pytest.raises(EngineRefused, match="letters, digits"):
        write_archive(SPEC, files_of(SPEC, f"dir:{published}"), tmp_path, name=name)


def test_missing_files_are_named(published: Path, tmp_path: Path) -> None:
    files = files_of(SPEC, f"dir:{published}")
    (published / "config.json").unlink()

    with pytest.raises(EngineRefused, match=r"lacks config\.json"):
        write_archive(SPEC, files, tmp_path, name="m")


@pytest.mark.parametrize("reference", ["ensemble:mean(embedded:sentiment, dir:/x)", "served:sentiment", "embedded:nli"])
def test_what_is_no_single_model_of_the_task_is_refused(reference: str) -> None:
    with pytest.raises(InvalidInput):
        files_of(SPEC, reference)


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"task": "x", "packages": []}'])
def test_a_damaged_description_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "dynahit-model.json").write_text(content)

    with pytest.raises(EngineRefused, match="can't be read"):
        load_archived(tmp_path)
