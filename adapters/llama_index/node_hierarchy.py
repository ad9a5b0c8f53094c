"""LlamaIndex nodes by what they stand below, down from their documents."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from itertools import pairwise
from typing import Any

from llama_index.core.schema import BaseNode, IndexNode, TextNode
from llama_index.core.schema import Document as LlamaIndexDocument

from ...nodegraph import ROOT, Document, Node
from .nodes import FORM, GROUP, ORIGIN, TEMPLATES, from_text_node, hidden_fields

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


def piece_of(node: BaseNode, parent: Node) -> Node:
    """Make the node that the graph is to have.

    Args:
        node: The LlamaIndex node.
        parent: Its parent's text, start in the document, and all metadata (as ``inherited``).
    """
    made = from_text_node(node)
    if isinstance(made, Node):  # one of ours
        text, own, content = made.text, dict(made.own_metadata), made.content
    else:
        text, content = made.text, None
        own = _own(node, parent.inherited)
    given = getattr(node, "start_char_idx", None)
    offset = None
    if given is not None:
        # Counted in the document or, below the first level, in the parent.
        for start in (given - (parent.start or 0), given):
            if offset is None and start >= 0 and text and parent.text.startswith(text, start):
                offset = start
    return Node(text, own, content, start=offset)


def _own(node: BaseNode, inherited: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that a node does not get from its parent, and those that tell of it."""
    fields = fields_of(node)
    own: dict[str, Any] = {
        name: deepcopy(value)
        for name, value in fields.items()
        if name not in inherited or not same(inherited[name], value)
    }
    form = _form(node)
    without = [name for name in inherited if name not in fields and name not in (ORIGIN, FORM)]
    if without:
        form["without"] = without
    own[ORIGIN] = node.node_id
    if form or FORM in inherited:
        own[FORM] = json.dumps(form, ensure_ascii=False)
    return own


def document_of(node: BaseNode) -> Document:
    """Make the document that a graph is to have of a LlamaIndex node."""
    made = from_text_node(node)
    if isinstance(made, Node):
        return Document(made.text, made.own_metadata, id=made.id)
    form = _form(node)
    fields = fields_of(node)
    more = {FORM: json.dumps(form, ensure_ascii=False)} if form else {}
    return Document(made.text, {**deepcopy(fields), **more}, id=node.node_id)


def fields_of(node: BaseNode) -> dict[str, Any]:
    """Return a node's metadata without what we keep there."""
    return {name: v for name, v in node.metadata.items() if name not in (ORIGIN, FORM)}


def _form(node: BaseNode) -> dict[str, Any]:
    """Return how a node differs from those that are made of a graph's."""
    hidden = hidden_fields(node.metadata)
    form: dict[str, Any] = {}
    if node.excluded_embed_metadata_keys != hidden:
        form["embed"] = list(node.excluded_embed_metadata_keys)
    if node.excluded_llm_metadata_keys != hidden:
        form["llm"] = list(node.excluded_llm_metadata_keys)
    for name in TEMPLATES:
        value = getattr(node, name, None)
        if value is not None and value != getattr(_PLAIN, name):
            form[name] = value
    return form


_PLAIN = TextNode(text="")


def same(one: Any, other: Any) -> bool:
    """Tell whether values are equal and of the same kind: 1 is not True."""
    return bool(one == other) and repr(one) == repr(other)


def joined_text(siblings: Sequence[BaseNode]) -> str:
    """Return the text of which nodes are parts, as far as they tell."""
    known = {node.node_id: node for node in siblings}
    nodes = [known[i] for i in in_order(siblings)]
    parts: list[str] = []
    before, last, length = "", -1, 0
    for node in nodes:
        text, start = node.get_content(), getattr(node, "start_char_idx", None)
        overlap = "" if start is None else before[start - last :]
        # Two at one place, or before the one before: a parser took equal texts for one another.
        if start is None or start <= last or not text.startswith(overlap):
            return "\n\n".join(each.get_content() for each in nodes)
        parts.append(" " * (start - length) + text[len(overlap) :])
        before, last, length = text, start, start + len(text)
    return "".join(parts)


def in_order(nodes: Sequence[BaseNode]) -> list[str]:
    """Return siblings' ids as NEXT and PREVIOUS have them, or their places, or as they came."""
    ids = [node.node_id for node in nodes]
    known = set(ids)
    after = {n.node_id: n.next_node.node_id for n in nodes if n.next_node is not None}
    after.update({n.prev_node.node_id: n.node_id for n in nodes if n.prev_node is not None})
    if not any(i in after and after[i] in known for i in ids):
        starts = {node.node_id: getattr(node, "start_char_idx", None) for node in nodes}
        if None not in starts.values() and len(set(starts.values())) == len(ids):
            ids.sort(key=lambda i: starts[i] or 0)
        return ids
    follows = {following for i, following in after.items() if i in known}
    ordered: dict[str, None] = {}
    for i in [*(i for i in ids if i not in follows), *ids]:
        here = i
        while here in known and here not in ordered:
            ordered[here] = None
            here = after.get(here, "")
    return list(ordered)
