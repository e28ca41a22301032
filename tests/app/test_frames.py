"""What the address of a frame may claim."""

from __future__ import annotations

from datetime import timedelta

import pytest
from pydantic import SecretStr

from app.frames import FrameExpired, FrameRefused, origin_of, read_frame, signature, submit_address
from app.settings import Settings
from hits.clock import FixedClock

SECRET = "shared with the marketplace"


def settings(**changes: object) -> Settings:
    return Settings(
        **{
            "database_url": "sqlite://",
            "secret_key": SecretStr("s"),
            "pseudonym_key": SecretStr("p"),
            "aws_access_key_id": SecretStr("a"),
            "aws_secret_access_key": SecretStr("b"),
            **changes,
        }  # type: ignore[arg-type]
    )


def query(**changes: str) -> dict[str, str]:
    return {
        "assignmentId": "ASSIGNMENT1",
        "hitId": "HIT1",
        "workerId": "AWORKER1",
        "turkSubmitTo": "http://127.0.0.1:8000",
        **changes,
    }


def signed(clock: FixedClock, minutes: int = 30, **changes: str) -> dict[str, str]:
    fields = query()
    expires = str(int((clock.now() + timedelta(minutes=minutes)).timestamp()))
    made = signature(SECRET, assignment_id="ASSIGNMENT1", worker_id="AWORKER1", hit_id="HIT1", expires=expires)
    return {**fields, "frameExpires": expires, "frameSignature": made, **changes}


@pytest.mark.parametrize("fields", [{}, {"assignmentId": "ASSIGNMENT_ID_NOT_AVAILABLE", "hitId": "HIT1"}])
def test_an_address_without_an_assignment_is_a_preview(fields: dict[str, str], clock: FixedClock) -> None:
    assert read_frame(fields, settings(), clock.now()).is_preview


def test_an_accepted_frame_is_read(clock: FixedClock) -> None:
    frame = read_frame(query(), settings(), clock.now())

    assert (frame.assignment_id, frame.hit_id, frame.worker_id, frame.deadline) == (
        "ASSIGNMENT1",
        "HIT1",
        "AWORKER1",
        None,
    )


@pytest.mark.parametrize("address", ["http://127.0.0.1:8000", "http://127.0.0.1:8000/", "HTTP://127.0.0.1:8000", ""])
def test_the_worker_sites_address_is_accepted_in_every_spelling_and_left_out(address: str, clock: FixedClock) -> None:
    assert not read_frame(query(turkSubmitTo=address), settings(), clock.now()).is_preview


@pytest.mark.parametrize(
    "address",
    [
        "http://evil.example",
        "http://127.0.0.1:8001",
        "https://127.0.0.1:8000",
        "http://127.0.0.1:8000.evil.example",
        "http://127.0.0.1:8000@evil.example",
        "http://127.0.0.1:8000/elsewhere",
        "http://127.0.0.1:port",
        "javascript:alert(1)",
        "//",
    ],
)
def test_another_site_is_refused(address: str, clock: FixedClock) -> None:
    with pytest.raises(FrameRefused):
        read_frame(query(turkSubmitTo=address), settings(), clock.now())


@pytest.mark.parametrize("name", ["workerId", "hitId"])
def test_an_assignment_without_worker_or_hit_is_refused(name: str, clock: FixedClock) -> None:
    with pytest.raises(FrameRefused):
        read_frame(query(**{name: ""}), settings(), clock.now())


def test_a_signed_frame_brings_its_deadline(clock: FixedClock) -> None:
    frame = read_frame(signed(clock), settings(frame_secret=SecretStr(SECRET)), clock.now())

    assert frame.deadline == clock.now() + timedelta(minutes=30)


@pytest.mark.parametrize(
    "change",
    [
        {"assignmentId": "ASSIGNMENT2"},
        {"workerId": "AWORKER2"},
        {"hitId": "HIT2"},
        {"frameExpires": "9999999999"},
        {"frameExpires": ""},
        {"frameExpires": "٣"},
        {"frameExpires": "1e9"},
        {"frameSignature": ""},
        {"frameSignature": "0" * 64},
        {"frameSignature": "é"},
    ],
)
def test_any_change_of_a_signed_frame_is_refused(change: dict[str, str], clock: FixedClock) -> None:
    with pytest.raises(FrameRefused):
        read_frame(signed(clock, **change), settings(frame_secret=SecretStr(SECRET)), clock.now())


def test_an_unsigned_frame_is_refused_where_signatures_are_demanded(clock: FixedClock) -> None:
    with pytest.raises(FrameRefused):
        read_frame(query(), settings(frame_secret=SecretStr(SECRET)), clock.now())


def test_a_frame_whose_time_is_over_says_so(clock: FixedClock) -> None:
    with pytest.raises(FrameExpired, match="time for this assignment is over"):
        read_frame(signed(clock, minutes=0), settings(frame_secret=SecretStr(SECRET)), clock.now())


def test_an_origin_leaves_out_path_and_the_schemes_own_port() -> None:
    assert origin_of("HTTPS://Www.Example.org:443/path?x=1") == "https://www.example.org"
    assert origin_of("http://[::1]:8000/") == "http://[::1]:8000"


def test_assignments_are_submitted_to_the_configured_site() -> None:
    assert submit_address(settings(worker_site_url="https://workers.example/")) == (
        "https://workers.example/mturk/externalSubmit"
    )
