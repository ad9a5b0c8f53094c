"""Several groups, searched as one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ...nodegraph import Node, NodeGraph
from ...nodegraph.find import path_to
from ..filters import Filters
from ..retriever import Retriever
from ..search import Search


class GroupPool(Retriever):
    """Search several groups as one."""

    def __init__(
        self,
        graph: NodeGraph | Sequence[NodeGraph],
        groups: Sequence[str],
        stays: Callable[[Node], bool] | None,
        *,
        pooled: bool,
        target: str | None,
        **settings: Any,
    ) -> None:
        super().__init__(graph, groups[0], target=target, **settings)
        self.groups = groups
        self.stays = stays
        self.pooled = pooled
        paths = [path_to(each, group) for each in self.graphs for group in groups]
        if target is None:  # every path begins with ROOT
            shared = (names[0] for names in zip(*paths, strict=False) if len(set(names)) == 1)
            self.target = list(shared)[-1]
            for each in self.graphs:
                each.ancestry(self.target)

    def _search(self, queries: Sequence[str], top_k: int | None, filters: Filters | None) -> Search:
        search = super()._search(queries, top_k, filters)
        return replace(search, groups=self.groups, stays=self.stays, pooled=self.pooled)


def check_groups(groups: Sequence[str]) -> list[str]:
    """Check the groups to search.

    Raises:
        TypeError: If they are no list of names.
        ValueError: If there is none.
    """
    if isinstance(groups, str) or not isinstance(groups, Sequence):
        raise TypeError(f"groups is a list of names, like ['sentence'], not {groups!r:.80}")
    if not groups:
        raise ValueError("groups=[] leaves nothing to search; give one name or more")
    return list(dict.fromkeys(groups))
