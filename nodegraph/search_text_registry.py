"""Look up which search text holds for a group, and apply it to nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from .groups import NodeGroup
from .hashing import digest
from .node import ROOT, Node
from .search_text import DEFAULT, SearchText, SearchTextRule, rule_version


class DeclaredSearchText(NamedTuple):
    """Hold the search text of a group.

    Attributes:
        rule: Makes the text of a node; None where its document decides.
        version: Hash of what decides about the texts beside the nodes.
        groups: The groups whose texts are searched with those of the nodes.
    """

    rule: SearchTextRule | None
    version: str
    groups: tuple[str, ...]


class _Inherited(NamedTuple):
    inherited: Mapping[str, Any]
    rule: SearchText


_BY_DOCUMENT = digest("by document", DEFAULT.version)


class SearchTextRegistry:
    """Apply the search text of the group, else of the graph, else of the node's document.

    Args:
        default: The graph's search text; None for what the documents declare.
        lineage: Returns a group with those above it.
    """

    def __init__(
        self, default: SearchTextRule | None, lineage: Callable[[str], Sequence[NodeGroup]]
    ) -> None:
        self._default = default
        self._lineage = lineage

    def rule(self, group: str) -> SearchTextRule | None:
        """Return what was declared for a group; None where the documents decide."""
        if group == ROOT:
            return self._default
        try:
            declared = self._lineage(group)[-1].search_text
        except LookupError:  # a group of an earlier process
            declared = None
        return self._default if declared is None else declared

    def declared(self, group: str) -> DeclaredSearchText:
        """Return what was declared for a group, with its version."""
        rule = self.rule(group)
        groups = rule.groups if isinstance(rule, SearchText) else ()
        return DeclaredSearchText(rule, _version(rule), groups)

    def texts(self, nodes: Sequence[Node]) -> list[str]:
        """Return what is searched of each node.

        Raises:
            ValueError: If a function fails on a node.
            TypeError: If it returns no text.
        """
        rules: dict[str, SearchTextRule | None] = {}
        texts = []
        added, last = "", None  # most nodes have the metadata of their neighbours
        for node in nodes:
            if node.group not in rules:
                rules[node.group] = self.rule(node.group)
            rule = rules[node.group] or node.search_text or node.inherited_search_text or DEFAULT
            if not isinstance(rule, SearchText):
                texts.append(_call(rule, node))
            elif node.own_metadata or rule.groups:
                texts.append(rule(node))
            else:
                if last is None or node.inherited is not last.inherited or rule is not last.rule:
                    added, last = rule.added_text(node), _Inherited(node.inherited, rule)
                texts.append(rule.compose(added, node.text) if added else node.text)
        return texts


def _call(rule: SearchTextRule, node: Node) -> str:
    try:
        text = rule(node)
    except Exception as error:
        raise ValueError(
            f"the search_text of group {node.group!r} failed on {node!r}: "
            f"{type(error).__name__}: {error}; let it return node.text where it has nothing to add"
        ) from error
    if not isinstance(text, str):
        raise TypeError(
            f"the search_text of group {node.group!r} returned {text!r:.80} for {node!r}; it "
            "returns the text to search"
        )
    return text


def _version(rule: SearchTextRule | None) -> str:
    return _BY_DOCUMENT if rule is None else rule_version(rule)
