"""The forms of errors."""

from __future__ import annotations

from datetime import UTC, datetime
from string import Formatter

from hits.marketplace import errors
from hits.marketplace.errors import MarketplaceError, SiteError, TurkCode, request_error

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def test_mturks_own_messages_end_with_epoch_milliseconds_and_aws_ones_do_not() -> None:
    assert request_error(errors.HIT_DOES_NOT_EXIST, id="3X").stamped(NOW).message == (
        "Hit 3X does not exist. (1796040000000)"
    )
    assert MarketplaceError("ValidationException", "1 validation error").stamped(NOW).message == "1 validation error"


def test_every_code_has_a_prefix_a_text_and_evidence() -> None:
    codes = [value for value in vars(errors).values() if isinstance(value, TurkCode)]

    assert len({code.text for code in codes if "{reason}" not in code.text}) > 10
    for code in codes:
        assert code.code.startswith(("AWS.MechanicalTurk.", "AWS."))
        assert code.evidence
        fields = {name for _text, name, _format, _conversion in Formatter().parse(code.text) if name}
        filled = request_error(code, **dict.fromkeys(fields, "VALUE"))
        assert "{" not in filled.message


def test_refusals_on_the_site_speak_to_people() -> None:
    refusals = [
        errors.NotSignedIn(),
        errors.HitNotAvailable(),
        errors.TooLate(),
        errors.NotQualified(["you need “x”"]),
        errors.HitNotShown(),
        errors.AssignmentNotHeld("Returned"),
        errors.AnswerTooLarge(5, 4),
    ]

    for refusal in refusals:
        assert isinstance(refusal, SiteError)
        assert str(refusal) == refusal.message
        assert refusal.message.endswith(".")
