"""Entry points by which packages extend nodekin: stores, readers, models and commands.

Each group of entry points has one contract. The name of an entry is the name that users write:
the scheme of an address, a file suffix, a command.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

STORES = "nodekin.stores"
"""``GraphStore`` classes or functions by the scheme of an address, called with the address."""

READERS = "nodekin.readers"
"""Readers by file suffix without the dot, or tuples of ``FileFormat`` by any name."""

MODELS = "nodekin.models"
"""Functions by kind. ``embed`` and ``chat``: from the name of a model to the model. ``pairs`` and
``vectors``: from a sentence-transformers model to an object that computes the model from tokens."""

COMMANDS = "nodekin.commands"
"""Commands of the command line, ``click.Command``, by name."""


@cache
def plugins(group: str) -> Mapping[str, EntryPoint]:
    """Return the entry points of a group by name, from all installed packages.

    Nothing is imported. Packages that are installed later are found by the next process.

    Raises:
        RuntimeError: If two packages register different objects under one name.
    """
    from importlib.metadata import entry_points  # takes longer to import than all of the core

    registered: dict[str, EntryPoint] = {}
    for entry in entry_points(group=group):
        first = registered.setdefault(entry.name, entry)
        if first.value != entry.value:
            raise RuntimeError(
                f"two packages register {entry.name!r} as one of {group}: {first.value} and "
                f"{entry.value}; uninstall one of them"
            )
    return MappingProxyType(registered)


def load_plugin(group: str, name: str) -> Any:
    """Import and return the object registered under a name of ``plugins(group)``.

    Raises:
        AttributeError: If the module does not define the object.
        ImportError: If the module cannot be imported.
        KeyError: If the name is not registered.
    """
    return plugins(group)[name].load()
