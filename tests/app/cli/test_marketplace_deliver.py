"""Events and mail leave a real `marketplace up` by SQS, SNS, webhook over TLS and SMTP, in order, with retries."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from click.testing import CliRunner
from sqlalchemy.exc import OperationalError

from app.cli import marketplace as cli
from app.cli import marketplace_deliver
from app.cli.marketplace_deliver import Deliverer
from hits.marketplace.deliveries import DeliveryReport
from hits.marketplace.mails import MailReport
from hits.marketplace.transports import SIGNATURE_HEADER, TIMESTAMP_HEADER, webhook_signature
from tests.app.cli.test_marketplace_up import running
from tests.app.marketplace.conftest import question
from tests.hits.marketplace.test_transports import KEYS, MOTO, Receiver, Sink, serving, smtp_server, trusted
from tests.launched import free_ports

EVENTS = ["HITCreated", "AssignmentAccepted", "AssignmentSubmitted", "HITReviewable"]


def eventually(found: Callable[[], Any], seconds: float = 60.0) -> Any:
    """Return what comes to be true, and fail if nothing does."""
    until = time.monotonic() + seconds
    while not (value := found()):
        assert time.monotonic() < until, "nothing came in time"
        time.sleep(0.1)
    return value


class Letters(Sink):
    """Keeps the letters that an SMTP server takes."""

    def __init__(self) -> None:
        super().__init__()
        self.got: list[tuple[str, str]] = []

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:  # noqa: N802  # aiosmtpd's
        self.got.append((envelope.rcpt_tos[0], envelope.content.decode().replace("=\r\n", "").replace("=3D", "=")))
        return "250 ok"


class Browser:
    """A worker's browser with the least it needs: cookies and forms."""

    def __init__(self, site: str) -> None:
        self.site = site
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))

    def get(self, path: str) -> str:
        return self._read(path, None)

    def post(self, path: str, page: str, **fields: str) -> str:
        found = re.search(r'name="csrf_token" value="([^"]+)"', page)
        assert found is not None, page
        return self._read(path, {"csrf_token": found[1], **fields})

    def _read(self, path: str, fields: dict[str, str] | None) -> str:
        url = path if path.startswith("http") else self.site + path
        data = urllib.parse.urlencode(fields).encode() if fields is not None else None
        with self.opener.open(url, data, timeout=60) as answer:
            self.at = answer.geturl()
            return str(answer.read().decode())


@pytest.fixture(scope="module")
def aws() -> Iterator[str]:
    with subprocess.Popen(
        [sys.executable, "-c", MOTO], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout is not None
        yield f"http://127.0.0.1:{int(run.stdout.readline())}"
        run.communicate("")


@pytest.mark.slow
def test_events_and_mail_leave_a_running_marketplace(tmp_path: Path, aws: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sqs: Any = boto3.client("sqs", region_name="us-east-1", endpoint_url=aws, **KEYS)
    sns: Any = boto3.client("sns", region_name="us-east-1", endpoint_url=aws, **KEYS)
    queue, behind = (sqs.create_queue(QueueName=name)["QueueUrl"] for name in ("events", "behind-the-topic"))
    topic = sns.create_topic(Name="events")["TopicArn"]
    arn = sqs.get_queue_attributes(QueueUrl=behind, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)
    port, hook_port = free_ports(2)
    letters = Letters()
    with trusted(tmp_path) as (context, ca_file), smtp_server(letters) as smtp_port:
        for name, value in {
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": aws,
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "ALLOW_PRIVATE_WEBHOOKS": "1",
            "WEBHOOK_CA_FILE": str(ca_file),
            "SMTP_HOST": "127.0.0.1",
            "SMTP_PORT": str(smtp_port),
            "MAIL_FROM": "Market <market@example.org>",
            "SIGN_UP": "open",
            "DELIVERY_SECONDS": "0.2",
        }.items():
            monkeypatch.setenv(f"MARKETPLACE_{name}", value)
        folder = tmp_path / "market"
        with running(folder, "--port", str(port)) as output:
            said = dict(re.findall(r"(AWS_\w+)=(\S+)", output))
            mturk: Any = boto3.client(
                "mturk",
                region_name="us-east-1",
                endpoint_url=said["AWS_ENDPOINT_URL_MTURK"],
                aws_access_key_id=said["AWS_ACCESS_KEY_ID"],
                aws_secret_access_key=said["AWS_SECRET_ACCESS_KEY"],
                config=Config(retries={"total_max_attempts": 1}),
            )
            hits = {}
            for title, transport, destination in (
                ("by queue", "SQS", queue),
                ("by topic", "SNS", topic),
                ("by webhook", "SNS", f"https://127.0.0.1:{hook_port}/hook"),
                ("by mail", "Email", "lab@example.org"),
            ):
                kind = mturk.create_hit_type(
                    Title=title,
                    Description="One of four ways out.",
                    Reward="0.10",
                    AssignmentDurationInSeconds=600,
                )["HITTypeId"]
                mturk.update_notification_settings(
                    HITTypeId=kind,
                    Active=True,
                    Notification={
                        "Destination": destination,
                        "Transport": transport,
                        "Version": "2014-08-15",
                        "EventTypes": EVENTS,
                    },
                )
                began = time.monotonic()
                hits[title] = mturk.create_hit_with_hit_type(
                    HITTypeId=kind, LifetimeInSeconds=3600, MaxAssignments=1, Question=question()
                )["HIT"]["HITId"]
                assert time.monotonic() - began < 5, "a receiver that is down does not delay the API"

            browser = Browser(f"http://127.0.0.1:{port}")
            browser.post("/sign-up", browser.get("/sign-up"), email="ada@example.org")
            mail = eventually(lambda: next((text for to, text in letters.got if to == "ada@example.org"), None))
            link = re.search(r"http://127\.0\.0\.1:\d+/sign-up/finish\?token=\S+", mail)
            assert link is not None, mail
            browser.post(
                "/sign-up/finish",
                browser.get(link[0]),
                token=link[0].partition("token=")[2],
                user_name="ada",
                password="correct horse battery",
            )
            assert browser.at.endswith("/hits")
            for hit_id in hits.values():
                browser.post(f"/hits/{hit_id}/accept", browser.get(f"/hits/{hit_id}"))
                assignment_id = browser.at.rsplit("/", 1)[-1]
                answer = urllib.parse.urlencode({"assignmentId": assignment_id, "answer": "yes"}).encode()
                with urllib.request.urlopen(f"{browser.site}/mturk/externalSubmit", answer, timeout=60) as page:
                    assert page.status == 200

            def names(documents: list[Any]) -> list[str]:
                return [document["Events"][0]["EventType"] for document in documents]

            got: dict[str, list[Any]] = {"queue": [], "topic": []}

            def received(name: str, url: str) -> bool:
                for message in sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", []):
                    body = json.loads(message["Body"])
                    got[name].append(json.loads(body["Message"]) if name == "topic" else body)
                    sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
                return len(got[name]) >= len(EVENTS)

            eventually(lambda: received("queue", queue))
            eventually(lambda: received("topic", behind))
            # Without a FIFO queue SQS promises no order; the events' own times and numbers are there.
            assert sorted(names(got["queue"])) == sorted(names(got["topic"])) == sorted(EVENTS)
            assert got["queue"][0]["Events"][0]["HITId"] == hits["by queue"]
            events = eventually(
                lambda: found if len(found := [t for to, t in letters.got if to == "lab@example.org"]) >= 4 else None
            )
            assert [next(name for name in EVENTS if f"event: {name}" in text) for text in events] == EVENTS

            # Until now nobody has listened for webhooks.
            receiver = Receiver(port=hook_port)
            receiver.socket = context.wrap_socket(receiver.socket, server_side=True)
            with serving(receiver):
                eventually(lambda: len(receiver.got) >= len(EVENTS), 120)
            documents = [json.loads(body) for _path, _headers, body in receiver.got]
            assert names(documents) == EVENTS
            monkeypatch.setenv("MARKETPLACE_DATABASE_URL", f"sqlite:///{folder / 'marketplace.db'}")
            stored = dict(re.findall(r"(MARKETPLACE_SECRET_KEY)='(\w+)'", (folder / "settings.env").read_text()))
            monkeypatch.setenv("MARKETPLACE_SECRET_KEY", stored["MARKETPLACE_SECRET_KEY"])
            monkeypatch.setenv("MARKETPLACE_SITE_URL", browser.site)
            shown = CliRunner().invoke(cli.marketplace, ["requester", "webhook-secret", "My requester account"])
            secret = shown.output.strip()
            for _path, headers, body in receiver.got:
                signature = webhook_signature(secret, headers[TIMESTAMP_HEADER], body)
                assert headers[SIGNATURE_HEADER] == f"v1={signature}"


def test_once_says_how_it_went(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARKETPLACE_DATABASE_URL", f"sqlite:///{tmp_path / 'm.db'}")
    monkeypatch.setenv("MARKETPLACE_SECRET_KEY", "k" * 32)
    assert CliRunner().invoke(cli.marketplace, ["init"]).exit_code == 0

    result = CliRunner().invoke(cli.marketplace, ["deliver", "--once"])

    assert result.output.splitlines() == [
        "Events: 0 delivered, 0 failed (0 for good), 0 waiting.",
        "Mails: 0 sent, 0 failed, 0 waiting.",
    ]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_stops_when_it_is_asked_to(tmp_path: Path, number: signal.Signals) -> None:
    environment = {
        **os.environ,
        "MARKETPLACE_DATABASE_URL": f"sqlite:///{tmp_path / 'm.db'}",
        "MARKETPLACE_SECRET_KEY": "k" * 32,
    }
    command = [sys.executable, "-u", "-m", "app.cli", "marketplace"]
    subprocess.run([*command, "init"], env=environment, check=True, capture_output=True)
    with subprocess.Popen([*command, "deliver"], env=environment, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        assert "webhooks on, SQS and SNS off (MARKETPLACE_AWS_REGION), mail off" in run.stdout.readline()
        run.send_signal(number)
        assert run.wait(30) == 0


def test_a_database_that_fails_is_tried_again_with_one_line_each(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    waits: list[float] = []

    class Failing(Deliverer):
        def round(self, stop: threading.Event) -> Any:
            if len(waits) >= 4:
                return DeliveryReport(0, 0, 0, 0), marketplace_deliver.MailReport(0, 0, 0, 0)
            raise OperationalError("SELECT 1", {}, Exception("the disk is gone\nand more"))

    class Waiting(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            waits.append(timeout or 0)
            if len(waits) == 6:
                self.set()
            return self.is_set()

    Failing(None, {}, None).rounds(Waiting(), 1.0)  # type: ignore[arg-type]

    assert waits == [2, 4, 8, 16, 1, 1]
    assert len(caplog.records) == 4
    assert all("\n" not in record.getMessage() for record in caplog.records)


def test_mail_has_its_turn_while_events_go_on_and_on() -> None:
    class Engine:
        def deliver_due(self, _ways: Any, *, limit: int, stop: Callable[[], bool]) -> DeliveryReport:
            until = time.monotonic() + 20
            while not stop():
                assert time.monotonic() < until, "mail waits for all events"
                time.sleep(0.01)
            return DeliveryReport(1, 0, 0, limit)

        def send_mail_due(self, _post_office: Any, **_options: Any) -> MailReport:
            return MailReport(1, 0, 0, 0)

    deliverer = Deliverer(Engine(), {}, object(), event_seconds=0.1)  # type: ignore[arg-type]

    assert deliverer.round(threading.Event())[1].sent == 1
