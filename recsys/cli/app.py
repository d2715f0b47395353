"""The Typer application that the commands register with."""

from __future__ import annotations

from typing import Annotated

import typer

from recsys import __version__

app = typer.Typer(
    help="Recommendation on CPU that says why.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def main(context: typer.Context, version: Annotated[bool, typer.Option("--version")] = False) -> None:
    """Recommendation on CPU that says why."""
    if version:
        print(f"recsys {__version__}")
    elif context.invoked_subcommand is None:
        print(context.get_help())
