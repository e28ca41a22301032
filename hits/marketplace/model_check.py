"""Checks an operation's parameters against the vendored service model, the way AWS' front end does."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Final

from botocore.model import OperationModel, ServiceModel, Shape

from hits.marketplace.errors import (
    SERIALIZATION_EXCEPTION,
    UNKNOWN_OPERATION,
    VALIDATION_EXCEPTION,
    MarketplaceError,
)

MODEL_FILE: Final = Path(__file__).parent / "service_model" / "service-2.json"
_RANGES: Final = {"integer": (-(2**31), 2**31 - 1), "long": (-(2**63), 2**63 - 1)}
_LONGEST_QUOTE: Final = 200


@cache
def service_model() -> ServiceModel:
    """Return the vendored model of the API."""
    return ServiceModel(json.loads(MODEL_FILE.read_text(encoding="utf-8")), "mturk")


def operation_names() -> list[str]:
    """Return the names of all operations of the API."""
    return list(service_model().operation_names)


def check_parameters(operation: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters without nulls and unknown members, and with timestamps as aware datetimes.

    Raises MarketplaceError: UnknownOperationException for an operation that the API has not,
    SerializationException for a value of another JSON type, ValidationException with every broken constraint.
    """
    if operation not in service_model().operation_names:
        raise MarketplaceError(UNKNOWN_OPERATION, f"The operation {operation[:100]!r} is not known.")
    model: OperationModel = service_model().operation_model(operation)
    findings: list[str] = []
    checked: dict[str, Any] = {}
    if model.input_shape is not None:
        checked = _check(model.input_shape, params, "", findings)
    if findings:
        plural = "error" if len(findings) == 1 else "errors"
        raise MarketplaceError(
            VALIDATION_EXCEPTION, f"{len(findings)} validation {plural} detected: {'; '.join(findings)}"
        )
    return checked


def _check(shape: Shape, value: Any, path: str, findings: list[str]) -> Any:
    kind = shape.type_name
    if kind == "structure":
        return _check_structure(shape, value, path, findings)
    if kind == "list":
        _require(isinstance(value, list | tuple), path, "a list", value)
        _check_size(shape, len(value), value, path, "length", findings)
        element = shape.member
        return [_check(element, item, f"{path}.{i}.member", findings) for i, item in enumerate(value, start=1)]
    if kind == "string":
        _require(isinstance(value, str), path, "a string", value)
        _check_string(shape, value, path, findings)
        return value
    if kind in _RANGES:
        _require(isinstance(value, int) and not isinstance(value, bool), path, "a whole number", value)
        low, high = _RANGES[kind]
        _require(low <= value <= high, path, f"between {low} and {high}", value)
        _check_size(shape, value, value, path, "value", findings)
        return value
    if kind == "boolean":
        _require(isinstance(value, bool), path, "true or false", value)
        return value
    if kind == "timestamp":
        return _read_timestamp(value, path)
    raise AssertionError(f"the service model has a shape of type {kind}, which this check does not know")


def _check_structure(shape: Any, value: Any, path: str, findings: list[str]) -> dict[str, Any]:
    _require(isinstance(value, Mapping), path, "an object", value)
    present = {name: item for name, item in value.items() if name in shape.members and item is not None}
    findings.extend(
        f"Value null at '{_join(path, name)}' failed to satisfy constraint: Member must not be null"
        for name in shape.required_members
        if name not in present
    )
    return {name: _check(shape.members[name], item, _join(path, name), findings) for name, item in present.items()}


def _check_string(shape: Any, value: str, path: str, findings: list[str]) -> None:
    # Neither can be stored or sent back as text.
    _require("\x00" not in value, path, "text without NUL characters", value)
    _require(not any("\ud800" <= character <= "\udfff" for character in value), path, "valid Unicode", value)
    _check_size(shape, len(value), value, path, "length", findings)
    pattern = shape.metadata.get("pattern")
    if pattern is not None and re.fullmatch(_anchored(pattern), value) is None:
        findings.append(_finding(value, path, f"satisfy regular expression pattern: {pattern}"))
    if shape.enum and value not in shape.enum:
        findings.append(_finding(value, path, f"satisfy enum value set: [{', '.join(shape.enum)}]"))


def _check_size(shape: Shape, size: int, value: Any, path: str, noun: str, findings: list[str]) -> None:
    low, high = shape.metadata.get("min"), shape.metadata.get("max")
    if low is not None and size < low:
        findings.append(_finding(value, path, f"have {noun} greater than or equal to {low}"))
    if high is not None and size > high:
        findings.append(_finding(value, path, f"have {noun} less than or equal to {high}"))


def _read_timestamp(value: Any, path: str) -> datetime:
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    try:
        if isinstance(value, str):
            moment = datetime.fromisoformat(value)
            return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            return datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise _serialization(path, "a time in epoch seconds", value) from error
    raise _serialization(path, "a time in epoch seconds", value)


def _anchored(pattern: str) -> str:
    return pattern.removeprefix("^").removesuffix("$")


def _join(path: str, name: str) -> str:
    member = name[0].lower() + name[1:] if not name[:2].isupper() else _lower_acronym(name)
    return f"{path}.{member}" if path else member


def _lower_acronym(name: str) -> str:
    return re.sub(r"^[A-Z]+(?=[A-Z][a-z]|$)", lambda match: match.group().lower(), name)


def _finding(value: Any, path: str, constraint: str) -> str:
    text = value if isinstance(value, str) else str(value)
    quoted = text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}..."
    return f"Value '{quoted}' at '{path}' failed to satisfy constraint: Member must {constraint}"


def _require(fits: bool, path: str, expected: str, value: Any) -> None:
    if not fits:
        raise _serialization(path, expected, value)


def _serialization(path: str, expected: str, value: Any) -> MarketplaceError:
    shown = ascii(value)
    shown = shown if len(shown) <= 60 else f"{shown[:60]}..."
    return MarketplaceError(SERIALIZATION_EXCEPTION, f"'{path or 'the body'}' must be {expected}, got {shown}.")
