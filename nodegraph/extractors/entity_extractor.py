"""A transform that extracts the names in passages."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..names import MAX_TITLE, Mentions, find_mentions, name_key, split_title
from ..node import Node

Finder = Callable[[str], Iterable[str]]
"""A function that takes the text of a passage and returns the names in it."""


class EntityExtractor:
    """A transform that finds names in passages, so that passages with a common name can be linked.

    It creates one node per passage, which contains the possible names. ``LinkRetriever(...,
    via=group)`` uses these nodes to link the passages.

    By default, names are titles of passages, which are taken from the metadata or from a short
    first line, and phrases of capitalized words, even as part of longer phrases. In scripts without
    spaces between words, a name must be marked with 《》 or other quotation marks at least once in
    the corpus. The spelling in other passages determines whether the first word of a sentence is
    part of a name (Lita et al., "tRuEcasIng", 2003). Names are compared without regard to case,
    accents, possessives, articles, punctuation and remarks in parentheses at the end. The running
    time is linear in the size of the corpus.

    A name that occurs in more than 100 passages creates no links. A name that occurs in only one
    passage creates links only if it is the title of that passage.

    Args:
        find: A function that takes the text of a passage and returns the names in it, for example
            with a model or a dictionary. If None, names are found as described above.

    Raises:
        TypeError: If ``find`` cannot be called.

    Example:
        >>> from nodekin.nodegraph import Node
        >>> passage = Node("Brand (play)\\nA play by Henrik Ibsen.")
        >>> extractor = EntityExtractor()
        >>> extractor(passage).text, extractor.mentions(passage).runs
        ('Brand (play)', '.A\\nHenrik Ibsen')
    """

    trans_node = True
    rules = 4  # Nodes are rebuilt if this number changes.

    def __init__(self, find: Finder | None = None) -> None:
        if find is not None and not callable(find):
            raise TypeError(f"find must be a function from a text to names, got {find!r:.80}")
        self.find = find

    def __repr__(self) -> str:
        return f"EntityExtractor({self.find!r})"

    def __call__(self, passage: Node) -> Node:
        """Return a node that contains the possible names in a passage."""
        if not isinstance(passage, Node):
            raise TypeError(
                "EntityExtractor reads one passage: declare its group without scope='group'"
            )
        mentions = self.mentions(passage)
        text = mentions.title.strip() or passage.text.strip()
        return Node(text[:MAX_TITLE], content=[*mentions])

    def mentions(self, passage: Node) -> Mentions:
        """Return the possible names in a passage."""
        title, body = split_title(passage)
        if self.find is None:
            return find_mentions(title, body)
        names = self.find(body)
        if isinstance(names, str):
            raise TypeError(f"find must return several names, got one text: {names!r:.80}")
        by_key: dict[str, str] = {}
        for name in names:
            if key := name_key(name):
                by_key.setdefault(key, name)
        return Mentions(title, by_key)
