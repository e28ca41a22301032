"""`dynahit model list`: what is set, and what has answered, with hash, size, licence and labels."""

from __future__ import annotations

import json

from click.testing import Result
from flask import Flask

from app.cli.model import group
from app.extensions import db
from tests.factories import make_model_version


def run(app: Flask, *arguments: str) -> Result:
    return app.test_cli_runner().invoke(group, ["list", *arguments])


def test_a_new_instance_lists_the_models_that_are_set(app: Flask) -> None:
    shown = run(app)

    assert shown.exit_code == 0, shown.output
    assert "embedded:sentiment" in shown.output
    assert "None yet" in shown.output


def test_a_version_that_has_answered_is_listed_with_what_is_known_of_it(app: Flask) -> None:
    with app.app_context():
        make_model_version(
            db.session(),
            task_code="nli",
            model_id="a/[red]b",
            revision="0123456789abcdef0123456789abcdef01234567",
            weights_sha256="f" * 64,
            licence="mit",
            parameters=22_700_000,
            seed=None,
            label_map={"CONTRADICTION": "contradiction"},
        )
        db.session.commit()

    listed = json.loads(run(app, "--json").output)
    shown = run(app).output

    (version,) = listed["versions"]
    assert version["weights_sha256"] == "f" * 64
    assert version["parameters"] == 22_700_000
    assert version["label_map"] == {"CONTRADICTION": "contradiction"}
    assert listed["models"]["sentiment"] == "embedded:sentiment"
    assert "22.7 M" in shown
    assert "a/[red]b" in shown
