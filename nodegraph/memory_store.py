"""The store that holds everything in memory."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from .derivation import derive_root, unmoved
from .document import Document
from .node import ROOT, Link, Node
from .store import CORPUS, Changes, Derivation, NodeStore, Stamp

if TYPE_CHECKING:
    pass

_LinkKey = tuple[str, str, str]  # source, target, type


class MemoryStore:
    """Keep documents and nodes in dictionaries, and a journal of changes for the indexes."""

    def __init__(self) -> None:
        self._derived: dict[str, dict[str, Derivation]] = {ROOT: {}}
        self._counts: Counter[str] = Counter()
        self._nodes: dict[str, Node] = {}
        self._families: dict[tuple[str, str], dict[str, tuple[int, int]]] = {}
        self._journals: dict[str, _Journal] = {}
        self._built: dict[str, tuple[str, int]] = {}
        self._places = 0
        self._state = 0
        self._links: dict[_LinkKey, Link] = {}
        self._ends: defaultdict[str, dict[_LinkKey, None]] = defaultdict(dict)
        self._memory: defaultdict[str, dict[str, bytes]] = defaultdict(dict)

    @property
    def index_folder(self) -> None:
        """Nothing lasts."""
        return None

    # Who reads and who writes

    def snapshot(self) -> AbstractContextManager[int]:
        """Do nothing: the graph's lock keeps this process's writers out, and there is no other."""
        return nullcontext(self._state)

    def writing(self) -> AbstractContextManager[object]:
        """Do nothing: there is no other process."""
        return nullcontext()

    def transaction(self) -> AbstractContextManager[object]:
        """Do nothing: what could fail is checked before anything is changed."""
        return nullcontext()

    def close(self) -> None:
        """Do nothing: what is in memory lasts as long as the store."""

    def compact(self) -> None:
        """Do nothing: nothing is kept of what was removed."""

    # Documents and nodes

    def change_documents(self, put: Sequence[Document], remove: Sequence[str] = ()) -> None:
        """Remove and put documents."""
        roots = self._derived[ROOT]
        removed, added = self._removed(remove), []
        for document in put:
            old = roots.get(document.id)
            if old is None:
                self._places += 1
            new = derive_root(document, self._places)
            if old is not None:
                if old.stamp == new.stamp:
                    continue
                removed.append(document.id)
                object.__setattr__(new.nodes[0], "order", old.nodes[0].order)
            roots[document.id] = new
            self._nodes[document.id] = new.nodes[0]
            added.append(new.nodes[0])
        self._record(ROOT, removed, added)

    def _removed(self, ids: Sequence[str]) -> list[str]:
        """Remove documents and everything made from them; return which there were."""
        known = [i for i in dict.fromkeys(ids) if i in self._derived[ROOT]]
        for group, derived in self._derived.items():
            gone = [node.id for i in known if i in derived for node in derived.pop(i).nodes]
            self._forget_nodes(group, known, gone)
        return known

    def put_derivations(self, group: str, derivations: Mapping[str, Derivation]) -> None:
        """Insert or replace what was derived."""
        derived = self._derived.setdefault(group, {})
        removed: list[str] = []
        added: list[Node] = []
        for document_id, derivation in derivations.items():
            old = derived.get(document_id)
            before = {node.id: node for node in old.nodes} if old else {}
            after = {node.id for node in derivation.nodes}
            for node in derivation.nodes:
                same = before.get(node.id)
                if same is None or not unmoved(same, node):
                    added.append(node)
                    if same is not None:
                        removed.append(node.id)
            gone = [i for i in before if i not in after]
            removed += gone
            self._drop(gone)
            self._nodes.update((node.id, node) for node in derivation.nodes)
            self._families.pop((group, document_id), None)
            derived[document_id] = derivation
            self._counts[group] += len(after) - len(before)
            self._put_derived_links(derivation)
        self._record(group, removed, added)

    def check(self, nodes: Sequence[Node]) -> None:
        """Do nothing: memory holds everything."""

    def drop_group(self, group: str) -> None:
        """Remove all nodes of a group."""
        derived = self._derived.pop(group, {})
        self._built.pop(group, None)
        gone = [node.id for d in derived.values() for node in d.nodes]
        self._forget_nodes(group, derived, gone)

    def derivation(self, group: str, document_id: str) -> Derivation | None:
        """Return what was derived."""
        return self._derived.get(group, {}).get(document_id)

    def stamps(self, group: str, ids: Collection[str] | None = None) -> dict[str, Stamp]:
        """Return the stamps of a group."""
        derived = self._derived.get(group, {})
        wanted = [CORPUS, *self._derived[ROOT]] if ids is None else ids
        return {i: derived[i].stamp for i in wanted if i in derived}

    def document_ids(self) -> Iterable[str]:
        """Return the ids of all documents."""
        return list(self._derived[ROOT])

    def groups(self) -> Iterable[str]:
        """Return the names of the groups that have been built."""
        return [group for group in self._derived if group != ROOT]

    def nodes(self, group: str) -> Iterator[Node]:
        """Return the nodes of a group."""
        derived = self._derived.get(group, {})
        for document_id in (CORPUS, *self._derived[ROOT]):
            if document_id in derived:
                yield from derived[document_id].nodes

    def count(self, group: str) -> int:
        """Return how many nodes a group has."""
        return len(self._derived[ROOT]) if group == ROOT else self._counts[group]

    def get(self, ids: Iterable[str]) -> list[Node | None]:
        """Return nodes by id."""
        return [self._nodes.get(i) for i in ids]

    def children(self, group: str, parent: Node) -> Sequence[Node]:
        """Return the nodes of a group made from one parent."""
        derivation = self.derivation(group, parent.document_id)
        if derivation is None:
            return ()
        key = (group, parent.document_id)
        families = self._families.get(key)
        if families is None:
            families = self._families[key] = _families(derivation.nodes)
        begin, end = families.get(parent.id, (0, 0))
        return derivation.nodes[begin:end]

    def revision(self, group: str) -> int:
        """Return the group's counter."""
        return self._journals[group].revision if group in self._journals else 0

    def changes(self, group: str, since: int) -> Changes:
        """Return what happened after a revision."""
        journal = self._journal(group)
        if not journal.oldest <= since <= journal.revision:
            return Changes(journal.revision, [], list(self.nodes(group)), complete=True)
        return journal.after(since)

    def built(self, group: str) -> tuple[str, int] | None:
        """Return by which rules a group is built, and up to which revision."""
        return self._built.get(group)

    def mark_built(self, group: str, rules: str, revision: int) -> None:
        """Note by which rules a group is built, and up to which revision."""
        self._built[group] = rules, revision

    # Links

    def link(self, links: Sequence[Link]) -> None:
        """Put links."""
        for link in links:
            for i in (link.source, link.target):
                if i not in self._nodes:
                    raise LookupError(f"no node {i!r} to link; it may have been removed or changed")
        for link in links:
            self._put_link(link)
        self._state += 1

    def unlink(self, links: Sequence[Link]) -> None:
        """Remove links."""
        for link in links:
            self._drop_link((link.source, link.target, link.type))
        self._state += 1

    def links(self, ids: Sequence[str], *, incoming: bool = False) -> list[list[Link]]:
        """Return the links from (or to) each node."""
        here, there = (1, 0) if incoming else (0, 1)
        return [
            [
                self._links[key]
                for key in (self._ends.get(i, ()) if i in self._nodes else ())
                if key[here] == i and key[there] in self._nodes
            ]
            for i in ids
        ]

    def _put_derived_links(self, derivation: Derivation) -> None:
        for node in derivation.nodes:
            for key in list(self._ends.get(node.id, ())):
                if key[0] == node.id and self._links[key].derived:
                    self._drop_link(key)
        for link in derivation.links:
            self._put_link(replace(link, derived=True))

    def _put_link(self, link: Link) -> None:
        key = (link.source, link.target, link.type)
        self._links[key] = link
        self._ends[link.source][key] = self._ends[link.target][key] = None

    def _drop_link(self, key: _LinkKey) -> None:
        if self._links.pop(key, None):
            for i in set(key[:2]):
                del self._ends[i][key]
                if not self._ends[i]:
                    del self._ends[i]

    # What is remembered

    def kinds(self) -> Iterable[str]:
        """Return the kinds of what is remembered."""
        return [kind for kind, values in self._memory.items() if values]

    def recall(self, kind: str, keys: Collection[str] | None = None) -> dict[str, bytes]:
        """Return what was remembered."""
        known = self._memory.get(kind, {})
        return dict(known) if keys is None else {key: known[key] for key in keys if key in known}

    def remember(self, kind: str, values: Mapping[str, bytes]) -> None:
        """Keep values."""
        self._memory[kind].update(values)

    def forget(self, kind: str, keys: Collection[str] | None = None) -> None:
        """Drop values."""
        if keys is None:
            self._memory.pop(kind, None)
        for key in keys or ():
            self._memory[kind].pop(key, None)

    def _journal(self, group: str) -> _Journal:
        return self._journals.setdefault(group, _Journal())

    def _record(self, group: str, removed: Sequence[str], added: Sequence[Node]) -> None:
        self._journal(group).record(removed, added, self.count(group))
        self._state += 1

    def _forget_nodes(self, group: str, documents: Iterable[str], nodes: Sequence[str]) -> None:
        for document_id in documents:
            self._families.pop((group, document_id), None)
        self._drop(nodes)
        if group != ROOT:
            self._counts[group] -= len(nodes)
            self._record(group, nodes, [])

    def _drop(self, nodes: Iterable[str]) -> None:
        for i in nodes:
            del self._nodes[i]
            for key in list(self._ends.get(i, ())):
                if key[0] == i or not self._links[key].derived:
                    self._drop_link(key)


class _Journal:
    """What changed lately in one group, forgotten once it outgrows the group itself."""

    def __init__(self) -> None:
        self.revision = 0
        self.oldest = 1  # a reader at an earlier revision has to read the whole group
        self._entries: deque[tuple[int, Sequence[str], Sequence[Node]]] = deque()
        self._size = 0

    def record(self, removed: Sequence[str], added: Sequence[Node], group_size: int) -> None:
        if not removed and not added:
            return
        self.revision += 1
        self._entries.append((self.revision, removed, added))
        self._size += len(removed) + len(added)
        while self._entries and self._size > group_size // 2 + 1000:
            self.oldest, gone, came = self._entries.popleft()
            self._size -= len(gone) + len(came)

    def after(self, since: int) -> Changes:
        removed: dict[str, None] = {}
        added: dict[str, Node] = {}
        for revision, gone, came in reversed(self._entries):
            if revision <= since:
                break
            # Backwards: the latest word on a node is the one that holds.
            for node in came:
                if node.id not in added and node.id not in removed:
                    added[node.id] = node
            removed.update(dict.fromkeys(gone))
        return Changes(self.revision, list(removed), list(added.values()))


def _families(nodes: Sequence[Node]) -> dict[str, tuple[int, int]]:
    families: dict[str, tuple[int, int]] = {}
    for at, node in enumerate(nodes):
        if node.parent_id is not None:
            begin, _ = families.get(node.parent_id, (at, at))
            families[node.parent_id] = (begin, at + 1)
    return families


def as_store(store: str | Path | NodeStore | None) -> NodeStore:
    """Take a store, or the path of a file to keep one in; None for memory."""
    if store is None:
        return MemoryStore()
    if not isinstance(store, str | Path):
        return store
    from .sqlite import SQLiteStore  # loads SQLite, which a graph in memory does without

    return SQLiteStore(store)
