"""Writes settings.md and commands.md beside this file, from the settings model and the command line.

python docs/reference.py
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined
from typer.main import get_command

from prime_pipeline.cli import app
from prime_pipeline.settings import Settings

MADE = "<!-- Made by docs/reference.py. -->"


def settings_reference() -> str:
    """All settings by table of `prime.toml`, with variable, values, default and meaning."""
    top = {name: field for name, field in Settings.model_fields.items() if _group(field) is None}
    parts = [
        MADE,
        "# Settings",
        "From options, `PRIME_*` variables and `prime.toml` files, see [configuration](configuration.md).",
        _settings_table(top, "PRIME_"),
    ]
    for path, group in _groups(Settings, ()):
        fields = {name: field for name, field in group.model_fields.items() if _group(field) is None}
        variable = "PRIME_" + "".join(f"{name.upper()}__" for name in path)
        parts += [
            f"## `[{'.'.join(path)}]`",
            inspect.cleandoc(group.__doc__ or ""),
            _settings_table(fields, variable),
        ]
    return "\n\n".join(parts) + "\n"


def commands_reference() -> str:
    """All commands with arguments, options, defaults and meanings."""
    found: Any = get_command(app)  # of click, which Typer may carry with it
    parts = [MADE, "# Commands", str(app.info.epilog)]
    for name, command in found.commands.items():
        arguments = [_argument(p) for p in command.params if p.param_type_name == "argument"]
        usage = " ".join(["prime", name, *arguments])
        parts += [f"## `{usage}`", inspect.cleandoc(command.help or "")]
        rows = [_option(p) for p in command.params]
        parts.append("\n".join(["| | default | |", "| --- | --- | --- |", *rows]))
    return "\n\n".join(parts) + "\n"


def _groups(
    model: type[BaseModel], path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], type[BaseModel]]]:
    for name, field in model.model_fields.items():
        if group := _group(field):
            yield (*path, name), group
            yield from _groups(group, (*path, name))


def _group(field: FieldInfo) -> type[BaseModel] | None:
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def _settings_table(fields: Mapping[str, FieldInfo], variable: str) -> str:
    rows = [
        f"| `{name}` | `{variable}{name.upper()}` | {_default(field)} | {_cell(_meaning(field))} |"
        for name, field in fields.items()
    ]
    return "\n".join(["| setting | variable | default | |", "| --- | --- | --- | --- |", *rows])


def _default(field: FieldInfo) -> str:
    value = field.get_default(call_default_factory=True)
    if value is None or value is PydanticUndefined or str(value) in {"", "**********"}:
        return ""
    if isinstance(value, tuple | list):
        return "`[" + ", ".join(f'"{item}"' for item in value) + "]`"
    if isinstance(value, Mapping):
        return ""
    return f"`{value}`" if not isinstance(value, bool) else f"`{str(value).lower()}`"


def _meaning(field: FieldInfo) -> str:
    choices = [
        part for part in (field.annotation, *get_args(field.annotation)) if get_origin(part) is Literal
    ]
    names = ", ".join(f"`{value}`" for part in choices[:1] for value in get_args(part))
    return f"{field.description or ''}{f' One of {names}.' if names else ''}"


def _option(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        name = f"`{parameter.name.upper()}`"
    else:
        name = ", ".join(f"`{text}`" for text in (*parameter.opts, *parameter.secondary_opts))
    default = parameter.default
    shown = (
        ""
        if default in (None, False, "") or callable(default) or not isinstance(default, str | int | float)
        else default
    )
    return f"| {name} | {f'`{shown}`' if shown != '' else ''} | {_cell(parameter.help or '')} |"


def _argument(parameter: Any) -> str:
    name = f"{parameter.name.upper()}{'...' if parameter.nargs == -1 else ''}"
    return name if parameter.required else f"[{name}]"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def main() -> None:
    """Write both."""
    folder = Path(__file__).parent
    (folder / "settings.md").write_text(settings_reference(), encoding="utf-8")
    (folder / "commands.md").write_text(commands_reference(), encoding="utf-8")


if __name__ == "__main__":
    main()
