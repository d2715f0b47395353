"""The Typer application: every command by name, its module imported only when it is called."""

from __future__ import annotations

import importlib
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from recsys import __version__

# A command is the function of its name in the module of its name, or of MODULES; the text is the first
# line of its docstring, which a test compares. `recsys --help` imports none of the modules.
GROUPS = {
    "Models": {
        "fit": "Fit a ranker and write it with ids, titles and histories to one file.",
        "recommend": "Print or write the best items for users or for a history.",
        "evaluate": "Compare models under one protocol, with paired tests between them.",
        "explain": "Print the liked items behind a score, and a rule of other users.",
        "similar": "Print the items or users most similar to one.",
        "predict": "Print the scores of items for a user or for a history.",
        "tune": "Search parameters on a validation split of the training rows.",
        "serve": "Serve a fitted ranker over HTTP; RECSYS_TOKEN sets a bearer token.",
        "app": "Open the app: lists, reasons, metrics and your own tables in a browser.",
        "export": "Write user and item vectors whose inner products are the scores.",
    },
    "Data and installation": {
        "datasets": "List the named datasets.",
        "compile": "Compile models ahead of their first use.",
        "doctor": "Print versions, threads, BLAS, cache and memory.",
    },
}
COMMANDS = {name: text for group in GROUPS.values() for name, text in group.items()}
MODULES = (
    {"app": "open_app", "export": "fit"}
    | dict.fromkeys(("explain", "similar", "predict"), "items")
    | dict.fromkeys(("datasets", "compile", "doctor"), "info")
)
SETTINGS: dict[str, Any] = {
    "add_completion": False,
    "rich_markup_mode": None,
    "pretty_exceptions_enable": False,
    "context_settings": {"help_option_names": ["-h", "--help"]},
}


class LazyGroup(TyperGroup):
    """A group of stand-ins, each replaced by the command itself when it is called."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands by group."""
        for title, commands in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl(list(commands.items()))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return name, command and the arguments left, or raise Typer's usage error."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, None if command is None else load(str(command.name)), rest


def load(name: str) -> Any:
    """Return a command by name, its module imported."""
    alone = typer.Typer(**SETTINGS)
    module = importlib.import_module(f"recsys.cli.{MODULES.get(name, name)}")
    alone.command(name)(getattr(module, name))
    return typer.main.get_command(alone)


app = typer.Typer(
    cls=LazyGroup, help="Explainable recommendation on the CPU.", no_args_is_help=False, **SETTINGS
)


@app.callback(invoke_without_command=True)
def main(context: typer.Context, version: Annotated[bool, typer.Option("--version")] = False) -> None:
    """Explainable recommendation on the CPU."""
    if version:
        print(f"recsys {__version__}")
    elif context.invoked_subcommand is None:
        print(context.get_help())


for _name, _text in COMMANDS.items():
    app.command(_name, help=_text)(lambda: None)  # a stand-in
