"""A report as JSON and back, exactly. The records say what there is; nothing is listed a second time here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

from prime_pipeline.errors import ReportError
from prime_pipeline.reports.content import Cell, ReportContent, SystemCost, check

SCHEMA_VERSION: Final = 2
_MOST: Final = 10**18
"""Whole numbers from here on are no count of anything."""
_RESULT: Final = ("value", "low", "high", "n_queries", "no_interval")
"""What a cell's result is written as, beside the cell's own fields: flat, so that any tool reads it."""


def to_json(content: ReportContent) -> str:
    """The report as indented JSON in ASCII, so that any text survives. Mappings are in the order of their keys.

    Each of ``cells`` is flat: the cell's fields, its status, its result as ``value``, ``low``, ``high``, ``n_queries`` and
    ``no_interval`` (why there is none), and ``cost``, what its system costs. Status and costs are there for the reader, and
    not read back.

    Raises:
        ReportError: See :func:`~prime_pipeline.reports.content.check`.
    """
    check(content)
    report = _encoded(content)
    report["cells"] = [_flat(cell, content) for cell in content.cells]
    payload = {"schema_version": SCHEMA_VERSION, **report}
    return json.dumps(payload, indent=1, allow_nan=False) + "\n"


def from_json(text: str) -> ReportContent:
    """The report that :func:`to_json` was given.

    Raises:
        ReportError: The text is no report, or one of another version.
    """
    try:
        payload = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ReportError(f"this is no report: {error}. Give the path of a report.json") from error
    if not isinstance(payload, dict) or "schema_version" not in payload:
        raise ReportError("this is no report: it has no schema_version. Give the path of a report.json")
    if payload["schema_version"] != SCHEMA_VERSION:
        raise ReportError(
            f"the report has schema version {payload['schema_version']}, this program reads {SCHEMA_VERSION}: make the "
            "report anew"
        )
    report = {name: value for name, value in payload.items() if name != "schema_version"}
    if isinstance(cells := report.get("cells"), list):
        report["cells"] = [_nested(cell) if isinstance(cell, dict) else cell for cell in cells]
    content: ReportContent = _decoded(ReportContent, report, "report")
    check(content)
    return content


def _flat(cell: Cell, content: ReportContent) -> dict[str, Any]:
    fields_ = _encoded(cell)
    result = fields_.pop("result") or dict.fromkeys(("value", "low", "high", "n", "reason"))
    values = (result["value"], result["low"], result["high"], result["n"], result["reason"])
    amounts = [c.amounts for c in content.costs if _costs_of(c, cell)]
    cost = {name: value for found in amounts for name, value in found.items()}
    return {**fields_, "status": cell.status, **dict(zip(_RESULT, values, strict=True)), "cost": cost}


def _costs_of(cost: SystemCost, cell: Cell) -> bool:
    is_same_text = (cost.representation, cost.restructurer) == (cell.representation, cell.restructurer)
    return is_same_text and cost.pipeline in {"", cell.pipeline}


def _nested(cell: Mapping[str, Any]) -> dict[str, Any]:
    value, low, high, n_queries, no_interval = (cell.get(name) for name in _RESULT)
    result = {"value": value, "low": low, "high": high, "n": n_queries, "reason": no_interval}
    own = {name: field for name, field in cell.items() if name not in {*_RESULT, "status", "cost"}}
    return {**own, "result": None if value is None else result}


def _encoded(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _encoded(value[key]) for key in sorted(value)}
    if isinstance(value, tuple):
        return [_encoded(item) for item in value]
    if is_dataclass(value):
        return {part.name: _encoded(getattr(value, part.name)) for part in fields(value)}
    return value


def _decoded(hint: Any, data: Any, name: str) -> Any:
    """Read data as the type that a field declares; ``name`` is the path to it, for messages."""
    kind = get_origin(hint) or hint
    if kind is UnionType:  # only "something or None" occurs
        (some,) = (choice for choice in get_args(hint) if choice is not NoneType)
        return None if data is None else _decoded(some, data, name)
    if is_dataclass(kind):
        return _decoded_record(kind, data, name)
    if kind is tuple:
        items = _expected(data, list, name)
        return tuple(_decoded(get_args(hint)[0], item, f"{name}[{at}]") for at, item in enumerate(items))
    if kind is Mapping:
        items = _expected(data, dict, name)
        return {key: _decoded(get_args(hint)[1], items[key], f"{name}[{key!r}]") for key in items}
    if kind is Literal:
        if data not in get_args(hint):
            raise _unreadable(name, data)
        return data
    return _expected(data, kind, name)


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _decoded_record(kind: Any, data: Any, name: str) -> Any:
    hints = _hints(kind)
    values = _expected(data, dict, name)
    if unknown := sorted(values.keys() - hints.keys()):
        raise _unreadable(f"{name}.{unknown[0]}", values[unknown[0]])
    given = {key: _decoded(hints[key], value, f"{name}.{key}") for key, value in values.items()}
    try:
        return kind(**given)
    except TypeError as error:
        raise ReportError(f"{name} is incomplete ({error}): make the report anew") from error


def _expected(data: Any, kind: type, name: str) -> Any:
    if kind is float and type(data) is int and abs(data) < _MOST:
        return data
    if type(data) is not kind:
        raise _unreadable(name, data)
    return data


def _unreadable(name: str, data: object) -> ReportError:
    return ReportError(
        f"{name} cannot be {str(data)[:40]!r}: the file was edited or is no report, make the report anew"
    )
