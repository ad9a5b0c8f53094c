"""What packages register for the core, by entry points: stores, readers, models, commands.

A group of entry points belongs to one contract; the name of an entry is what users write: the
scheme of an address, a file format, a command.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

STORES = "nodekin.stores"
"""``GraphStore`` by the scheme of its address; called with the address."""

READERS = "nodekin.readers"
"""A reader by its suffix without the dot, or a tuple of ``FileFormat`` by any name."""

MODELS = "nodekin.models"
"""A function from the name of a model to the model, by ``embed`` or ``chat``; by ``pairs`` and
``vectors`` one from a model of sentence-transformers to what computes it from tokens."""

COMMANDS = "nodekin.commands"
"""A command of the command line, as a ``click.Command``, by what users type."""


@cache
def plugins(group: str) -> Mapping[str, EntryPoint]:
    """Return the entry points of a group by name, from all installed packages.

    Nothing is imported. Packages that are installed later are seen by the next process.

    Raises:
        RuntimeError: If two packages register different objects by one name.
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
    """Import what is registered by a name; ``plugins(group)`` has the names.

    Raises:
        KeyError: If nothing is registered by this name.
        ImportError: If its module can't be imported.
    """
    return plugins(group)[name].load()
