"""A transform that finds the names in passages."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..names import MAX_TITLE, Mentions, find_mentions, name_key, split_title
from ..node import Node

Finder = Callable[[str], Iterable[str]]
"""A function from the text of a passage to the names in it."""


class EntityExtractor:
    """A transform that finds the names in each passage, to link passages with a common name.

    Each passage gets one node with its possible names. ``LinkRetriever(..., via=group)`` links the
    passages.

    Without ``find``, names are the titles of passages (from the metadata, otherwise from a short
    first line) and phrases of capitalized words, even inside longer phrases. In scripts without
    spaces, names are the texts in 《》 and other quotation marks, wherever they occur. The spelling
    in other passages decides whether the first word of a sentence belongs to a name (Lita et al.,
    "tRuEcasIng", 2003). Case, accents, possessives, articles, punctuation and final remarks in
    brackets are ignored when names are compared. The cost is linear in the size of the corpus.

    Names in more than 100 passages link nothing. Neither do names in a single passage, unless they
    are its title.

    Args:
        find: A function from the text of a passage to the names in it, such as a model or a
            dictionary. If None, names are found as above.

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
    rules = 4  # a new number rebuilds the nodes

    def __init__(self, find: Finder | None = None) -> None:
        if find is not None and not callable(find):
            raise TypeError(f"find must be a function from a text to names, got {find!r:.80}")
        self.find = find

    def __repr__(self) -> str:
        return f"EntityExtractor({self.find!r})"

    def __call__(self, passage: Node) -> Node:
        """Return a node with the possible names of a passage."""
        if not isinstance(passage, Node):
            raise TypeError(
                "EntityExtractor reads one passage: declare its group without scope='group'"
            )
        mentions = self.mentions(passage)
        text = mentions.title.strip() or passage.text.strip()
        return Node(text[:MAX_TITLE], content=[*mentions])

    def mentions(self, passage: Node) -> Mentions:
        """Return the possible names of a passage."""
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
