"""The groups of a graph: who is made from whom."""

from __future__ import annotations

from collections.abc import Iterator

from .errors import UnknownGroupError, nearest
from .group import NodeGroup
from .node import ROOT


class GroupRegistry:
    """Keep the declared groups; each has a parent that is declared too, or is ``ROOT``."""

    def __init__(self) -> None:
        self._groups: dict[str, NodeGroup] = {}

    def __iter__(self) -> Iterator[NodeGroup]:
        return iter(list(self._groups.values()))

    def declare(self, group: NodeGroup, replace: bool) -> None:
        """Take in a group.

        Raises:
            UnknownGroupError: If there is no parent group.
            ValueError: If the group exists with another rule and ``replace`` is not given, or
                the group would be its own ancestor.
        """
        above = [each.name for each in self.lineage(group.parent)]
        old = self._groups.get(group.name)
        if old is not None and old.version != group.version and not replace:
            raise ValueError(
                f"group {group.name!r} exists with another rule (parent {old.parent!r}); give "
                "another name, or replace=True to make it anew by this rule"
            )
        if group.name in above:
            raise ValueError(
                f"group {group.name!r} can't be made from {group.parent!r}, which is made from "
                f"{group.name!r}"
            )
        self._groups[group.name] = group

    def lineage(self, name: str) -> list[NodeGroup]:
        """Return the groups from the first below ``ROOT`` down to this one; none for ``ROOT``.

        Raises:
            UnknownGroupError: If there is no such group.
        """
        lineage: list[NodeGroup] = []
        while name != ROOT:
            group = self._groups.get(name)
            if group is None:
                raise UnknownGroupError(
                    f"no node group {name!r}; the graph has "
                    f"{nearest(str(name), [ROOT, *self._groups])}: declare it first with "
                    "create_node_group"
                )
            lineage.insert(0, group)
            name = group.parent
        return lineage
