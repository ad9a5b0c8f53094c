"""Make the nodes of one group from one document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .document import digest, full_digest, metadata_digest
from .group import NodeGroup
from .node import NO_METADATA, ROOT, Node
from .store import Derivation
from .transform import Draft

if TYPE_CHECKING:
    from .graph import NodeGraph


def derivation_key(group: NodeGroup, root: Node, above: Derivation | None) -> str:
    """Name what a group's nodes of one document are made from, and how.

    The text for a rule that sees texts, the document's metadata too for one that sees nodes;
    the parent group's key where the parent is not the documents.
    """
    parts = [group.version, above.key if above else digest(root.text)]
    if group.trans_node:
        parts.append(metadata_digest(root.own_metadata))
    return digest(*parts)


def reusable(
    group: NodeGroup, key: str, parents: Sequence[Node], old: Derivation | None
) -> dict[str, list[Draft]]:
    """Collect what need not be made again: by parent id, which stands for the parent's text.

    All of it where only the metadata changed. Otherwise not what came from rules that see nodes,
    which may look around, and not what came from a document, which keeps its id when its text
    changes.
    """
    if old is None or old.rule != group.version:
        return {}
    if old.key != key and (group.trans_node or group.parent == ROOT):
        return {}
    # Of a parent that has no nodes it is known that it makes none only if nothing has changed.
    families: dict[str, list[Draft]] = {each.id: [] for each in parents if old.key == key}
    for node in old.nodes:
        content = None if node.content == node.text else node.content
        end = None if node.offset is None else node.offset + len(node.text)
        draft = Draft(node.text, content, node.own_metadata, node.offset, end)
        families.setdefault(node.parent_id or "", []).append(draft)
    return families


def derive(
    group: NodeGroup,
    key: str,
    root: Node,
    families: Sequence[tuple[Node, Sequence[Draft]]],
    graph: NodeGraph,
) -> Derivation:
    """Give the drafts their ids, spans and places.

    Args:
        group: The group to be made.
        key: Its derivation key.
        root: The document, a node of ``ROOT``.
        families: Each parent with what was made of it, in document order.
        graph: What the nodes belong to.
    """
    nodes: list[Node] = []
    seen: Counter[str] = Counter()
    for parent, made in families:
        inherited = parent.metadata if parent.own_metadata else parent.inherited
        for draft in made:
            identity = draft.text
            if draft.content is not None and draft.content != draft.text:
                identity = f"{draft.text}\0{draft.content!r}"
            occurrence = seen[identity]
            seen[identity] += 1
            start = end = None
            if draft.start is not None and parent.start is not None:
                start, end = (
                    parent.start + draft.start,
                    parent.start + draft.start + len(draft.text),
                )
            nodes.append(
                Node(
                    draft.text,
                    draft.metadata or NO_METADATA,
                    draft.content,
                    start,
                    end,
                    digest(root.id, group.name, identity, str(occurrence)),
                    group.name,
                    root.id,
                    parent.id,
                    draft.start,
                    root.order + len(nodes),
                    inherited,
                    graph,
                )
            )
    return Derivation(key, group.version, full_digest(root.own_metadata), tuple(nodes))
