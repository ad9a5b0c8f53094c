"""Find what passages are about and mention, without a model, and link it to them."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from ..errors import check_integer
from ..node import MEMBER, LinkedText, Node
from ..transforms import Draft, RankedDraft
from .name_index import Finder, NameIndex, TitledText

_SENTENCE_END = re.compile(r"[.!?,;:。！？，；：、]$")

_TITLE = 100  # characters in a first line that is a title


class EntityExtractor:
    """Make a node of each entity, linked to the passages that mention it. For ``scope="group"``.

    Without a ``find`` of yours, entities are: titles of passages (from the metadata, else a
    short first line). Phrases of capitalised words, also inside longer ones. In scripts without
    spaces, what stands in 《》 and other quotation marks, wherever else it stands too. The first
    word of a sentence is taken by how the corpus writes it elsewhere (Lita et al., "tRuEcasIng",
    2003). Names are compared without case, accents, possessives, articles, punctuation and
    remarks in brackets at their end. The cost is linear in the corpus.

    A node's text is the name as it was first written. Its metadata has ``about``, the ids of the
    passages it is the title of, and, if there are any, ``in_titles``, the ids of those in whose
    title it stands among other words. Choose ``find`` where a model or a dictionary knows the
    names.

    Args:
        find: Takes a passage's text, returns the names in it.
        title: The metadata field that has a passage's title.
        min_passages: Entities in fewer passages are left out, unless they are a title.
        max_passages: Entities in more passages are left out: where all meet, no way leads on.

    Raises:
        TypeError: If ``find`` can't be called, or a number has the wrong type.
        ValueError: If a number is out of range.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> graph = NodeGraph()
        >>> ids = graph.add(["Brand (play)\\nA play by Henrik Ibsen.", "Henrik Ibsen\\nHe wrote."])
        >>> graph.create_node_group("entity", EntityExtractor(), scope="group")
        >>> [(node.text, len(graph.linked(node))) for node in graph.nodes("entity")]
        [('Brand (play)', 1), ('Henrik Ibsen', 2)]
    """

    trans_node = True

    def __init__(
        self,
        find: Finder | None = None,
        *,
        title: str = "title",
        min_passages: int = 2,
        max_passages: int = 100,
    ) -> None:
        if find is not None and not callable(find):
            raise TypeError(f"find is a callable from a text to names, not {find!r:.80}")
        check_integer(min_passages, "min_passages")
        check_integer(max_passages, "max_passages")
        if not 1 <= min_passages <= max_passages:
            raise ValueError(
                "min_passages is 1 or more and no more than max_passages, "
                f"not {min_passages}, {max_passages}"
            )
        self.find = find
        self.title = title
        self.min_passages = min_passages
        self.max_passages = max_passages
        self.rules = 2  # what was built by other rules is built again

    def __repr__(self) -> str:
        limits = f"min_passages={self.min_passages}, max_passages={self.max_passages}"
        return f"EntityExtractor({self.find!r}, {limits})"

    def __call__(self, passages: Sequence[Node]) -> list[LinkedText]:
        """Return the entities, in the order of the first passages that name them."""
        by_id = {passage.id: passage for passage in passages}
        entities = EntityFollower(self).update((), passages)
        ranked = sorted((e for e in entities.values() if e is not None), key=lambda e: e.rank)
        return [
            LinkedText(Node(draft.text, draft.metadata), [by_id[i] for _, i in draft.links])
            for _, draft in ranked
        ]

    def follower(self) -> EntityFollower:
        """Return what makes entities of passages, and makes them again where passages change.

        A graph calls this instead of the extractor: one document more costs what it touches.
        """
        return EntityFollower(self)


class EntityFollower:
    """Keep entities up to date with the passages that they are found in.

    Args:
        extractor: The settings.
    """

    def __init__(self, extractor: EntityExtractor) -> None:
        self._extractor = extractor
        self._names = NameIndex(extractor.find)

    def update(
        self, removed: Collection[str], added: Sequence[Node]
    ) -> dict[str, RankedDraft | None]:
        """Return the entities that may have changed, by key. None for what is no entity."""
        sources = [
            TitledText(node.id, node.order, title, body)
            for node in added
            for title, body in [_titled(node, self._extractor.title)]
        ]
        return {key: self._entity(key) for key in self._names.update(removed, sources)}

    def _entity(self, key: str) -> RankedDraft | None:
        """Return an entity. None if it is in too few or too many passages."""
        count = self._names.count(key)
        if not count or count > self._extractor.max_passages:
            return None
        about = [passage.id for passage in self._names.about(key)]
        if count < self._extractor.min_passages and not about:
            return None
        passages = self._names.passages(key)
        links = tuple((MEMBER, passage.id) for passage in passages)
        first = passages[0]
        metadata = {"about": about}
        if in_titles := [passage.id for passage in self._names.in_titles(key)]:
            metadata["in_titles"] = in_titles
        draft = Draft(self._names.spelling(key), None, metadata, links=links)
        return RankedDraft((first.order, first.id not in about, key), draft)


def has_title(passage: Node, field: str = "title") -> bool:
    """Return whether a passage has a title: in its metadata, else a short first line."""
    return bool(_titled(passage, field)[0])


def _titled(passage: Node, field: str) -> tuple[str, str]:
    """Return a passage's title, empty where it has none, and the text without it."""
    title, body = passage.metadata.get(field), passage.text
    if isinstance(title, str):
        return title, body
    head, _, remaining = body.partition("\n")
    head = head.strip().lstrip("#").strip()
    wrapped = (
        _SENTENCE_END.search(head) or remaining.lstrip()[:1].islower()
    )  # goes on in lower case
    if wrapped or not remaining.strip() or len(head) > _TITLE:
        return "", body
    return (head, remaining) if head else ("", body)
