"""Find what passages are about and mention, without a model, and link it to them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

from ..errors import check_integer
from ..node import LinkedText, Node
from .entity_names import find_names, name_key

_SENTENCE_END = re.compile(r"[.!?,;:。！？，；：、]$")

_TITLE = 100  # characters in a first line that is a title

Finder = Callable[[str], Iterable[str]]
"""Takes a passage's text; returns the names in it."""


class EntityExtractor:
    """Make a node of each entity, linked to the passages that mention it; for ``scope="group"``.

    Without a ``find`` of yours, entities are: titles of passages (from the metadata, else a
    short first line); phrases of capitalised words, also inside longer ones; in scripts without
    spaces, what stands in 《》 and other quotation marks, wherever else it stands too. The first
    word of a sentence is taken by how the corpus writes it elsewhere (Lita et al., "tRuEcasIng",
    2003). Names are compared without case, accents, possessives, articles, punctuation and
    remarks in brackets at their end. The cost is linear in the corpus.

    A node's text is the name as it was first written; its metadata has ``about``, the ids of the
    passages it is the title of. Choose ``find`` where a model or a dictionary knows the names.

    Args:
        find: Takes a passage's text, returns the names in it.
        title: The metadata field that has a passage's title.
        min_passages: Entities in fewer passages are left out, unless they are a title.
        max_passages: Entities in more passages are left out: where all meet, no way leads on.

    Raises:
        TypeError: If ``find`` can't be called, or a number is none.
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

    def __repr__(self) -> str:
        limits = f"min_passages={self.min_passages}, max_passages={self.max_passages}"
        return f"EntityExtractor({self.find!r}, {limits})"

    def __call__(self, passages: Sequence[Node]) -> list[LinkedText]:
        """Return the entities, in the order in which passages name them first."""
        titles, bodies = _titles(passages, self.title)
        spellings: dict[str, str] = {}
        about: defaultdict[str, list[int]] = defaultdict(list)
        for at, title in enumerate(titles):
            if key := name_key(title):
                about[key].append(at)
                spellings.setdefault(key, title)
        if self.find is None:
            named = find_names(bodies, about, spellings)
        else:
            named = _names_by(self.find, bodies, spellings)
        passages_of: dict[str, list[int]] = {}
        for at, keys in enumerate(named):
            for key in filter(None, dict.fromkeys([name_key(titles[at]), *keys])):
                passages_of.setdefault(key, []).append(at)
        return [
            LinkedText(
                Node(spellings[key], {"about": [passages[at].id for at in about.get(key, ())]}),
                [passages[at] for at in places],
            )
            for key, places in passages_of.items()
            if len(places) <= self.max_passages
            and (len(places) >= self.min_passages or key in about)
        ]


def has_title(passage: Node, field: str = "title") -> bool:
    """Return whether a passage has a title: in its metadata, else a short first line."""
    return bool(_titles([passage], field)[0][0])


def _titles(passages: Sequence[Node], field: str) -> tuple[list[str], list[str]]:
    """Return each passage's title, empty where it has none, and the text without it."""
    titles, bodies = [], []
    for passage in passages:
        title, body = passage.metadata.get(field), passage.text
        if not isinstance(title, str):
            head, _, rest = body.partition("\n")
            head = head.strip().lstrip("#").strip()
            # A line that was wrapped goes on in lower case.
            wrapped = _SENTENCE_END.search(head) or rest.lstrip()[:1].islower()
            title = "" if wrapped or not rest.strip() or len(head) > _TITLE else head
            body = rest if title else body
        titles.append(title)
        bodies.append(body)
    return titles, bodies


def _names_by(
    find: Finder, bodies: Sequence[str], spellings: dict[str, str]
) -> Iterator[list[str]]:
    """Yield, for every text, the keys of the names that the user's callable returns."""
    for body in bodies:
        names = find(body)
        if isinstance(names, str):
            raise TypeError(f"find returns several names, not one text: {names!r:.80}")
        keys = {name_key(name): name for name in names}
        for key, name in keys.items():
            spellings.setdefault(key, name)
        yield [key for key in keys if key]
