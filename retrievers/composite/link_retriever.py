"""A retriever that follows links from matching passages to passages that do not match the query."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ...nodegraph.graph import NodeGraph
from ..base_retriever import BaseRetriever
from ..branch import words_branch
from ..call import Call, limit_tokens
from ..filters import Filters, all_of, parse_filters
from ..foreign.foreign_retriever import as_retriever, check_in_graph
from ..plans.effects import find_all
from ..plans.plan import Do
from ..protocols import RetrieverLike
from ..results import Results
from ..retrieval_conditions import HitConditions
from ..search import View, search
from ..similarities.bm25 import Bm25
from ..tracing import start_span
from ..validation import check_top_k, number, whole
from .link_index import LinkIndex
from .link_search import FOLLOW_LINKS, SEEDS, LinkSearch


class LinkRetriever(BaseRetriever):
    """A retriever that follows links from the best results and ranks pairs of linked passages.

    Use it for multi-hop questions. For example, one passage names the author of a book, and another
    passage, found through this name, describes the author's education. If a single passage contains
    the answer, the first result usually stays the same. To follow longer chains of links, nest one
    ``LinkRetriever`` in another.

    If the title of a passage occurs literally in the query, the passage is ranked before the first
    result with the same score. If several passages have this title, the two that match the query
    best are used. The words of the title are then counted only in passages that contain the whole
    title.

    Each of the first ``seeds`` results forms a pair with each passage that is linked to it, either
    directly or through an entity. The score of a pair is the sum of the result's score and a gain,
    and it is reduced if the connection is weak::

        pair(hit, other) = 0.9 * sqrt(strength) * (score(hit) + gain(other | hit))

    For each term of the query, ``gain`` adds the amount by which the BM25 score of the other
    passage exceeds the score of the result. If the retriever uses scores of a different kind, the
    gain is scaled by means of the highest BM25 score of the results. The score of a passage is the
    score of its best pair, or its own score if this is higher. Passages with equal scores are
    ordered by their own scores.

    The strength of a connection through an entity depends on how rare the entity is. Its rarity is
    ``log((N + 1) / n) / log(N + 1)`` if n of N passages mention it. The strength equals the rarity
    if the entity is the title of one of the passages. Otherwise, it is 3/4 of the rarity if the
    title of either passage contains the name among other words, and 2/3 in all other cases. The
    strength of a direct link is its weight, but at most 1. Links are followed in both directions.

    From the best five linked passages, links are followed once more, to passages with query words
    that both passages of the pair lack. The score of such a path is computed in a similar way::

        path(hit, second, third) = 0.75 * sqrt(strength)
                                   * (pair(hit, second) + gain(third | hit, second))

    Finally, the scores of passages are reduced if they repeat query words of passages before them,
    or if two passages before them have the same title (see ``repetition``).

    The scores of paths follow Asai et al., "Learning to retrieve reasoning paths over Wikipedia
    graph", 2020, and Godbole et al., "Multi-step entity-centric information retrieval for multi-hop
    question answering", 2019, but they are based on words instead of a trained model.

    Args:
        inner: The retriever of the first results, which must be passages of ``graph``.
        graph: The graph whose links are followed.
        via: The name of a group that was created with an ``EntityExtractor`` and whose names link
            the passages. If None, only direct links between passages are followed.
        top_k: The maximum number of results.
        seeds: The number of first results from which links are followed.
        repetition: The factor by which repeated query words reduce the score of a passage. If two
            passages before it have the same title, its score is also reduced by this share of the
            highest score.
        bm25: The similarity that weights the words of the query. Defaults to the ``Bm25`` of the
            inner retriever if it has one.
        filters: Conditions on the metadata of results and linked passages. Linked passages must
            also match the filters of the retrievers that found the results.

    Raises:
        UnknownGroupError: If the graph has no group named ``via``.
        TypeError: If an argument has the wrong type.
        ValueError: If a number is out of range, or ``via`` was created with a different transform.
            During retrieval, if the results do not belong to the group that ``via`` links.

    Example:
        >>> from nodekin.nodegraph import EntityExtractor, NodeGraph
        >>> from nodekin.retrievers import Retriever
        >>> graph = NodeGraph()
        >>> ids = graph.add(["Brand\\nA play by Henrik Ibsen.", "Henrik Ibsen\\nBorn in Skien."])
        >>> graph.create_node_group("entity", EntityExtractor())
        >>> retriever = LinkRetriever(Retriever(graph, "ROOT"), graph, via="entity")
        >>> [result.node.text.split("\\n")[0] for result in retriever("Who wrote the play Brand?")]
        ['Brand', 'Henrik Ibsen']
    """

    name = FOLLOW_LINKS

    def __init__(
        self,
        inner: RetrieverLike,
        graph: NodeGraph,
        *,
        via: str | None = None,
        top_k: int = 6,
        seeds: int = SEEDS,
        repetition: float = 0.15,
        bm25: Bm25 | None = None,
        filters: Filters | None = None,
    ) -> None:
        super().__init__(top_k=check_top_k(top_k))
        if not isinstance(graph, NodeGraph):
            raise TypeError(f"graph must be a NodeGraph, got {graph!r:.80}")
        if via is not None:
            LinkIndex.open(graph, via)
        self.inner = as_retriever(inner)
        check_in_graph(self.inner, "LinkRetriever")
        self.graph = graph
        self.via = via
        self.seeds = whole(seeds, "seeds", 1)
        self.repetition = number(repetition, "repetition")
        retriever = self.inner
        inherited = getattr(retriever, "similarity", None) or getattr(retriever, "bm25", None)
        self.bm25 = bm25 or (inherited if isinstance(inherited, Bm25) else Bm25())
        parse_filters(filters)
        self.filters = filters

    def __repr__(self) -> str:
        return f"LinkRetriever({self.inner!r}, via={self.via!r}, top_k={self.top_k})"

    async def search_all(
        self, queries: Sequence[str], limit: int | None, filters: Filters | None
    ) -> list[Results]:
        """Return the results of each query."""
        assert limit is not None
        conditions = HitConditions(Call.begin(filters), self.filters)
        inner_filters = all_of(self.filters, filters)
        with limit_tokens(None):  # links are followed from complete passages
            hits = await find_all(self.inner, queries, max(limit, self.seeds), inner_filters)
        follow = partial(self._follow_links, limit=limit, conditions=conditions)
        return await Do(lambda: [*map(follow, queries, hits)])

    def _follow_links(
        self, query: str, hits: Results, limit: int, conditions: HitConditions
    ) -> Results:
        """Rank the results of a query together with the passages that are linked to them."""
        with start_span(self.name, query=query, via=self.via, hits=len(hits)) as span:
            results = hits[:limit]
            own = [hit for hit in hits if hit.node.graph is self.graph]
            if own:
                links = self._links(own[0].node.group)
                met = conditions(own)

                def work(view: View) -> Results:
                    return links.follow(view, hits, limit, met, span.attributes)

                (results,) = search([links.words], [query], {}, work, links.links)
            span.attributes["results"] = len(results)
        return results

    def _links(self, group: str) -> LinkSearch:
        """Return the links between the passages of a group.

        Raises:
            ValueError: If the names belong to a different group of passages.
        """
        index = None
        if self.via is not None:
            index = LinkIndex.open(self.graph, self.via)
            parent = self.graph.reader.lineage(self.via)[-1].parent
            if parent != group:
                raise ValueError(
                    f"the hits must be of group {parent!r}, which {self.via!r} links, got "
                    f"{group!r}; set target={parent!r} in the inner retriever"
                )
        words = words_branch(self.graph, group, self.bm25)
        return LinkSearch(self.graph, words, index, self.seeds, self.repetition)
