"""The store that holds everything in memory."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

from .document import Document
from .node import NO_METADATA, ROOT, Node
from .store import Changes, Derivation

DOCUMENT_STRIDE = 1 << 32
"""Order numbers a document takes: its own, and one for each node of a group."""


class MemoryStore:
    """Keep documents and nodes in dictionaries, and a journal of changes for the indexes."""

    def __init__(self) -> None:
        self._roots: dict[str, Node] = {}
        self._derived: dict[str, dict[str, Derivation]] = {}
        self._counts: Counter[str] = Counter()
        self._nodes: dict[str, Node] = {}
        self._families: dict[tuple[str, str], dict[str, tuple[int, int]]] = {}
        self._journals: dict[str, _Journal] = {}
        self._sequence = 0
        self._memory: defaultdict[str, dict[str, bytes]] = defaultdict(dict)

    def snapshot(self) -> AbstractContextManager[object]:
        """Do nothing: the graph's lock keeps this process's writers out, and there is no other."""
        return nullcontext()

    def change_documents(self, put: Sequence[Document], remove: Sequence[str] = ()) -> None:
        """Remove and put documents."""
        removed, added = self._removed(remove), []
        for document in put:
            old = self._roots.get(document.id)
            if old is None:
                self._sequence += 1
            else:
                removed.append(old.id)
            root = Node(
                document.text,
                document.metadata or NO_METADATA,
                start=0,
                end=len(document.text),
                id=document.id,
                group=ROOT,
                document_id=document.id,
                order=old.order if old else self._sequence * DOCUMENT_STRIDE,
            )
            self._roots[root.id] = self._nodes[root.id] = root
            added.append(root)
        self._journal(ROOT).record(removed, added, len(self._roots))

    def _removed(self, ids: Sequence[str]) -> list[str]:
        """Remove documents and everything made from them; return which there were."""
        known = [i for i in ids if self._roots.pop(i, None)]
        for group, derived in self._derived.items():
            gone = [node.id for i in known if i in derived for node in derived.pop(i).nodes]
            self._forget(group, known, gone)
        for i in known:
            del self._nodes[i]
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
                if same is None or not _unmoved(same, node):
                    added.append(node)
                    if same is not None:
                        removed.append(node.id)
            gone = [i for i in before if i not in after]
            removed += gone
            for i in gone:
                del self._nodes[i]
            self._nodes.update((node.id, node) for node in derivation.nodes)
            self._families.pop((group, document_id), None)
            derived[document_id] = derivation
            self._counts[group] += len(after) - len(before)
        self._journal(group).record(removed, added, self.count(group))

    def drop_group(self, group: str) -> None:
        """Remove all nodes of a group."""
        derived = self._derived.pop(group, {})
        self._forget(group, derived, [node.id for d in derived.values() for node in d.nodes])

    def derivation(self, group: str, document_id: str) -> Derivation | None:
        """Return what was derived."""
        return self._derived.get(group, {}).get(document_id)

    def document_ids(self) -> Iterable[str]:
        """Return the ids of all documents."""
        return self._roots.keys()

    def nodes(self, group: str) -> Iterator[Node]:
        """Return the nodes of a group."""
        if group == ROOT:
            yield from self._roots.values()
            return
        derived = self._derived.get(group, {})
        for document_id in self._roots:
            if document_id in derived:
                yield from derived[document_id].nodes

    def count(self, group: str) -> int:
        """Return how many nodes a group has."""
        return len(self._roots) if group == ROOT else self._counts[group]

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
        if since < journal.oldest:
            return Changes(journal.revision, [], list(self.nodes(group)), complete=True)
        return journal.after(since)

    def recall(self, kind: str, keys: Collection[str]) -> dict[str, bytes]:
        """Return what was remembered."""
        known = self._memory[kind]
        return {key: known[key] for key in keys if key in known}

    def remember(self, kind: str, values: Mapping[str, bytes]) -> None:
        """Keep values."""
        self._memory[kind].update(values)

    def _journal(self, group: str) -> _Journal:
        return self._journals.setdefault(group, _Journal())

    def _forget(self, group: str, documents: Iterable[str], nodes: Sequence[str]) -> None:
        for document_id in documents:
            self._families.pop((group, document_id), None)
        for i in nodes:
            del self._nodes[i]
        self._counts[group] -= len(nodes)
        self._journal(group).record(nodes, [], self.count(group))


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


def _unmoved(old: Node, new: Node) -> bool:
    return (
        (old.order, old.start, old.offset) == (new.order, new.start, new.offset)
        and old.parent_id == new.parent_id
        and old.own_metadata == new.own_metadata
        and old.inherited == new.inherited
    )


def _families(nodes: Sequence[Node]) -> dict[str, tuple[int, int]]:
    families: dict[str, tuple[int, int]] = {}
    for at, node in enumerate(nodes):
        if node.parent_id is not None:
            begin, _ = families.get(node.parent_id, (at, at))
            families[node.parent_id] = (begin, at + 1)
    return families
