"""boto3's mturk client in moto's mock, served by the engine."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from hits.marketplace import moto as market_in_moto
from tests.hits.marketplace.market import HIT_PROPERTIES, external_question


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")


def client(region: str = "us-east-1") -> Any:
    return boto3.client("mturk", region_name=region)


def create_hit(mturk: Any) -> str:
    answer = mturk.create_hit(**HIT_PROPERTIES, LifetimeInSeconds=3600, Question=external_question())
    return str(answer["HIT"]["HITId"])


@mock_aws
def test_the_whole_loop_through_the_mock(credentials: None) -> None:
    mturk = client()
    assert mturk.get_account_balance()["AvailableBalance"] == "10000.00"
    hit_id = create_hit(mturk)

    engine = market_in_moto.marketplace()
    worker = engine.register_worker(engine.create_invitation(), "worker", "a good password")
    assignment_id = engine.accept(worker.worker_id, hit_id).assignment_id
    engine.external_submit(assignment_id, {"statement": ["Ça va 🙂"]})
    mturk.approve_assignment(AssignmentId=assignment_id)
    mturk.send_bonus(WorkerId=worker.worker_id, AssignmentId=assignment_id, BonusAmount="0.30", Reason="r")

    [assignment] = mturk.list_assignments_for_hit(HITId=hit_id)["Assignments"]
    assert assignment["AssignmentStatus"] == "Approved"
    assert mturk.list_bonus_payments(HITId=hit_id)["NumResults"] == 1
    assert mturk.get_account_balance()["AvailableBalance"] == "9999.28"
    assert market_in_moto.requester_id() == engine.requesters()[0].requester_id


@mock_aws
def test_errors_are_the_clients_own_exceptions(credentials: None) -> None:
    mturk = client()

    with pytest.raises(mturk.exceptions.RequestError) as caught:
        mturk.get_hit(HITId="3X")
    assert caught.value.response["TurkErrorCode"] == "AWS.MechanicalTurk.HITDoesNotExist"
    with pytest.raises(ClientError, match="ValidationException"):
        mturk.get_hit(HITId="x")


def test_data_is_wiped_with_motos_reset(credentials: None) -> None:
    with mock_aws():
        create_hit(client())
        with mock_aws():
            assert client().list_hits()["NumResults"] == 1
        assert client().list_hits()["NumResults"] == 1
    with mock_aws():
        assert client().list_hits()["NumResults"] == 0


@mock_aws
def test_the_sandbox_is_a_market_of_its_own(credentials: None) -> None:
    create_hit(client())

    assert client("sandbox").list_hits()["NumResults"] == 0
    assert market_in_moto.marketplace("sandbox") is not market_in_moto.marketplace()


@mock_aws
def test_each_account_is_a_requester_of_the_same_market(credentials: None, monkeypatch: pytest.MonkeyPatch) -> None:
    hit_id = create_hit(client())
    monkeypatch.setenv("MOTO_ACCOUNT_ID", "999999999999")

    assert market_in_moto.requester_id(account_id="999999999999") != market_in_moto.requester_id()
    engine = market_in_moto.marketplace(account_id="999999999999")
    assert engine is market_in_moto.marketplace()
    worker = engine.register_worker(engine.create_invitation(), "worker", "a good password")
    assert [group.hit_id for group in engine.hit_groups(worker.worker_id).groups] == [hit_id]


def test_registering_again_changes_nothing() -> None:
    from moto.backend_index import backend_url_patterns

    before = list(backend_url_patterns)

    market_in_moto.register()

    assert backend_url_patterns == before
    assert sum(name == "mturk" for name, _pattern in before) == 1


SERVER = """
import sys
import hits.marketplace.moto
from moto.server import ThreadedMotoServer

server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
server.stop()
"""


def test_motos_own_server_serves_the_engine(credentials: None) -> None:
    # In a process of its own, since any mock_aws in this one would wipe its data.
    with subprocess.Popen(
        [sys.executable, "-W", "error", "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        mturk: Any = boto3.client("mturk", region_name="us-east-1", endpoint_url=f"http://127.0.0.1:{port}")

        hit_id = create_hit(mturk)

        assert mturk.get_hit(HITId=hit_id)["HIT"]["HITStatus"] == "Assignable"
        with pytest.raises(mturk.exceptions.RequestError) as caught:
            mturk.get_hit(HITId="3X")
        assert caught.value.response["TurkErrorCode"] == "AWS.MechanicalTurk.HITDoesNotExist"
        server.communicate("")
    assert server.returncode == 0
