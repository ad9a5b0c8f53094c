"""Take whole hierarchies of LlamaIndex nodes into a graph, every node with its kin."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from llama_index.core.schema import BaseNode, IndexNode, TextNode
from llama_index.core.schema import Document as LlamaIndexDocument

from ...nodegraph import ROOT, Document, Node, NodeGraph
from .nodes import FORM, GROUP, ORIGIN, TEMPLATES, from_text_node, hidden_fields
from .replay import Replay, replayed

NameGroup = Callable[[BaseNode], str]


@dataclass(frozen=True, slots=True)
class Imported:
    """Say what came of an import.

    Attributes:
        documents: Ids of the documents, as the graph and LlamaIndex know them.
        groups: Names of the groups, from the first below the documents down.
        blank: Ids of nodes without a text, of which a graph makes none.
    """

    documents: tuple[str, ...]
    groups: tuple[str, ...]
    blank: tuple[str, ...] = ()


def import_nodes(
    graph: NodeGraph,
    nodes: Iterable[BaseNode],
    *,
    documents: Iterable[BaseNode] = (),
    groups: Sequence[str] | NameGroup | None = None,
) -> Imported:
    """Make documents and groups of LlamaIndex nodes, with the relationships they have.

    Takes what ``HierarchicalNodeParser``, ``SentenceWindowNodeParser`` or any other parser made,
    all nodes of a docstore (``docstore.docs.values()``), ``IndexNode``s with the nodes they stand
    for, or what ``export_nodes`` made. Each level becomes a group, which can be searched, lifted
    and split further like any other. A result, and ``export_nodes``, give the old nodes again:
    ids, texts, metadata, templates, relationships. Vectors are left out: which model made them is
    not known.

    A node stands below its PARENT, else below the node that its ``index_id`` names, else below its
    SOURCE document. Where a SOURCE is not given, a document of its id is put together from its
    nodes, each at its ``start_char_idx`` where that fits, and with the metadata they share. A node
    without any of these is a document itself. Where nodes stand in their document is checked, and
    found out anew where it is not true.

    Importing more, or again, adds to the groups; a document whose id is known is replaced. What is
    added to the graph by other ways has no nodes in them. A graph that was kept in a file gets the
    same nodes imported again when it is opened, which builds nothing.

    Args:
        graph: The node graph.
        nodes: The nodes, and documents among them, in any order.
        documents: The documents that the nodes were made from.
        groups: Names by level, the first below the documents first; or a function from a node to
            its group's name. By default the group that ``export_nodes`` noted, else ``"level 1"``
            and so on.

    Raises:
        TypeError: If something is no node, or has more than a text (an image, a class of yours).
        ValueError: If a parent is missing, nodes stand below each other in a circle, two differ
            under one id, the names don't fit the levels, or a group is there with another rule.

    Example:
        >>> from llama_index.core.node_parser import SentenceWindowNodeParser
        >>> parser = SentenceWindowNodeParser.from_defaults(
        ...     sentence_splitter=lambda text: text.split("|"), window_size=1
        ... )
        >>> document = LlamaIndexDocument(text="One.|Two.|Three.", id_="numbers")
        >>> graph = NodeGraph()
        >>> made = import_nodes(
        ...     graph, parser.get_nodes_from_documents([document]), documents=[document],
        ...     groups=["sentence"],
        ... )
        >>> made.documents, made.groups
        (('numbers',), ('sentence',))
        >>> [(node.text, node.start, node.metadata["window"]) for node in graph.nodes("sentence")]
        [('One.', 0, 'One. Two.'), ('Two.', 5, 'One. Two. Three.'), ('Three.', 10, 'Two. Three.')]
    """
    forest = _Forest(nodes, documents)
    names = forest.groups(groups)
    made = forest.pieces(names)
    parents = _parent_groups(forest, names)
    for name in parents:
        if name in graph.groups and replayed(graph, name) is None:
            raise ValueError(
                f"the group {name!r} is there with another rule; name the groups of the import "
                "otherwise: groups=[...]"
            )
    ids = graph.add(list(forest.documents.values()))
    for name, parent in parents.items():
        before = replayed(graph, name)
        rule = Replay({**(before.pieces if before else {}), **made[name]})
        graph.create_node_group(name, rule, parent, version=rule.version, replace=True)
    return Imported(tuple(ids), tuple(parents), tuple(forest.blank))


class _Forest:
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
            self.documents[i] = _document(self.nodes.pop(i))
            del self.parents[i]
        self._put_together()
        self.depths = {i: self._depth(i) for i in self.nodes}

    def _take(self, node: BaseNode, given: bool) -> None:
        _check(node)
        i = node.node_id
        if given or isinstance(node, LlamaIndexDocument) or node.metadata.get(GROUP) == ROOT:
            made = _document(node)
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
            fields = [_fields(node) for node in nodes]
            shared = {
                name: deepcopy(value)
                for name, value in fields[0].items()
                if all(name in each and _same(each[name], value) for each in fields)
            }
            self.documents[i] = Document(_joined(nodes), shared, id=i)

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
        families: dict[str, dict[str, list[tuple[int | None, Node]]]] = defaultdict(dict)
        for i, name in names.items():
            node, parent = self.nodes[i], self.parents[i] or ""
            piece = _piece(node, known[parent])
            start = getattr(node, "start_char_idx", None)
            known[i] = Node(
                piece.text,
                start=start,
                inherited={**known[parent].inherited, **piece.own_metadata},
            )
            if not piece.text.strip():
                self.blank.append(i)
            families[name].setdefault(parent, []).append((start, piece))
        return {
            name: {parent: _ordered(found) for parent, found in of_parents.items()}
            for name, of_parents in families.items()
        }


def _parent_groups(forest: _Forest, names: Mapping[str, str]) -> dict[str, str]:
    """Return of each group its parent group, from the first level down."""
    parents: dict[str, str] = {}
    for i, name in names.items():
        above = names.get(forest.parents[i] or "", ROOT)
        if parents.setdefault(name, above) != above or name in (above, ROOT):
            raise ValueError(
                f"the nodes of group {name!r} stand below nodes of {parents[name]!r} and of "
                f"{above!r}; a group has one parent group: name them apart, groups=function"
            )
    return parents


def _piece(node: BaseNode, parent: Node) -> Node:
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
    fields = _fields(node)
    own: dict[str, Any] = {
        name: deepcopy(value)
        for name, value in fields.items()
        if name not in inherited or not _same(inherited[name], value)
    }
    form = _form(node)
    without = [name for name in inherited if name not in fields and name not in (ORIGIN, FORM)]
    if without:
        form["without"] = without
    own[ORIGIN] = node.node_id
    if form or FORM in inherited:
        own[FORM] = json.dumps(form, ensure_ascii=False)
    return own


def _document(node: BaseNode) -> Document:
    made = from_text_node(node)
    if isinstance(made, Node):
        return Document(made.text, made.own_metadata, id=made.id)
    form = _form(node)
    fields = _fields(node)
    more = {FORM: json.dumps(form, ensure_ascii=False)} if form else {}
    return Document(made.text, {**deepcopy(fields), **more}, id=node.node_id)


def _fields(node: BaseNode) -> dict[str, Any]:
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


def _joined(nodes: Sequence[BaseNode]) -> str:
    """Return the text of which nodes are parts, as far as they tell."""
    length = max(getattr(node, "end_char_idx", None) or 0 for node in nodes)
    letters: list[str | None] = [None] * length
    for node in nodes:
        text, start = node.get_content(), getattr(node, "start_char_idx", None)
        if start is None or start < 0 or start + len(text) > length:
            break
        for place, letter in enumerate(text, start):
            if letters[place] not in (None, letter):
                break
            letters[place] = letter
        else:
            continue
        break
    else:
        return "".join(" " if letter is None else letter for letter in letters)
    return "\n\n".join(node.get_content() for node in nodes)


def _ordered(found: Sequence[tuple[int | None, Node]]) -> list[Node]:
    starts = [-1 if start is None else start for start, _ in found]
    if -1 in starts:
        return [piece for _, piece in found]
    return [found[at][1] for at in sorted(range(len(found)), key=starts.__getitem__)]


def _same(one: Any, other: Any) -> bool:
    """Tell whether values are equal and of the same kind: 1 is not True."""
    return bool(one == other) and repr(one) == repr(other)


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
