"""The documents keep up with the code: every setting, command and sample is described and works."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from pydantic_settings import BaseSettings

from app.cli import COMMANDS
from app.marketplace.settings import Settings as MarketplaceSettings
from app.settings import Settings
from hits.contexts import read_contexts
from hits.tasks import task
from tests.conftest import FOR_TESTS

ROOT = Path(__file__).resolve().parent.parent
CONFIGURATION = (ROOT / "docs/configuration.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")


def rows() -> dict[str, tuple[str, str]]:
    """The tables' rows: variable -> (default, meaning)."""
    found = re.findall(r"^\| `([A-Z_]+)` \| ([^|]*) \| ([^|]*) \|$", CONFIGURATION, flags=re.MULTILINE)
    return {name: (default.strip(), meaning.strip()) for name, default, meaning in found}


def variables(settings: type[BaseSettings]) -> dict[str, str]:
    """The settings' variables with their defaults as the document writes them."""
    prefix = settings.model_config["env_prefix"]
    return {
        f"{prefix}{name.upper()}": "required" if field.is_required() else written(field.default)
        for name, field in settings.model_fields.items()
    }


def written(default: object) -> str:
    return "none" if default in (None, "", ()) else f"`{default}`"


@pytest.mark.parametrize("settings", [Settings, MarketplaceSettings])
def test_every_setting_is_described_with_its_default(settings: type[BaseSettings]) -> None:
    described = rows()

    assert {name: described.get(name, ("missing", ""))[0] for name in variables(settings)} == variables(settings)


def test_the_description_of_a_setting_is_the_one_in_the_code() -> None:
    described = rows()

    for name, field in Settings.model_fields.items():
        assert described[f"DYNAHIT_{name.upper()}"][1] == field.description, name


def test_no_setting_is_described_that_does_not_exist() -> None:
    real = {*variables(Settings), *variables(MarketplaceSettings)}
    of_the_launcher = {"DYNAHIT_HOME", "DYNAHIT_PORT", "MARKETPLACE_PORT", *FOR_TESTS}
    of_make = {"TORCH_INDEX", "TORCH", "PYTHON", "VENV"}

    assert set(rows()) - real == of_the_launcher | of_make


def test_the_readme_names_every_command() -> None:
    assert [name for name in COMMANDS if f"dynahit {name}" not in README] == []


def test_every_local_link_leads_somewhere() -> None:
    for document in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))):
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", document.read_text(encoding="utf-8")):
            if "://" not in target and not target.startswith("mailto:"):
                assert (document.parent / target).exists(), f"{document.name}: {target}"


def test_the_sample_prompts_are_enough_for_the_sample_batch_and_one_is_long() -> None:
    path = ROOT / "docs/examples/prompts.jsonl"

    contexts = read_contexts(path, task("sentiment"))

    assert len(contexts) >= 24
    assert max(len(context["prompt"].split()) for context in contexts) >= 300
    assert len(path.read_text(encoding="utf-8").splitlines()) == len(contexts)
    assert all(json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
