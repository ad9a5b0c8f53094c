"""The store that holds everything in memory."""

from __future__ import annotations

import threading
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any, overload

from .derivation import CORPUS, Amendment, Derivation, Stamp
from .errors import nearest_names
from .locking import release_after_fork
from .node import ROOT, Link, Node
from .store import NodeStore, nodes_beside

_LinkKey = tuple[str, str, str]  # source, target, type

_LinksByEnd = dict[str, dict[_LinkKey, tuple[int, Link]]]

_Undo = list[tuple[MutableMapping[Any, Any], Any, Any]]  # mapping, key, earlier value

_FEWEST = 4  # nodes of a document for which that takes less memory

_NONE: dict[_LinkKey, tuple[int, Link]] = {}  # links of a node that has none

_PLACE = itemgetter(0)

_POSITION_BITS = 32

_POSITIONS = (1 << _POSITION_BITS) - 1


class PackedNodes(Sequence[Node]):
    """Nodes that were cut out of one document, in half of the memory; made when they are asked for.

    Args:
        nodes: The nodes, for which ``fit`` is true.
        text: The document's text.
        number: Their number among others.
    """

    __slots__ = ("_columns", "_context", "_ends", "_offsets", "_starts", "_text", "ids", "number")

    def __init__(self, nodes: Sequence[Node], text: str, number: int) -> None:
        self.ids, self.number, self._text = [node.id for node in nodes], number, text
        first = nodes[0]
        self._context = first.group, first.document_id, first.order
        self._starts, self._ends, self._offsets = (
            array("q" if len(text) >> 32 else "I", places)
            for places in zip(*((n.start, n.end, n.offset) for n in nodes), strict=True)
        )
        self._columns = (
            _column([node.own_metadata for node in nodes]),
            _column([node.parent_id for node in nodes]),
            _column([node.inherited for node in nodes]),
            _column([node.inherited_search_text for node in nodes]),
        )

    @staticmethod
    def fit(nodes: Sequence[Node], text: str) -> bool:
        """Return whether nodes can be packed: parts of a text in a row, and nothing else."""
        return len(nodes) >= _FEWEST and all(
            node.content is node.text
            and node.search_text is None
            and node.order == order
            and None not in (node.start, node.offset)
            and text[node.start : node.end] == node.text
            for order, node in enumerate(nodes, nodes[0].order)
        )

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, index: int) -> Node: ...

    @overload
    def __getitem__(self, index: slice) -> list[Node]: ...

    def __getitem__(self, index: int | slice) -> Node | list[Node]:
        if isinstance(index, slice):
            return [self[at] for at in range(len(self))[index]]
        index = range(len(self))[index]
        start, end = self._starts[index], self._ends[index]
        group, document_id, order = self._context
        own, parent, inherited, search_text = [c[index % len(c)] for c in self._columns]
        text = self._text[start:end]
        return Node(
            *(text, own, text, start, end, self.ids[index], group, document_id, parent),
            *(self._offsets[index], order + index, inherited, None, search_text),
        )

    def parent_id(self, at: int) -> str | None:
        """Return the id of a node's parent; the node is not made."""
        parents: list[str | None] = self._columns[1]
        return parents[at % len(parents)]


def _column(values: list[Any]) -> list[Any]:
    """Return values, or one where all are the same object."""
    return values[:1] if all(value is values[0] for value in values) else values


class MemoryStore(NodeStore):
    """Store documents and nodes in dictionaries; where there are many nodes, packed."""

    packs_from = 20_000
    """How many nodes are held as they are. It takes longer to get a packed one: 2 µs."""

    def __init__(self) -> None:
        self._derivations: dict[str, dict[str, Derivation]] = {ROOT: {}}
        # By id; for one that is packed where: the number of the nodes, and its place among them.
        self._nodes: dict[str, Node | int] = {}
        self._packed: dict[int, PackedNodes] = {}
        self._packed_count = 0
        self._children: dict[tuple[str, str], dict[str, tuple[int, int]]] = {}
        # By source and by target, then by key; with their places in order.
        self._links: tuple[_LinksByEnd, _LinksByEnd] = {}, {}
        self._link_count = 0
        self._state = nullcontext(0)
        self._values: dict[str, dict[str, bytes]] = {}
        self._undo: dict[int, _Undo] = {}  # by the thread whose transaction is open
        release_after_fork(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        release_after_fork(self)

    def snapshot(self) -> AbstractContextManager[int]:
        """Return the number of the state; the graph lets nobody write meanwhile."""
        return self._state

    def touch(self) -> None:
        """Change the number of the state."""
        self._state = nullcontext(self._state.enter_result + 1)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Undo what this thread wrote in the block if it raises."""
        thread = threading.get_ident()
        if thread in self._undo:
            yield
            return
        self._undo[thread] = []
        try:
            yield
        except BaseException:
            self._roll_back(thread)
            raise
        finally:
            self._undo.pop(thread, None)

    def in_transaction(self) -> bool:
        """Return whether this thread has a transaction open."""
        return threading.get_ident() in self._undo

    def _roll_back(self, thread: int) -> None:
        for mapping, key, value in reversed(self._undo[thread]):
            if value is None:
                mapping.pop(key, None)
            else:
                mapping[key] = value
        self._children.clear()
        roots = self._derivations[ROOT]
        ordered = sorted(roots.items(), key=lambda item: item[1].nodes[0].order)
        roots.clear()
        roots.update(ordered)

    def after_fork(self) -> None:
        """Undo what threads had begun to write that are not in this process."""
        for thread in self._undo.keys() - {threading.get_ident()}:
            self._roll_back(thread)
            del self._undo[thread]

    def _put(self, mapping: MutableMapping[Any, Any], key: Any, value: Any) -> None:
        """Change a mapping so that the change can be undone; None deletes the key."""
        if (undo := self._undo.get(threading.get_ident())) is not None:
            undo.append((mapping, key, mapping.get(key)))
        if value is None:
            mapping.pop(key, None)
        else:
            mapping[key] = value

    def _put_nodes(self, nodes: Sequence[Node]) -> None:
        ids = _ids(nodes)
        if (undo := self._undo.get(threading.get_ident())) is not None:
            undo += [(self._nodes, node_id, self._nodes.get(node_id)) for node_id in ids]
        stored: Iterable[Node | int] = nodes
        if isinstance(nodes, PackedNodes):
            self._put(self._packed, nodes.number, nodes)
            first = nodes.number << _POSITION_BITS
            stored = range(first, first + len(ids))
        self._nodes.update(zip(ids, stored, strict=True))

    def _delete_nodes(self, nodes: Sequence[Node]) -> None:
        for node_id in _ids(nodes):
            self._put(self._nodes, node_id, None)
        if isinstance(nodes, PackedNodes):
            self._put(self._packed, nodes.number, None)

    def _as_stored(self, nodes: Sequence[Node]) -> Sequence[Node]:
        """Return nodes of a document packed, where there are many."""
        if len(self._nodes) < self.packs_from or not nodes or nodes[0].group == ROOT:
            return nodes
        roots = self._nodes_of(ROOT, nodes[0].document_id)
        if not roots or not PackedNodes.fit(nodes, roots[0].text):
            return nodes
        self._packed_count += 1
        return PackedNodes(nodes, roots[0].text, self._packed_count)

    # Derivations and nodes

    def stamps(self, group: str, ids: Collection[str] | None = None) -> dict[str, Stamp]:
        """Return the stamps of a group."""
        derivations = self._derivations.get(group, {})
        names: Iterable[str] = (CORPUS, *self._derivations[ROOT]) if ids is None else ids
        return {i: derivations[i].stamp for i in names if i in derivations}

    def derivation(self, group: str, document_id: str) -> Derivation | None:
        """Return what was derived."""
        stored = self._derivations.get(group, {}).get(document_id)
        if stored is None:
            return None
        links = self.read_links([node.id for node in stored.nodes])
        return replace(stored, links=tuple(k for of_node in links for k in of_node if k.derived))

    def nodes(self, group: str) -> Iterator[Node]:
        """Yield the nodes of a group."""
        stored = self._derivations.get(group, {})
        for document_id in self.stamps(group):
            yield from stored[document_id].nodes

    def ids(self, group: str) -> list[str]:
        """Return the ids of the nodes of a group."""
        stored = self._derivations.get(group, {})
        return [*chain.from_iterable(_ids(stored[i].nodes) for i in self.stamps(group))]

    def _nodes_of(self, group: str, document_id: str) -> Sequence[Node]:
        stored = self._derivations.get(group, {}).get(document_id)
        return () if stored is None else stored.nodes

    def node_ids(self, group: str, document_id: str) -> list[str]:
        """Return the ids of the nodes of a derivation."""
        return list(_ids(self._nodes_of(group, document_id)))

    def write_derivations(
        self, group: str, derivations: Mapping[str, Derivation | None], changed: Collection[str]
    ) -> None:
        """Insert, replace or delete derivations."""
        stored = self._derivations.setdefault(group, {})
        for document_id, new in derivations.items():
            old = stored.get(document_id)
            self._delete_nodes(() if old is None else old.nodes)
            if new is not None:
                new = replace(new, nodes=self._as_stored(new.nodes), links=())
                self._put_nodes(new.nodes)
            self._put(stored, document_id, new)
            self._children.pop((group, document_id), None)

    def write_amendment(self, group: str, document_id: str, amendment: Amendment) -> None:
        """Write the nodes and the stamp of an amendment."""
        stored = self._derivations.setdefault(group, {})
        replaced = self.get([*amendment.removed, *_ids(amendment.nodes)])
        by_id = {node.id: node for node in replaced if node is not None}
        nodes = amendment.nodes_of(self._nodes_of(group, document_id), by_id)
        for node_id in amendment.removed:
            self._put(self._nodes, node_id, None)
        for node in amendment.nodes:
            self._put(self._nodes, node.id, node)
        self._put(stored, document_id, Derivation(*amendment.stamp, nodes))
        self._children.pop((group, document_id), None)

    def get(self, ids: Iterable[str]) -> list[Node | None]:
        """Return nodes by id."""
        stored = map(self._nodes.get, ids)
        return [self._unpacked(found) if isinstance(found, int) else found for found in stored]

    def parent_ids(self, ids: Iterable[str]) -> dict[str, str | None]:
        """Return the ids of parents; packed nodes are not made for that."""
        parents: dict[str, str | None] = {}
        for i in ids:
            stored = self._nodes.get(i)
            if isinstance(stored, int):
                packed = self._packed[stored >> _POSITION_BITS]
                parents[i] = packed.parent_id(stored & _POSITIONS)
            elif stored is not None:
                parents[i] = stored.parent_id
        return parents

    def _unpacked(self, place: int) -> Node:
        return self._packed[place >> _POSITION_BITS][place & _POSITIONS]

    def children(self, group: str, parent: Node) -> Sequence[Node]:
        """Return the nodes of a group made from one parent."""
        nodes = self._nodes_of(group, parent.document_id)
        key = (group, parent.document_id)
        ranges = self._children.get(key)
        if ranges is None:
            ranges = self._children[key] = _ranges_by_parent(nodes)
        start, stop = ranges.get(parent.id, (0, 0))
        return nodes[start:stop]

    def neighbours(self, node: Node) -> tuple[Node | None, Node | None]:
        """Return the nodes before and after a node in its group and document."""
        return nodes_beside(node, self._nodes_of(node.group, node.document_id))

    # Links

    def read_links(self, ids: Sequence[str], *, incoming: bool = False) -> list[list[Link]]:
        """Return the links from (or to) each id."""
        by_end = self._links[incoming]
        of_ids = (sorted(by_end.get(i, _NONE).values(), key=_PLACE) for i in ids)
        return [[link for _, link in links] for links in of_ids]

    def links(self, ids: Sequence[str], *, incoming: bool = False) -> list[list[Link]]:
        """Return the links from (or to) each node."""
        nodes = self._nodes
        return [
            [link for link in links if link.source in nodes and link.target in nodes]
            for links in self.read_links(ids, incoming=incoming)
        ]

    def put_links(self, links: Sequence[Link]) -> None:
        """Store links."""
        for link in links:
            key = (link.source, link.target, link.type)
            number, _ = self._links[0].get(link.source, _NONE).get(key, (0, None))
            if not number:
                number = self._link_count = self._link_count + 1
            for by_end, node_id in zip(self._links, key, strict=False):
                self._put(by_end.setdefault(node_id, {}), key, (number, link))

    def delete_links(self, links: Sequence[Link]) -> None:
        """Delete links."""
        for link in links:
            key = (link.source, link.target, link.type)
            for by_end, node_id in zip(self._links, key, strict=False):
                if key in (ends := by_end.get(node_id, _NONE)):
                    self._put(ends, key, None)
                    if not ends:
                        self._put(by_end, node_id, None)

    # Values

    def get_values(self, kind: str, keys: Collection[str] | None = None) -> dict[str, bytes]:
        """Return values."""
        values = self._values.get(kind, {})
        return dict(values) if keys is None else {k: values[k] for k in keys if k in values}

    def put_values(self, kind: str, values: Mapping[str, bytes]) -> None:
        """Store values."""
        stored = self._values.setdefault(kind, {})
        for key, value in values.items():
            self._put(stored, key, value)

    def delete_values(self, kind: str, keys: Collection[str] | None = None) -> None:
        """Delete values."""
        stored = self._values.get(kind, {})
        for key in list(stored) if keys is None else keys:
            self._put(stored, key, None)

    def kinds(self) -> list[str]:
        """Return the kinds of the values."""
        return [kind for kind, values in list(self._values.items()) if values]


def _ids(nodes: Sequence[Node]) -> Sequence[str]:
    return nodes.ids if isinstance(nodes, PackedNodes) else [node.id for node in nodes]


def _ranges_by_parent(nodes: Sequence[Node]) -> dict[str, tuple[int, int]]:
    """Return where the children of each parent begin and end."""
    ranges: dict[str, tuple[int, int]] = {}
    for at, node in enumerate(nodes):
        if node.parent_id is not None:
            start, _ = ranges.get(node.parent_id, (at, at))
            ranges[node.parent_id] = (start, at + 1)
    return ranges


def as_store(store: str | Path | NodeStore | None) -> NodeStore:
    """Return a store, one for the path of a file or the address of a server, or one in memory.

    Raises:
        TypeError: If it is none of these.
        ValueError: If no installed package has stores for this kind of server.
    """
    if store is None:
        return MemoryStore()
    if isinstance(store, NodeStore):
        return store
    if not isinstance(store, str | Path):
        raise TypeError(
            f"store is the path of a file, the address of a server, a NodeStore, or "
            f"None for memory, not {store!r:.80}; write NodeGraph(store='graph.db')"
        )
    scheme, separator, _ = store.partition("://") if isinstance(store, str) else ("", "", "")
    if separator:
        from .plugins import STORES, load_plugin, plugins  # most graphs are in files

        if scheme not in plugins(STORES):
            raise ValueError(
                f"{scheme!r:.80} is no kind of server that holds a graph; write an address that "
                f"begins with one of {nearest_names(scheme, plugins(STORES))}, like "
                "'postgresql://user@host/database?schema=name', or the path of a file"
            )
        opened: NodeStore = load_plugin(STORES, scheme)(store)
        return opened
    from .sqlite.sqlite_store import SQLiteStore

    return SQLiteStore(store)
