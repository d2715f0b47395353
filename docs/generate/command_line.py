"""The reference of the command line, from Typer's own tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from recsys.cli.commands import COMMANDS, load

EXITS = """
Exit codes
: 0, success; 2, invalid input, with one line on standard error; 1, an internal error; 130, interrupted.

Tables are printed to standard output, everything else to standard error.
"""


def escaped(text: str) -> str:
    """Return text that Markdown shows as it is; what is in backticks is code there, too."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        parts = [text.replace("`", "'")]
    for k in range(0, len(parts), 2):
        for sign in "\\*_<>[]|{}$":
            parts[k] = parts[k].replace(sign, "\\" + sign)
    return "`".join(parts)


def option(parameter: Any, context: Any) -> str:
    """Return the definition of one option, in the words of `--help`."""
    names, told = parameter.get_help_record(context)
    return f"`{' '.join(names.split())}`\n: {escaped(' '.join(told.split())) or 'No description.'}\n"


def command(name: str) -> str:
    """Return the section of one command."""
    found = load(name)
    context = found.make_context(name, [], resilient_parsing=True)
    lines = [f"## recsys {name}", "", escaped((found.help or COMMANDS[name]).strip()), ""]
    for parameter in found.params:
        if parameter.name != "help" and not getattr(parameter, "hidden", False):
            lines.append(option(parameter, context))
    return "\n".join(lines)


def write(file: Path) -> None:
    """Write the page."""
    lines = [
        "# Command line",
        "",
        "This page has the text of `recsys COMMAND --help` for every command.",
        EXITS,
    ]
    file.write_text("\n".join([*lines, *(command(name) for name in sorted(COMMANDS))]), encoding="utf-8")
