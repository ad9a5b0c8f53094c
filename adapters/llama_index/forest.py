"""LlamaIndex nodes by what they stand below, down from their documents."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from itertools import pairwise

from llama_index.core.schema import BaseNode, IndexNode, TextNode
from llama_index.core.schema import Document as LlamaIndexDocument

from ...nodegraph import ROOT, Document, Node
from .nodes import GROUP
from .pieces import document_of, fields_of, piece_of, same
from .siblings import in_order, joined_text

NameGroup = Callable[[BaseNode], str]


class Forest:
    """LlamaIndex nodes by their ids, and what stands below what."""

    def __init__(self, nodes: Iterable[BaseNode], documents: Iterable[BaseNode]) -> None:
        self.nodes: dict[str, BaseNode] = {}
        self.documents: dict[str, Document] = {}
        self.blank: list[str] = []
        for each in documents:
            self._take(each, True)
        for each in nodes:
            self._take(each, False)
        self.parents = {i: self._parent(node) for i, node in self.nodes.items()}
        alone = [i for i, parent in self.parents.items() if parent is None]
        for i in alone:
            self.documents[i] = document_of(self.nodes.pop(i))
            del self.parents[i]
        self._put_together()
        self.depths = {i: self._depth(i) for i in self.nodes}

    def _take(self, node: BaseNode, given: bool) -> None:
        _check(node)
        i = node.node_id
        if given or isinstance(node, LlamaIndexDocument) or node.metadata.get(GROUP) == ROOT:
            made = document_of(node)
            if self.documents.setdefault(i, made) != made:
                raise _two(i)
        elif self.nodes.setdefault(i, node) != node:
            raise _two(i)
        if i in self.nodes and i in self.documents:
            raise _two(i)

    def _parent(self, node: BaseNode) -> str | None:
        """Return the id of what a node stands below; None where it stands below nothing."""
        above, source = node.parent_node, node.source_node
        if above is not None:
            if above.node_id in self.nodes or above.node_id in self.documents:
                return above.node_id
            if source is None or above.node_id != source.node_id:
                raise ValueError(
                    f"the parent {above.node_id!r} of node {node.node_id!r} is not among the nodes;"
                    " give all of them, such as docstore.docs.values()"
                )
        if isinstance(node, IndexNode) and node.index_id != node.node_id:
            if node.index_id in self.nodes or node.index_id in self.documents:
                return node.index_id
            if source is None:
                raise ValueError(
                    f"node {node.node_id!r} stands for {node.index_id!r}, which is not among the "
                    "nodes; give that too"
                )
        return None if source is None or source.node_id == node.node_id else source.node_id

    def _put_together(self) -> None:
        """Make the documents that were not given of the nodes that stand below them."""
        missing: dict[str, list[BaseNode]] = defaultdict(list)
        for i, parent in self.parents.items():
            if parent is not None and parent not in self.nodes and parent not in self.documents:
                missing[parent].append(self.nodes[i])
        for i, nodes in missing.items():
            fields = [fields_of(node) for node in nodes]
            shared = {
                name: deepcopy(value)
                for name, value in fields[0].items()
                if all(name in each and same(each[name], value) for each in fields)
            }
            self.documents[i] = Document(joined_text(nodes), shared, id=i)

    def _depth(self, id: str) -> int:
        seen, here, depth = {id}, id, 0
        while here in self.nodes:
            here, depth = self.parents[here] or "", depth + 1
            if here in seen:
                raise ValueError(f"node {id!r} stands below itself: {' -> '.join(sorted(seen))}")
            seen.add(here)
        return depth

    def groups(self, wanted: Sequence[str] | NameGroup | None) -> dict[str, str]:
        """Return the name of each node's group, from the first level down."""
        ordered = sorted(self.nodes, key=lambda i: self.depths[i])
        if callable(wanted):
            return {i: wanted(self.nodes[i]) for i in ordered}
        deepest = max(self.depths.values(), default=0)
        if wanted is not None:
            if isinstance(wanted, str) or len(wanted) != deepest:
                raise ValueError(
                    f"groups={wanted!r} names {1 if isinstance(wanted, str) else len(wanted)} "
                    f"levels, and the nodes have {deepest}; name each of them: groups=[...]"
                )
            return {i: wanted[self.depths[i] - 1] for i in ordered}
        return {
            i: str(self.nodes[i].metadata.get(GROUP, f"level {self.depths[i]}")) for i in ordered
        }

    def pieces(self, names: Mapping[str, str]) -> dict[str, dict[str, list[Node]]]:
        """Return what the groups replay: by group and parent."""
        known = {
            i: Node(each.text, start=0, inherited=each.metadata)
            for i, each in self.documents.items()
        }
        families: dict[str, dict[str, dict[str, Node]]] = defaultdict(dict)
        for i, name in names.items():
            node, parent = self.nodes[i], self.parents[i] or ""
            piece = piece_of(node, known[parent])
            start = getattr(node, "start_char_idx", None)
            known[i] = Node(
                piece.text,
                start=start,
                inherited={**known[parent].inherited, **piece.own_metadata},
            )
            if not piece.text.strip():
                self.blank.append(i)
            families[name].setdefault(parent, {})[i] = piece
        return {
            name: {parent: self._family(found) for parent, found in of_parents.items()}
            for name, of_parents in families.items()
        }

    def _family(self, pieces: Mapping[str, Node]) -> list[Node]:
        """Return siblings in order, at places that can be true of all of them."""
        made = [pieces[i] for i in in_order([self.nodes[i] for i in pieces])]
        starts = [piece.start for piece in made if piece.start is not None]
        if all(before < after for before, after in pairwise(starts)):
            return made
        # A parser has taken the first of equal texts for all of them.
        return [Node(each.text, each.own_metadata, each.content) for each in made]


def _check(node: object) -> None:
    if not isinstance(node, BaseNode):
        raise TypeError(
            f"import_nodes takes LlamaIndex nodes, not {node!r:.80}; of a NodeWithScore give the "
            ".node"
        )
    media = [f"{kind}_resource" for kind in ("image", "audio", "video")]
    if type(node) not in (TextNode, IndexNode, LlamaIndexDocument) or any(
        getattr(node, name, None) is not None for name in media
    ):
        raise TypeError(
            f"import_nodes takes nodes that are texts (TextNode, IndexNode, Document), and "
            f"{node.node_id!r} is a {type(node).__name__} with more; leave it out"
        )


def _two(id: str) -> ValueError:
    return ValueError(f"two different nodes have the id {id!r}; give one of them")
