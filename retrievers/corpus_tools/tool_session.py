"""What a conversation has read: shown once, and referred to afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ...nodegraph.node import Node

Interval = tuple[int, int]


@dataclass(slots=True)
class ToolSession:
    """Remember which parts of which documents a conversation was shown in full.

    Keep one for each conversation, and give it to every call of its tools. A part that was shown
    is not shown again, but named. Not for several threads at once.
    """

    _shown: dict[str, list[Interval]] = field(default_factory=dict)

    def show(self, document_id: str, begin: int, end: int) -> None:
        """Remember that these characters of a document were shown."""
        merged: list[Interval] = []
        for interval in sorted([*self._shown.get(document_id, ()), (begin, end)]):
            if merged and interval[0] <= merged[-1][1]:
                merged[-1] = merged[-1][0], max(merged[-1][1], interval[1])
            else:
                merged.append(interval)
        self._shown[document_id] = merged

    def has_shown(self, document_id: str, begin: int, end: int) -> bool:
        """Return whether all these characters of a document were shown."""
        return any(a <= begin and end <= b for a, b in self._shown.get(document_id, ()))

    def knows(self, document_id: str) -> bool:
        """Return whether anything of a document was shown, and its title with it."""
        return document_id in self._shown

    def unseen(self, document: Node, begin: int, end: int, least: int = 1) -> list[Interval]:
        """Return the parts of these characters of a document that were not shown, in order.

        White space alone is no part. What was shown between two parts is shown again, as one with
        them, if it has less than ``least`` characters: a reference would be as long.
        """
        parts, at = list[Interval](), begin
        for a, b in self._shown.get(document.id, ()):
            if min(b, end) - max(a, at) >= least:
                parts.append((at, max(a, at)))
                at = min(b, end)
        return [(a, b) for a, b in [*parts, (at, end)] if document.text[a:b].strip()]

    def clear(self) -> None:
        """Forget everything."""
        self._shown.clear()


def span_of(node: Node) -> Interval | None:
    """Return where a node stands in its document, in characters; None where it is not a part."""
    if node.group == "ROOT":
        return 0, len(node.text)
    return None if node.start is None or node.end is None else (node.start, node.end)


def joined(spans: Sequence[Interval], gap: int) -> list[Interval]:
    """Return spans in order; those that overlap, or are no further apart than a gap, as one."""
    result: list[Interval] = []
    for begin, end in sorted(spans):
        if result and begin - result[-1][1] <= gap:
            result[-1] = result[-1][0], max(result[-1][1], end)
        else:
            result.append((begin, end))
    return result
