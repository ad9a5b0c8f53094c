"""Follow links from the first hits to passages that the query alone does not find."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from heapq import nsmallest
from typing import Any, NamedTuple

import numpy as np

from ...nodegraph import Node, NodeGraph
from ..base_retriever import BaseRetriever
from ..filters import Filters, parse_filters
from ..protocols import RetrieverProtocol
from ..results import Evidence, OutputFormat, ScoredNode
from ..similarities import Bm25
from ..tracing import start_span
from ..validation import check_retriever, check_top_k, number, whole
from .link_graph import LinkSteps, Pair, best_pairs, word_parts


class _Ranked(NamedTuple):
    """What a passage is ranked by: its best pair, or itself."""

    value: float
    own: float
    node: Node
    hit: ScoredNode | None
    pair: Pair | None


class LinkRetriever(BaseRetriever):
    """Take another retriever's first hits, follow links from them, and rank linked pairs.

    Choose it where an answer lies in two passages, of which the question describes the second
    by what only the first says ("the author of Brand" is in one, where he studied in another).
    Questions that one passage answers keep their first hit. Each wrapped around another goes
    one link farther.

    Each of the first ``seeds`` hits is read as one text with each passage that is linked to it,
    directly or through an entity. A pair is worth what the hit scores, and what the other
    passage adds to the words of the query that it covers, held back where the way is weak::

        pair(hit, other) = weight * strength ** damping * (score(hit) + gain(other | hit))

    ``gain`` is the sum over the query's terms of how much more BM25 gives the other passage than
    the hit; where the hits' scores are of another kind, it is put on their scale by the best
    word score among all passages touched. A passage scores what the best of its pairs does,
    or what it scored by itself where that is more; equals are in order of what they score by
    themselves. The strength of a way through an entity is its rarity, ``log((N + 1) / n) /
    log(N + 1)`` of N passages where n mention it, and 2/3 of that where it is the title of
    neither; of a link, its weight, at most 1. Links are followed both ways.

    Scores a path of passages like Asai et al., "Learning to retrieve reasoning paths over
    Wikipedia graph", 2020, and Godbole et al., "Multi-step entity-centric information retrieval
    for multi-hop question answering", 2019, where a model was trained to; here words do.

    Args:
        inner: Finds the first hits, passages of ``graph``.
        graph: The node graph whose links are followed.
        via: The group of entities that stand between passages (``EntityExtractor``, or any group
            that is linked to them); None follows only links from passage to passage.
        types: The types of links to follow; None for all.
        top_k: How many nodes to return at most.
        seeds: From how many first hits links are followed.
        damping: How much a weak way is held back: 0 not at all; 1 in proportion.
        weight: What a pair counts beside a passage by itself; below 1, so that one passage that
            answers alone is not overtaken by pairs that are hardly better.
        most: Entities that are linked to more passages are not gone through.
        limit: How many passages are looked at for a query at most, those of rare entities first.
        words: Weighs the query's words; the inner retriever's own ``Bm25`` where it has one.
        filters: Conditions on metadata, for hits and for what links lead to. Those of the inner
            retriever (and of its own ``inner`` one) hold for both as well; the parts of a fusion
            keep theirs to themselves, so give conditions here.
        output_format: What a call returns: None for scored nodes, ``"content"``, ``"dict"``.
        join: Join contents to one text: True with line breaks, or the separator.

    Raises:
        UnknownGroupError: If the graph has no group ``via``.
        TypeError: If what was given is no retriever, no graph or no number.
        ValueError: If a number is out of range.

    Example:
        >>> from nodekin.nodegraph import EntityExtractor
        >>> from nodekin.retrievers import Retriever
        >>> graph = NodeGraph()
        >>> ids = graph.add(["Brand\\nA play by Henrik Ibsen.", "Henrik Ibsen\\nBorn in Skien."])
        >>> graph.create_node_group("entity", EntityExtractor(), scope="group")
        >>> retriever = LinkRetriever(Retriever(graph, "ROOT"), graph, via="entity")
        >>> [result.node.text.split("\\n")[0] for result in retriever("Who wrote the play Brand?")]
        ['Brand', 'Henrik Ibsen']
    """

    def __init__(
        self,
        inner: RetrieverProtocol,
        graph: NodeGraph,
        *,
        via: str | None = None,
        types: str | Sequence[str] | None = None,
        top_k: int = 6,
        seeds: int = 10,
        damping: float = 0.5,
        weight: float = 0.9,
        most: int = 100,
        limit: int = 1000,
        words: Bm25 | None = None,
        filters: Filters | None = None,
        output_format: OutputFormat | None = None,
        join: bool | str = False,
    ) -> None:
        if not isinstance(graph, NodeGraph):
            raise TypeError(f"graph is a NodeGraph, not {graph!r:.80}")
        if via is not None:
            graph.ancestry(via)
        self.inner = check_retriever(inner)
        self.graph = graph
        self.via = via
        self.types = (types,) if isinstance(types, str) else None if types is None else tuple(types)
        self.top_k = check_top_k(top_k)
        self.seeds = whole(seeds, "seeds", 1)
        self.most = whole(most, "most", 1)
        self.limit = whole(limit, "limit", 1)
        self.damping = number(damping, "damping")
        self.weight = number(weight, "weight")
        own = getattr(inner, "similarity", None) or getattr(inner, "words", None)
        self.words = words or (own if isinstance(own, Bm25) else Bm25())
        parse_filters(filters)
        self.filters = filters
        super().__init__(output_format=output_format, join=join)

    def __repr__(self) -> str:
        return f"LinkRetriever({self.inner!r}, via={self.via!r}, top_k={self.top_k})"

    def retrieve(
        self, query: str, *, top_k: int | None = None, filters: Filters | None = None
    ) -> list[ScoredNode]:
        """Return the best nodes, best first.

        Args:
            query: What to look for; what finds no first hit finds nothing.
            top_k: In place of the retriever's own.
            filters: Conditions beside the retriever's own; a field here replaces one there.

        Raises:
            TypeError: If the query is no text.
            ValueError: If a number is out of range, a filter no filter, or the hits are not of
                the group that the entities are linked to.
            TransformError: If a group has to be built and its transform raises.
        """
        wanted, conditions = self._check(top_k, filters)
        asked = max(wanted, self.seeds)
        hits = self.inner.retrieve(query, top_k=asked, filters=conditions or None)
        return self._followed(query, hits, wanted, conditions)

    async def aretrieve(
        self, query: str, *, top_k: int | None = None, filters: Filters | None = None
    ) -> list[ScoredNode]:
        """Do the same without blocking the event loop."""
        wanted, conditions = self._check(top_k, filters)
        asked = max(wanted, self.seeds)
        hits = await self.inner.aretrieve(query, top_k=asked, filters=conditions or None)
        return await asyncio.to_thread(self._followed, query, hits, wanted, conditions)

    def _check(self, top_k: int | None, filters: Filters | None) -> tuple[int, dict[str, Any]]:
        parse_filters(filters)
        wanted = self.top_k if top_k is None else check_top_k(top_k)
        return wanted, {**(self.filters or {}), **(filters or {})}

    def _followed(
        self, query: str, hits: list[ScoredNode], wanted: int, filters: Filters
    ) -> list[ScoredNode]:
        """Go on from the hits, where there are any."""
        with start_span("follow links", query=query, via=self.via, hits=len(hits)) as done:
            inside = {**_filters_of(self.inner), **filters}
            results = self._results(query, hits, wanted, inside, done.attributes)
            done.attributes["results"] = len(results)
        return results

    def _results(
        self,
        query: str,
        hits: Sequence[ScoredNode],
        wanted: int,
        filters: Filters,
        facts: dict[str, Any],
    ) -> list[ScoredNode]:
        """Rank the hits and what is linked to the first of them."""
        here = [hit for hit in hits if hit.node.graph is self.graph]
        if not here:
            return list(hits[:wanted])
        group = here[0].node.group
        self._check_group(group)
        index = self.words.open(self.graph, group)
        index.ready()
        lowest = min(0.0, min(hit.score for hit in hits))  # a reranker's may be negative
        scores = {hit.node.id: hit.score - lowest for hit in here}
        with self.graph.reading(*[group] if self.via is None else [group, self.via]):
            index.sync()
            numbers = index.table.rows()
            seeds = [i for i in scores if i in numbers][: self.seeds]
            allowed = index.table.matching(parse_filters(filters))
            steps = LinkSteps(
                self.graph,
                group,
                numbers,
                allowed,
                index.size,
                self.via,
                self.types,
                self.most,
                self.limit,
            )
            ways = steps(seeds)
            slots = np.array([numbers[i] for i in ways.passages], np.int64)
            parts = word_parts(index, self.words.prepare(query, [index]), slots)
            pairs = best_pairs(ways, [scores[i] for i in seeds], parts, self.damping, self.weight)
            facts.update(passages=len(ways.passages), pairs=len(pairs))
            return self._ranked(query, hits, pairs, lowest, wanted)

    def _check_group(self, group: str) -> None:
        """Check that entities of a whole group are those of the group that the hits are of."""
        if self.via is None:
            return
        entities = self.graph.ancestry(self.via)[-1]
        if entities.scope == "group" and entities.parent != group:
            raise ValueError(
                f"the hits are of group {group!r}, and {self.via!r} is linked to "
                f"{entities.parent!r}; let the inner retriever answer with that: "
                f"target={entities.parent!r}"
            )

    def _ranked(
        self,
        query: str,
        hits: Sequence[ScoredNode],
        pairs: Mapping[str, Pair],
        lowest: float,
        wanted: int,
    ) -> list[ScoredNode]:
        """Put hits and pairs in order; fetch what is returned, and say how it was found."""
        known = {hit.node.id for hit in hits if hit.node.graph is self.graph}
        ranking: list[_Ranked] = []
        for hit in hits:
            pair = pairs.get(hit.node.id) if hit.node.graph is self.graph else None
            if pair is not None and pair.value + lowest > hit.score:
                ranking.append(_Ranked(pair.value + lowest, hit.score, hit.node, hit, pair))
            else:
                ranking.append(_Ranked(hit.score, hit.score, hit.node, hit, None))
        others = [(i, pair) for i, pair in pairs.items() if i not in known]
        others = nsmallest(wanted, others, key=lambda each: (-each[1].value, -each[1].own))
        nodes = self.graph.nodes_by_id([i for i, _ in others])
        for node, (_, pair) in zip(nodes, others, strict=True):
            value, own = pair.value + lowest, pair.own + lowest
            ranking.append(_Ranked(value, own, node, None, pair))
        ranking.sort(key=lambda each: (-each.value, -each.own, each.node.order))
        return self._explained(query, ranking[:wanted])

    def _explained(self, query: str, ranking: Sequence[_Ranked]) -> list[ScoredNode]:
        """Return results with their evidence: the partner in the pair, the entity between."""
        ids = [i for r in ranking if r.pair for i in (r.pair.partner, r.pair.step.through) if i]
        ids = list(dict.fromkeys(ids))
        nodes = dict(zip(ids, self.graph.nodes_by_id(ids), strict=True))
        results = []
        for value, _, node, hit, pair in ranking:
            evidence = () if hit is None else hit.evidence
            if pair is not None:
                way = pair.step.through or pair.partner
                told = f"link {pair.step.type!r}"
                ends = dict.fromkeys([pair.partner, way])
                evidence = (*(Evidence(nodes[i], value, told, query) for i in ends), *evidence)
            results.append(ScoredNode(node, value, evidence))
        return results


def _filters_of(retriever: object) -> dict[str, Any]:
    """Return the conditions of a retriever and of those it holds one in the other."""
    inner = getattr(retriever, "inner", None)
    held = {} if inner is None else _filters_of(inner)
    return {**held, **(getattr(retriever, "filters", None) or {})}
