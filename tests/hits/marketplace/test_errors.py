"""The forms of errors."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from string import Formatter

from hits.marketplace import errors
from hits.marketplace.errors import MarketplaceError, SiteError, TurkCode, request_error
from tests.launched import ROOT

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


def raised(path: Path) -> Iterator[tuple[str, ast.expr]]:
    """Yield where a file raises what an operator or requester reads, and what it says."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Raise(exc=ast.Call(func=ast.Name(id="OperatorError" | "NothingThere"), args=[said, *_])):
                yield f"{path.name}:{node.lineno}", said


def is_translatable(said: ast.expr) -> bool:
    if isinstance(said, ast.IfExp):
        return is_translatable(said.body) and is_translatable(said.orelse)
    if isinstance(said, ast.Call):
        return ast.unparse(said.func).split(".")[-1] in {"words", "counted"}
    # Something else has said it before.
    return isinstance(said, ast.Name | ast.Attribute)


def test_what_operators_and_requesters_read_can_be_translated() -> None:
    folders = (Path(errors.__file__).parent, ROOT / "app/marketplace")
    found = [
        where
        for folder in folders
        for path in folder.rglob("*.py")
        # A wrong setting is said before there is a page.
        if path.name != "settings.py"
        for where, said in raised(path)
        if not is_translatable(said)
    ]

    assert found == []
