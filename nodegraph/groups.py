"""Definitions of node groups, and functions to register them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from .errors import UnknownGroupError, check_integer, nearest_names
from .hashing import digest, fingerprint
from .node import ROOT
from .search_text import SearchTextRule, as_search_text, rule_version
from .splitters.structure import PREDEFINED_STRUCTURE
from .transforms import Rule, as_rule

Scope = Literal["node", "group"]


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """The definition of a node group.

    Attributes:
        name: The name of the group.
        parent: The name of the parent group.
        version: A hash of the name, the parent, ``scope``, ``trans_node`` and the transform's
            version.
        transform_version: The version set by the user, or a fingerprint of the transform and its
            settings.
        rule: A function that derives the nodes from a parent node.
        num_workers: The number of threads for the transform. With 0 or 1, it runs in the calling
            thread.
        scope: If ``"node"``, the transform receives one parent node. If ``"group"``, it receives
            all nodes of the parent group.
        search_text: Determines the text that is indexed and embedded for each node. Defaults to the
            setting of the graph, or else of the document. It is not part of the version, because
            the nodes do not depend on it.
        by_span: Whether nodes with only a common ancestor are related only if their positions
            overlap.
    """

    name: str
    parent: str
    version: str
    transform_version: str
    rule: Rule = field(repr=False, compare=False)
    num_workers: int = 0
    scope: Scope = "node"
    search_text: SearchTextRule | None = field(default=None, repr=False, compare=False)
    by_span: bool = False


Lineage: TypeAlias = Sequence[NodeGroup]
"""A group and its ancestors, topmost first. ``ROOT`` is not included."""


@dataclass(frozen=True, slots=True)
class GroupSummary:
    """A summary of a group: its parent, its size and whether it is up to date.

    Attributes:
        name: The name of the group.
        parent: The name of the parent group, or None for ``ROOT``.
        size: The number of stored nodes, which is 0 before the first build. An outdated group keeps
            the nodes of its last build.
        built: Whether the group is up to date with the current documents.
    """

    name: str
    parent: str | None
    size: int
    built: bool


def make_group(
    name: str,
    transform: object,
    parent: str,
    trans_node: bool | None,
    num_workers: int,
    version: str | None,
    settings: Mapping[str, Any],
    scope: Scope = "node",
    search_text: object = None,
) -> NodeGroup:
    """Validate the arguments and create a group.

    Raises:
        TypeError: If the transform is not supported, or if a name is not a string.
        ValueError: If a name is empty or ``ROOT``, if the group is its own parent, if the scope is
            unknown, or if ``num_workers`` is negative.
    """
    for what, value in (("group name", name), ("parent", parent)):
        if not isinstance(value, str):
            raise TypeError(f"{what} must be a str, got {value!r:.80}")
    if not name.strip() or name == ROOT:
        raise ValueError(f"group name must not be blank or 'ROOT', got {name!r}")
    if name == parent:
        raise ValueError(f"group {name!r} cannot be its own parent; the default parent is {ROOT!r}")
    check_integer(num_workers, "num_workers", 0)
    if scope not in ("node", "group"):
        raise ValueError(f'scope must be "node" or "group", got {scope!r}')
    # The transform receives nodes, so that its results can be linked to them.
    if scope == "group" and trans_node is None:
        trans_node = getattr(transform, "trans_node", True)
    rule = as_rule(transform, trans_node, settings)
    if version is None:
        version = fingerprint((transform, dict(settings)))
    parts = ["node group", name, parent, str(rule.trans_node), version]
    if scope == "group":
        parts.append(scope)
    full = digest(*parts)
    searched = as_search_text(search_text)
    return NodeGroup(name, parent, full, version, rule, num_workers, scope, searched)


def declare(groups: dict[str, NodeGroup], group: NodeGroup, replace: bool) -> None:
    """Add a group to the registered groups.

    Args:
        groups: The registered groups, keyed by name.
        group: The group to add.
        replace: Whether to replace an existing group that has a different definition.

    Raises:
        UnknownGroupError: If the parent group is unknown.
        ValueError: If the group exists with a different definition or ``search_text`` and
            ``replace`` is False, or if the group would be its own ancestor.
    """
    above = [ancestor.name for ancestor in lineage_of(groups, group.parent)]
    old = groups.get(group.name)
    if old is not None and not replace:
        if old.version != group.version:
            raise ValueError(
                f"group {group.name!r} already exists with another rule (parent {old.parent!r}); "
                "choose another name, or pass replace=True to rebuild it"
            )
        searched = {g.search_text and rule_version(g.search_text) for g in (old, group)}
        if len(searched) > 1:
            raise ValueError(
                f"group {group.name!r} already exists with another search_text; pass an equal "
                "search_text, or replace=True to change it without a rebuild"
            )
    if group.name in above:
        raise ValueError(
            f"group {group.name!r} cannot be derived from {group.parent!r}, which is derived "
            f"from {group.name!r}"
        )
    groups[group.name] = group


def lineage_of(groups: dict[str, NodeGroup], name: str) -> list[NodeGroup]:
    """Return a group and its ancestors, topmost first. ``ROOT`` is not included.

    A predefined group is registered when it is first used, unless its name is already taken.

    Raises:
        UnknownGroupError: If the group is unknown.
    """
    lineage: list[NodeGroup] = []
    while name != ROOT:
        if name not in groups and name in PREDEFINED_STRUCTURE:
            transform = PREDEFINED_STRUCTURE[name]
            group = make_group(name, transform, ROOT, None, 0, f"nodekin {name} 1", {})
            groups.setdefault(name, replace(group, by_span=True))
        if name not in groups:
            names = [*groups, ROOT, *PREDEFINED_STRUCTURE]
            raise UnknownGroupError(
                f"unknown group {name!r}, registered groups: "
                f"{nearest_names(str(name), names, limit=20)}; register it with create_node_group"
            )
        lineage.insert(0, groups[name])
        name = groups[name].parent
    return lineage
