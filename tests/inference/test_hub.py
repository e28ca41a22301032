"""Fetching published models: one commit, known files only, offline when told; a local server stands in for the hub."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from inference.errors import ModelUnusable
from inference.hub import fetch
from inference.references import HubReference
from tests.inference.published import save_model

COMMIT = "0123456789abcdef0123456789abcdef01234567"
PINNED = HubReference("owner/tiny", COMMIT)
TAGGED = HubReference("owner/tiny", "v1.0")


@dataclass
class Asked:
    """What a fetch was asked for: offline or not, each time."""

    answers: dict[bool, Path | Exception]
    asked: list[bool] = field(default_factory=list)

    def __call__(self, reference: HubReference, offline: bool) -> Path:
        self.asked.append(offline)
        answer = self.answers[offline]
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / COMMIT
    found.mkdir()
    (found / "model.safetensors").touch()
    return found


def test_a_commit_that_is_in_the_cache_needs_no_hub(folder: Path) -> None:
    get = Asked({True: folder, False: OSError("no network")})

    assert fetch(PINNED, get=get).commit == COMMIT
    assert get.asked == [True]


def test_a_tag_is_resolved_by_the_hub_and_without_it_the_caches_stands(folder: Path) -> None:
    get = Asked({True: folder, False: OSError("no network")})

    assert fetch(TAGGED, get=get).commit == COMMIT
    assert get.asked == [False, True]


def test_with_local_files_only_the_hub_is_never_asked(folder: Path) -> None:
    get = Asked({True: OSError("not there")})

    with pytest.raises(ModelUnusable, match=r"hf download owner/tiny --revision v1\.0"):
        fetch(TAGGED, local_files_only=True, get=get)
    assert get.asked == [True]


def test_what_was_tried_is_told(tmp_path: Path) -> None:
    empty = tmp_path / COMMIT
    empty.mkdir()
    get = Asked({True: empty, False: OSError("404 not found\nsecond line")})

    with pytest.raises(ModelUnusable) as caught:
        fetch(PINNED, get=get)

    said = str(caught.value)
    assert "cache: incomplete" in said
    assert "404 not found" in said
    assert "\n" not in said


class Hub(ThreadingHTTPServer):
    """Serves one repository at one commit by the hub's own addresses, and notes what was asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.asked: list[str] = []
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Hub

    def log_message(self, format: str, *arguments: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def _answer(self, *, with_body: bool) -> None:
        path = unquote(urlsplit(self.path).path)
        self.server.asked.append(path)
        if path.startswith("/api/models/owner/tiny"):
            files = sorted(one.name for one in self.server.folder.iterdir())
            body = json.dumps(
                {"id": "owner/tiny", "sha": COMMIT, "siblings": [{"rfilename": name} for name in files]}
            ).encode()
            if "/tree/" in path:
                body = json.dumps(
                    [
                        {
                            "type": "file",
                            "path": name,
                            "size": (self.server.folder / name).stat().st_size,
                            "oid": "0" * 40,
                        }
                        for name in files
                    ]
                ).encode()
            self._send(body, "application/json", with_body=with_body)
            return
        prefix, _, name = path.rpartition("/")
        file = self.server.folder / name
        if prefix != f"/owner/tiny/resolve/{COMMIT}" or not file.is_file():
            self.send_error(404)
            return
        self._send(file.read_bytes(), "application/octet-stream", with_body=with_body)

    def _send(self, body: bytes, kind: str, *, with_body: bool) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", f'"{hashlib.sha256(body).hexdigest()}"')
        self.send_header("X-Repo-Commit", COMMIT)
        self.end_headers()
        if with_body:
            self.wfile.write(body)


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    pytest.importorskip("torch")
    folder = save_model(
        tmp_path / "served", "bert", ("contradiction", "entailment", "neutral"), card={"license": "apache-2.0"}
    )
    (folder / "evil.py").write_text("raise SystemExit('code was run')\n")
    (folder / "pytorch_model.bin").write_bytes(b"never opened")
    server = Hub(folder)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join(5)


PROGRAM = """
import json, sys
from hits.tasks import task
from inference.loading import load_model
model = load_model(task("nli"), sys.argv[1], local_files_only=sys.argv[2] == "offline")
said = model.predict_all([("the food was good", "it was not good")])[0]
card = model.card
print(json.dumps({"id": said.model_id, "revision": said.revision, "probabilities": dict(said.probabilities),
                  "licence": card.licence, "map": dict(card.label_map), "sha256": card.weights_sha256}))
"""


def run(hub: Hub, cache: Path, reference: str, *, offline: bool) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    environment |= {"HF_ENDPOINT": hub.address, "HF_HOME": str(cache), "HF_HUB_DISABLE_TELEMETRY": "1"}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, reference, "offline" if offline else "online"],
        capture_output=True,
        text=True,
        timeout=300,
        env=environment,
        check=False,
    )


def test_a_model_comes_from_a_hub_by_tag_is_pinned_to_its_commit_and_then_needs_no_hub(
    hub: Hub, tmp_path: Path
) -> None:
    """The library's own client asks a server on this machine that answers as the hub does."""
    done = run(hub, tmp_path / "cache", "hub:owner/tiny@main", offline=False)

    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert (said["id"], said["revision"], said["licence"]) == ("owner/tiny", COMMIT, "apache-2.0")
    assert list(said["probabilities"]) == ["entailment", "neutral", "contradiction"]
    assert said["sha256"] == hashlib.sha256((hub.folder / "model.safetensors").read_bytes()).hexdigest()
    fetched = {path.rpartition("/")[2] for path in hub.asked if "/resolve/" in path}
    assert "model.safetensors" in fetched
    assert not {"evil.py", "pytorch_model.bin"} & fetched

    hub.asked.clear()
    again = run(hub, tmp_path / "cache", f"hub:owner/tiny@{COMMIT}", offline=True)
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout) == said
    assert hub.asked == []


def test_a_model_that_the_hub_does_not_have_is_a_message_with_a_next_step(hub: Hub, tmp_path: Path) -> None:
    done = run(hub, tmp_path / "cache", "hub:owner/other@v2", offline=False)

    assert done.returncode != 0
    assert "Check the name and revision on the model's page" in done.stderr
