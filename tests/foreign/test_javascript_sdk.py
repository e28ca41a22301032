"""@aws-sdk/client-mturk from the package index in Node.js, told the endpoint by an environment variable only."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import skip_unless_ci
from tests.foreign.conftest import Refused, Served
from tests.foreign.loop import play

#: The one that is proved; a later one may leave MTurk out.
SDK = "@aws-sdk/client-mturk@3.1015.0"
CALL = Path(__file__).with_name("call.mjs")


@pytest.fixture
def sdk(tmp_path: Path) -> Path:
    """A folder with the SDK in its node_modules."""
    if not shutil.which("node") or not shutil.which("npm"):
        skip_unless_ci("node and npm are not installed")
    folder = tmp_path / "client-mturk"
    folder.mkdir()
    installed = subprocess.run(
        ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", SDK],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if installed.returncode:
        skip_unless_ci(f"{SDK} can't be installed here: {installed.stderr.strip()[-300:]}")
    return folder


class JavaScriptSdk:
    """Speaks to one Node.js process that calls the SDK."""

    def __init__(self, node: subprocess.Popen[str]) -> None:
        self.node = node

    def call(self, operation: str, **params: Any) -> dict[str, Any]:
        return self._ask({"operation": operation, "params": params})

    def every(self, operation: str, key: str, **params: Any) -> list[dict[str, Any]]:
        return list(self._ask({"operation": operation, "params": params, "every": key})["rows"])

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self.node.stdin is not None
        assert self.node.stdout is not None
        self.node.stdin.write(json.dumps(request) + "\n")
        self.node.stdin.flush()
        said = json.loads(self.node.stdout.readline())
        if "error" in said:
            raise Refused(**said["error"])
        return dict(said["result"])


@contextmanager
def speaking(sdk: Path, served: Served, **changes: str) -> Iterator[JavaScriptSdk]:
    with subprocess.Popen(
        ["node", CALL],
        env=served.environment(SDK_FOLDER=str(sdk), **changes),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    ) as node:
        try:
            yield JavaScriptSdk(node)
        finally:
            assert node.stdin is not None
            node.stdin.close()
            node.wait(timeout=30)


def test_the_javascript_sdk_goes_through_the_loop_and_is_refused_with_a_wrong_secret(sdk: Path, served: Served) -> None:
    with speaking(sdk, served) as client:
        play(client, served)
    with (
        speaking(sdk, served, AWS_SECRET_ACCESS_KEY="wrong") as forger,
        pytest.raises(Refused) as refused,
    ):
        forger.call("GetAccountBalance")

    assert refused.value.code == "InvalidSignatureException"
