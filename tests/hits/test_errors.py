"""What a log may hold of an error."""

from __future__ import annotations

from hits.errors import trace_of


def caught() -> Exception:
    try:
        try:
            raise KeyError("secret words")
        except KeyError as error:
            raise ValueError("more secret words") from error
    except ValueError as error:
        return error


def test_a_trace_names_kinds_and_places_and_quotes_nothing() -> None:
    said = trace_of(caught())

    assert said.index("ValueError") < said.index("KeyError")
    assert "in caught" in said
    assert 'test_errors.py", line' in said
    assert "secret words\n" not in said
    assert "ValueError: " not in said


def test_an_error_that_causes_itself_comes_to_an_end() -> None:
    error = ValueError("x")
    error.__cause__ = error

    assert trace_of(error).startswith("ValueError")
