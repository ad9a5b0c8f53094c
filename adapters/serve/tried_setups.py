"""Set-ups that are declared in a file, tried on the page, and kept in the file."""

from __future__ import annotations

import os
import sys
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import tomli_w

from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import ROOT
from ...retrievers.evaluation.setups.opening import SetupOpener
from ...retrievers.evaluation.setups.setup_file import SetupFile
from ...retrievers.protocols import RetrieverProtocol
from ...retrievers.restricted_retriever import restrict, restriction_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_MAX_OPEN = 32  # retrievers that stay open

_NAME = 80  # characters of a set-up's name

_MAX_KEPT = 100  # set-ups of a file to which the page adds

_MAX_SETUP = 10_000  # characters of a set-up: Python reads long keys in quadratic time


class TriedSetups:
    """Open set-ups by name or by their text, and keep what was tried.

    Args:
        opener: Opens the set-ups of a file.
        path: The file that set-ups are kept in. It is written when the first one is.
        given: A retriever that a program made, which is the default in place of the file's. What
            it is restricted to holds for all others, and for all that the page shows.

    Raises:
        ValueError: If it is restricted to what a function returns.
    """

    def __init__(
        self, opener: SetupOpener, path: Path, given: RetrieverProtocol | None = None
    ) -> None:
        self.path = path
        self.given = given
        self.restriction = restriction_of(given)
        self._opener = opener
        self._retrievers: OrderedDict[str, RetrieverProtocol] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def graph(self) -> NodeGraph:
        """What is searched."""
        return self._opener.graph

    @property
    def file(self) -> SetupFile:
        """The set-ups that are declared, those that were kept included."""
        return self._opener.file

    def declared(self) -> list[dict[str, str]]:
        """Return the set-ups of the file, the default one first."""
        names = sorted(self.file.setups, key=lambda name: name != self.file.default)
        given = [] if self.given is None else [{"name": type(self.given).__name__, "toml": ""}]
        return given + [{"name": name, "toml": to_text(self.file.table(name))} for name in names]

    def suggested(self) -> list[dict[str, str]]:
        """Return set-ups to start with: each group by its words, and by meaning if it can be."""
        suggestions = []
        similarities = ["bm25", *(["cosine"] if self.graph.embeddings.embedders else [])]
        for item in self.graph.groups.values():
            if not item.built or (item.name == ROOT and len(self.graph.groups) > 1):
                continue
            lifts = [None, item.parent] if item.parent not in (None, ROOT) else [None]
            for similarity in similarities:
                for target in lifts:
                    table = {"type": "Retriever", "group_name": item.name, "similarity": similarity}
                    table |= {"target": target} if target else {}
                    suggestions.append(
                        {
                            "similarity": similarity,
                            "group": item.name,
                            "target": target or "",
                            "toml": to_text(table),
                        }
                    )
        return suggestions

    def retriever(self, text: str) -> RetrieverProtocol:
        """Return the retriever of a set-up's text. An empty one is the default.

        Raises:
            ValueError: If it is no TOML, or declares what there is not.
        """
        key = text.strip()
        if not key and self.given is not None:
            return self.given
        with self._lock:
            if key not in self._retrievers:
                name = self.file.default
                table: Any = parse(key) if key else name
                if key:
                    name = "tried"
                    self._with(name, table)
                opened: RetrieverProtocol = self._opener.retriever(table, f"set-up {name!r}")
                if self.restriction is not None:
                    opened = restrict(opened, self.restriction)
                self._retrievers[key] = opened
            self._retrievers.move_to_end(key)
            while len(self._retrievers) > _MAX_OPEN:
                self._retrievers.popitem(last=False)
            return self._retrievers[key]

    def _with(self, name: str, table: Mapping[str, Any]) -> SetupFile:
        """Return the file with one more set-up, checked."""
        return replace(self.file, setups={**self.file.setups, name: table}, path=None)

    def keep(self, name: str, text: str) -> Path:
        """Write a set-up into the file, where Python and the command line open it by its name.

        All that the file has stays as it is, comments included.

        Returns:
            The file.

        Raises:
            ValueError: If it has no name, the name is taken, or it declares what there is not.
            OSError: If the file can't be written.
        """
        name = name.strip()
        if not 0 < len(name) <= _NAME or not name.isprintable():
            raise ValueError(f"give the set-up a name of 1 to {_NAME} characters, not {name!r:.90}")
        table = parse(text)
        with self._lock:
            if name in self.file.setups:
                raise ValueError(f"there is a set-up {name!r} in {self.path}; give another name")
            if len(self.file.setups) >= _MAX_KEPT:
                raise ValueError(
                    f"{self.path} has {len(self.file.setups)} set-ups, and the page keeps "
                    f"{_MAX_KEPT} at most; delete some of them in the file"
                )
            self._with(name, table)
            if self.path.exists():
                before = self.path.read_text(encoding="utf-8-sig")
            else:
                before = self.file.to_toml()
            after = f"{before.rstrip()}\n\n{tomli_w.dumps({'setups': {name: dict(table)}})}"
            file = SetupFile.parse(after, self.path)
            if name not in file.setups:
                raise ValueError(f"{name!r} can't be added to {self.path}; write it there by hand")
            new = self.path.with_name(f"{self.path.name}.{os.getpid()}.new")
            new.write_text(after, encoding="utf-8")
            new.replace(self.path)
            self._opener = SetupOpener(file, self.graph, self._opener.models)
        return self.path


def parse(text: str) -> dict[str, Any]:
    """Return the table of a set-up's text.

    Raises:
        ValueError: If it is no TOML, or longer than any set-up.
    """
    if len(text) > _MAX_SETUP:
        raise ValueError(f"a set-up has {_MAX_SETUP:,} characters at most, not {len(text):,}")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"the set-up is no TOML: {error}") from error


def to_text(table: Mapping[str, Any]) -> str:
    """Return the text of a set-up's table."""
    return tomli_w.dumps(dict(table))
