"""The address of a frame."""

from __future__ import annotations

import hashlib
import hmac

from hits.marketplace.frames import frame_signature, preview_url


def test_parameters_join_an_existing_query_and_stay_before_the_fragment() -> None:
    assert preview_url("https://example.org/p", hit_id="3A") == (
        "https://example.org/p?assignmentId=ASSIGNMENT_ID_NOT_AVAILABLE&hitId=3A"
    )
    assert preview_url("https://example.org/p?x=%20y#part", hit_id="3A") == (
        "https://example.org/p?x=%20y&assignmentId=ASSIGNMENT_ID_NOT_AVAILABLE&hitId=3A#part"
    )


def test_the_signature_is_the_documented_hmac() -> None:
    expected = hmac.new(b"s", b"v1\n3ASSIGNMENT\nAWORKER\n3HIT\n1796040600", hashlib.sha256).hexdigest()

    assert expected == frame_signature(
        "s", assignment_id="3ASSIGNMENT", worker_id="AWORKER", hit_id="3HIT", expires=1796040600
    )
