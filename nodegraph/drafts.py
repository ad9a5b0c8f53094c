"""What transforms have made of a document that is not finished: kept, to go on from there."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence

from .codec import decode, encode
from .document import digest, metadata_digest
from .group import NodeGroup
from .node import Node
from .store import NodeStore
from .transform import Draft

PERIOD = 0.1
"""Seconds after which finished documents are written; twice as many for parts of one."""


class Drafts:
    """Keep the drafts of single parents while their document's share of a group is being made.

    Threads may add at the same time.
    """

    def __init__(self, store: NodeStore, group: NodeGroup) -> None:
        self._store = store
        self._group = group
        self._kind = f"drafts {group.name}"
        self._lock = threading.Lock()
        self._unsaved: dict[str, tuple[Node, Sequence[Draft]]] = {}  # by parent id
        self._saved = set(store.recall(self._kind))
        self._since = time.monotonic()

    def known(self, parents: Sequence[Node]) -> dict[str, list[Draft]]:
        """Return what was made of parents before an interruption, by parent id."""
        if not self._saved:
            return {}
        keys = {self._key(parent): parent.id for parent in parents}
        found = self._store.recall(self._kind, [key for key in keys if key in self._saved])
        return {keys[key]: _read(value) for key, value in found.items()}

    def add(self, parent: Node, made: Sequence[Draft]) -> None:
        """Take what was made of a parent; write it when the last time is long ago."""
        with self._lock:
            self._unsaved[parent.id] = parent, made
            late = time.monotonic() - self._since > 2 * PERIOD
        if late:
            self.save()

    def save(self) -> None:
        """Write what is not written yet."""
        with self._lock:  # not held while the store is asked, which has locks of its own
            unsaved, self._unsaved = self._unsaved, {}
            self._since = time.monotonic()
        written = {self._key(p): _write(made) for p, made in unsaved.values()}
        values = {key: value for key, value in written.items() if value is not None}
        if values:
            self._store.remember(self._kind, values)
            with self._lock:
                self._saved.update(values)

    def forget(self, parents: Sequence[Node]) -> None:
        """Drop what was kept of parents whose nodes are in the store now."""
        with self._lock:
            for parent in parents:
                self._unsaved.pop(parent.id, None)
            some = bool(self._saved)
        if some:
            gone = {self._key(parent) for parent in parents} & self._saved
            self._store.forget(self._kind, gone)
            with self._lock:
                self._saved -= gone

    def forget_all(self) -> None:
        """Drop what was kept, also of documents that are gone: the group is built."""
        if self._saved:
            self._store.forget(self._kind)
            self._saved = set()

    def _key(self, parent: Node) -> str:
        seen = metadata_digest(parent.metadata) if self._group.trans_node else ""
        return digest(self._group.version, parent.id, parent.text, seen)


def _write(made: Sequence[Draft]) -> bytes | None:
    """Write drafts; None for what no file can hold, which is made again then."""
    try:
        rows = [[d.text, d.content, d.metadata, d.start, d.end, d.links] for d in made]
        return encode(rows).encode("utf-8", "surrogatepass")
    except TypeError:
        return None


def _read(value: bytes) -> list[Draft]:
    rows: list[tuple[str, object, Mapping[str, object], int | None, int | None, tuple[()]]]
    rows = decode(value.decode("utf-8", "surrogatepass"))
    return [Draft(*row) for row in rows]
