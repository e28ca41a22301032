"""The AWS CLI from the package index, told the endpoint by an environment variable only."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from botocore import xform_name

from tests.conftest import skip_unless_ci
from tests.foreign.conftest import Refused, Served
from tests.foreign.loop import play

#: The one that is proved; a later one may leave MTurk out.
AWS_CLI = "awscli==1.46.3"
ERROR = re.compile(r"An error occurred \((?P<code>\w+)\) when calling the \w+ operation: (?P<message>.*)")
TURK_CODE = re.compile(r'"TurkErrorCode": ?"([^"]+)"')


@pytest.fixture
def aws(tmp_path: Path) -> Path:
    """The `aws` command of a virtual environment of its own."""
    folder = tmp_path / "awscli"
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    installed = subprocess.run(
        [folder / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", AWS_CLI],
        capture_output=True,
        text=True,
        check=False,
    )
    if installed.returncode:
        skip_unless_ci(f"{AWS_CLI} can't be installed here: {installed.stderr.strip()[-300:]}")
    return folder / "bin/aws"


class AwsCli:
    """Calls `aws mturk ...` as a person at a terminal writes it."""

    def __init__(self, aws: Path, served: Served) -> None:
        self.aws = aws
        self.environment = served.environment(AWS_PAGER="", PYTHONIOENCODING="utf-8", PYTHONUTF8="1")

    def call(self, operation: str, **params: Any) -> dict[str, Any]:
        options = [word for name, value in params.items() for word in _option(name, value)]
        run = subprocess.run(
            # The CLI shows of an error its code and message; MTurk's own code is in its debug output only.
            [self.aws, "mturk", xform_name(operation, "-"), "--output", "json", "--debug", *options],
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if run.returncode == 0:
            return dict(json.loads(run.stdout or "{}"))
        error = ERROR.search(run.stderr)
        assert error, run.stderr
        turk_code = TURK_CODE.search(run.stderr)
        raise Refused(error["code"], turk_code[1] if turk_code else "", error["message"])

    def every(self, operation: str, key: str, **params: Any) -> list[dict[str, Any]]:
        # The CLI asks for all pages by itself.
        return list(self.call(operation, **params)[key])


def _option(name: str, value: object) -> list[str]:
    option = "--" + xform_name(name, "-")
    if isinstance(value, bool):
        return [option if value else option.replace("--", "--no-", 1)]
    if isinstance(value, list | dict):
        return [option, json.dumps(value)]
    return [option, str(value)]


def test_the_aws_cli_goes_through_the_loop_and_is_refused_with_a_wrong_secret(aws: Path, served: Served) -> None:
    play(AwsCli(aws, served), served)
    forger = AwsCli(aws, served)
    forger.environment["AWS_SECRET_ACCESS_KEY"] = "wrong"

    with pytest.raises(Refused) as refused:
        forger.call("GetAccountBalance")

    assert refused.value.code == "InvalidSignatureException"
