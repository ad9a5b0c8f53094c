"""Search for the query and for a passage that a model imagines."""

from __future__ import annotations

from functools import partial

from ...nodegraph.models.output.imagined_passage import parse_passage
from ..prompts.query_prompts import PASSAGE
from .model_prompt import QueryTransform, QueryVariants
from .transform_retriever import TransformRetriever


class HyDE(QueryTransform):
    """A query transform that imagines a passage that could answer the query.

    The prompt has the placeholder ``{query}``. The query itself comes first unless
    ``include_query=False``. See ``QueryTransform`` for the arguments.

    Source:
        Gao, Ma, Lin and Callan, "Precise zero-shot dense retrieval without relevance labels", 2022.

    Example:
        >>> HyDE(lambda prompt: "The Nile is 6,650 km long.")("How long is the Nile?")
        ['How long is the Nile?', 'The Nile is 6,650 km long.']
    """

    name = "hyde"
    supplements = True
    PROMPT = PASSAGE

    async def variants(self, query: str) -> QueryVariants:
        """Return the passage."""
        return QueryVariants((await self.ask(query, partial(parse_passage, query=query)),))


class HyDERetriever(TransformRetriever):
    """A retriever that searches for a passage that a model imagines.

    The passage resembles documents more than a query does. The inner retriever searches for the
    passage and for the query, and the results are fused. (The published method searches for the
    mean of their vectors.)

    Choose it for questions that share few words with the documents, with a model that has some
    knowledge of the field. A wrong passage is searched for as well. See ``TransformRetriever`` for
    the arguments; ``llm`` is a model or a ``HyDE``.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> from nodekin.retrievers import Retriever
        >>> graph = NodeGraph()
        >>> ids = graph.add(["At 6,650 km the Nile is the longest river.", "A long, long way."])
        >>> model = lambda prompt: "The Nile river is about 6,800 km long."
        >>> retriever = HyDERetriever(Retriever(graph, "ROOT"), model, include_query=False)
        >>> print(retriever("How far?")[0].explain())  # doctest: +ELLIPSIS
        2...  ROOT  "At 6,650 km the Nile is the longest river."
          2...  ROOT  bm25 for "The Nile river is about 6,800 km long.": itself
            hyde of "How far?"
    """

    name = "hyde search"
    variant_name = "hyde"
    transform_type = HyDE
