"""Pieces of one text: in which order they stand, and what text they make."""

from __future__ import annotations

from collections.abc import Sequence

from llama_index.core.schema import BaseNode


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
