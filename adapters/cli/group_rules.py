"""The groups of an index: read from ``name=transform``, kept in JSON, declared on a graph."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ...nodegraph.graph import NodeGraph
from ...nodegraph.splitters.headings import MarkdownSplitter
from ...nodegraph.splitters.passage_splitter import PassageSplitter
from ...nodegraph.splitters.sentences import SentenceSplitter, split_paragraphs, split_sentences

TRANSFORMS = {
    "passages": "what belongs together, paragraphs packed up to SIZE tokens (320)",
    "paragraphs": "paragraphs as they are",
    "sentences": "single sentences",
    "lines": "single lines",
    "sections": "what stands below each Markdown heading, in parts of SIZE tokens if given",
    "chunks": "whole sentences up to SIZE tokens, OVERLAP of them repeated (256:25)",
}

_SIZED = frozenset({"passages", "sections", "chunks"})

_SYNTAX = "NAME=TRANSFORM[:SIZE[:OVERLAP]][@PARENT]"

_RULE = re.compile(r"([^=@:\s]+)=([a-z]+)(?::(\d+)(?::(\d+))?)?(?:@([^=@:\s]+))?")


@dataclass(frozen=True, slots=True)
class GroupRule:
    """Say how one group of an index is made.

    Raises:
        ValueError: If there is no such transform, or a size is out of range.
    """

    name: str
    transform: str
    size: int | None = None
    overlap: int | None = None
    parent: str = "ROOT"

    def __post_init__(self) -> None:
        numbers = [n for n in (self.size, self.overlap) if n is not None]
        if not all(isinstance(text, str) for text in (self.name, self.parent)) or not all(
            isinstance(number, int) for number in numbers
        ):
            raise ValueError(
                "a group has texts as name and parent, and whole numbers as size and overlap, not "
                f"{(self.name, self.parent, self.size, self.overlap)!r:.80}"
            )
        if self.transform not in TRANSFORMS:
            raise ValueError(
                f"no transform {self.transform!r} for the group {self.name!r}; there is "
                f"{', '.join(TRANSFORMS)}"
            )
        if self.size is not None and self.transform not in _SIZED:
            raise ValueError(
                f"the transform {self.transform!r} takes no size; {', '.join(sorted(_SIZED))} do"
            )
        if self.size == 0 or (self.overlap or 0) >= (self.size or 256):
            raise ValueError(
                f"the group {self.name!r} has size {self.size} and overlap {self.overlap}; the "
                "size has to be 1 or more, and the overlap less than it"
            )
        if self.overlap and self.transform == "passages":
            raise ValueError(f"passages don't overlap; leave {self.overlap} out, or take chunks")

    def __str__(self) -> str:
        parent = "" if self.parent == "ROOT" else f"@{self.parent}"
        return f"{self.name}={self.transform_spec}{parent}"

    @property
    def transform_spec(self) -> str:
        """The transform with its sizes: ``chunks:256:25``."""
        sizes = "".join(f":{item}" for item in (self.size, self.overlap) if item is not None)
        return f"{self.transform}{sizes}"

    def declare(self, graph: NodeGraph) -> None:
        """Declare the group on a graph, where a group of that name gives way.

        It has the rule that it has in Python, so that a default retriever finds it there.
        """
        graph.create_node_group(self.name, self._transform(), self.parent, replace=True)

    def _transform(self) -> Any:
        if self.transform == "passages":
            return PassageSplitter if self.size is None else PassageSplitter(self.size)
        if self.transform == "chunks":
            overlap = 25 if self.size is None and self.overlap is None else self.overlap or 0
            return SentenceSplitter(self.size or 256, overlap)
        if self.transform == "sections":
            return MarkdownSplitter(chunk_size=self.size, chunk_overlap=self.overlap or 0)
        plain: dict[str, Any] = {"paragraphs": split_paragraphs, "sentences": split_sentences}
        return plain.get(self.transform, split_lines)


DEFAULT_RULES = (
    GroupRule("passage", "passages"),
    GroupRule("sentence", "sentences", parent="passage"),
)


def split_lines(text: str) -> list[str]:
    """Split a text into its lines, blank ones left out.

    Example:
        >>> split_lines("one\\n\\n 二 \\n")
        ['one', '二']
    """
    return [line.strip() for line in text.split("\n") if line.strip()]


def parse_rules(definitions: Iterable[str], base: Iterable[GroupRule]) -> tuple[GroupRule, ...]:
    """Put the rules that were given into those there are, parents before what is made of them.

    Raises:
        ValueError: If one is not of the form, or its parent is unknown.

    Example:
        >>> [str(rule) for rule in parse_rules(["part=chunks:64:8@passage"], DEFAULT_RULES)]
        ['passage=passages', 'sentence=sentences@passage', 'part=chunks:64:8@passage']
    """
    rules = {rule.name: rule for rule in base}
    for item in definitions:
        match = _RULE.fullmatch(item.strip())
        if match is None:
            raise ValueError(f"the group {item!r} is not of the form {_SYNTAX}")
        name, transform, *sizes, parent = match.groups()
        size, overlap = (None if number is None else int(number) for number in sizes)
        rules[name] = GroupRule(name, transform, size, overlap, parent or "ROOT")
    return _in_order(rules)


_PREDEFINED = ("ROOT", "CoarseChunk", "MediumChunk", "FineChunk")


def _in_order(rules: dict[str, GroupRule]) -> tuple[GroupRule, ...]:
    done: dict[str, GroupRule] = {}
    waiting = dict(rules)
    while waiting:
        ready = [
            name
            for name, rule in waiting.items()
            if rule.parent in _PREDEFINED or rule.parent in done
        ]
        if not ready:
            rule = next(iter(waiting.values()))
            names = ", ".join([*_PREDEFINED, *rules])
            raise ValueError(
                f"the group {str(rule)!r} has no parent {rule.parent!r} that is made before it; "
                f"there is {names}"
            )
        done.update((name, waiting.pop(name)) for name in ready)
    return tuple(done.values())
