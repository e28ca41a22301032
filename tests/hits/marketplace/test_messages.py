"""Messages from requesters to workers."""

from __future__ import annotations

from tests.hits.marketplace.market import Market, refused


def test_workers_whose_work_was_reviewed_get_the_message(market: Market) -> None:
    approved, rejected, waiting = market.worker(), market.worker(), market.worker()
    hit_id = market.create_hit(MaxAssignments=3)
    market.client.approve_assignment(AssignmentId=market.submitted(hit_id, approved))
    market.client.reject_assignment(AssignmentId=market.submitted(hit_id, rejected), RequesterFeedback="no")
    market.submitted(hit_id, waiting)

    answer = market.client.notify_workers(
        Subject="New round",
        MessageText="It begins at noon.",
        WorkerIds=[approved, "A1NOBODY", rejected, waiting, approved],
    )

    assert [failure["WorkerId"] for failure in answer["NotifyWorkersFailureStatuses"]] == ["A1NOBODY", waiting]
    assert answer["NotifyWorkersFailureStatuses"][0] == {
        "WorkerId": "A1NOBODY",
        "NotifyWorkersFailureCode": "HardFailure",
        "NotifyWorkersFailureMessage": "Cannot send a notification to a worker who has not done any work for you",
    }
    (message,) = market.engine.messages(approved).messages
    assert (message.subject, message.text, message.requester_name) == (
        "New round",
        "It begins at noon.",
        "Language Lab",
    )
    assert not message.is_read
    assert market.engine.messages(waiting).messages == ()
    assert market.engine.mark_messages_read(approved) == 1
    assert market.engine.messages(approved).messages[0].is_read


def test_work_for_another_requester_does_not_count(market: Market) -> None:
    worker_id = market.worker()
    market.client.approve_assignment(AssignmentId=market.submitted(market.create_hit(), worker_id))
    other = market.client_for(market.other_requester())

    assert other.notify_workers(Subject="s", MessageText="m", WorkerIds=[worker_id])["NotifyWorkersFailureStatuses"]
    assert market.engine.messages(worker_id).messages == ()


def test_messages_that_cannot_be(market: Market) -> None:
    with refused("RequestError", "ParameterOutOfRange", says="Subject"):
        market.client.notify_workers(Subject="s" * 201, MessageText="m", WorkerIds=["A1"])
    with refused("RequestError", "ParameterOutOfRange", says="MessageText"):
        market.client.notify_workers(Subject="s", MessageText="m" * 4097, WorkerIds=["A1"])
    for workers in ([], [f"A{number}" for number in range(101)]):
        with refused("RequestError", "ParameterOutOfRange", says="WorkerIds"):
            market.client.notify_workers(Subject="s", MessageText="m", WorkerIds=workers)
    with refused("ValidationException"):
        market.client.notify_workers(Subject="s", MessageText="m", WorkerIds=["B1"])
