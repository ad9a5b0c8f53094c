"""Search for passages that a model imagines, instead of the query."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ...nodegraph.models.output.free_text import parse_passage
from ..plans.plan import All
from ..plans.prompting import Prompt
from ..protocols import RetrieverLike
from ..ranking import Mode
from ..results import OutputOptions
from ..validation import whole
from .model_prompt import QueryTransform, QueryVariants, StrategySettings, model_or
from .transform_retriever import TransformRetriever

if TYPE_CHECKING:
    from typing_extensions import Unpack

PROMPT = Prompt(
    zh="""\
请写两三句话来回答下面的问题，写法像百科或文档中包含答案的那一段原文。不确定的内容可以合理推测，
不要说明这是推测，不要提问，不要加标题。只输出这段文字。

问题：{query}

段落（两三句话）：""",
    en="""\
Write a short passage that answers the question below, as it could stand in a reference work or a
document: two or three sentences, with the names that the question has. Where you are not sure,
make a plausible guess and do not say so. Ask nothing back, add no heading, and write only the
passage, in the language of the question.

Question: {query}

Passage (two or three sentences):""",
    required=("query",),
)


class HyDE(QueryTransform):
    """Let a model write passages that could answer a query, to be searched for.

    Each passage is a separate call, all at once. Equal passages count once.

    Args:
        llm: The model, in any form that ``LLM`` takes.
        count: How many passages to ask for.
        settings: How the model is asked. A prompt has ``{query}``. The query itself comes first
            unless ``include_query=False``.

    Source:
        Gao, Ma, Lin and Callan, "Precise zero-shot dense retrieval without relevance labels", 2022.

    Example:
        >>> HyDE(lambda prompt: "The Nile is 6,650 km long.")("How long is the Nile?")
        ['How long is the Nile?', 'The Nile is 6,650 km long.']
    """

    name = "hyde"
    supplements = True
    PROMPT = PROMPT

    def __init__(
        self, llm: object, *, count: int = 1, settings: StrategySettings | None = None
    ) -> None:
        super().__init__(llm, settings)
        self.count = whole(count, "count", 1)

    async def variants(self, query: str) -> QueryVariants:
        """Return the passages as a plan."""
        read = partial(parse_passage, query=query)
        answers = await All([partial(self.ask, query, read)] * self.count)
        passages = [answer for answer in answers if isinstance(answer, str)]
        errors = [answer for answer in answers if not isinstance(answer, str)]
        if errors and (not passages or self.settings.on_error == "raise"):
            raise errors[0]
        note = f"{len(errors)} of {self.count} passages failed: {errors[0]}" if errors else None
        return QueryVariants(tuple(passages), note)


class HyDERetriever(TransformRetriever):
    """Search for passages that a model imagines: they resemble the documents more than a question.

    The inner retriever searches for the passages and the query, and the results are fused. (The
    published method searches for the mean of their vectors.)

    Choose it for questions that share few words with the documents, with a model that knows
    something of the field: what it imagines wrongly is searched for as well.

    Args:
        inner: Any retriever.
        llm: The model, in any form that ``LLM`` takes, or a ``HyDE``.
        count: How many passages to ask for. None for 1.
        mode: How results are fused. See ``fuse``.
        query_weight: The weight of the query itself in the fusion. Each passage has 1.
        settings: How the model is asked. See ``StrategySettings``.
        top_k: How many results at most, also of each query. None for the inner retriever's own.
        **output: ``output_format`` and ``join``, see ``OutputOptions``.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> from nodekin.retrievers import Retriever
        >>> graph = NodeGraph()
        >>> ids = graph.add(["At 6,650 km the Nile is the longest river.", "A long, long way."])
        >>> model = lambda prompt: "The Nile river is about 6,800 km long."
        >>> passage_alone = StrategySettings(include_query=False)
        >>> retriever = HyDERetriever(Retriever(graph, "ROOT"), model, settings=passage_alone)
        >>> print(retriever("How far?")[0].explain())  # doctest: +ELLIPSIS
        2...  ROOT  "At 6,650 km the Nile is the longest river."
          2...  ROOT  bm25 for "The Nile river is about 6,800 km long.": itself
            hyde of "How far?"
    """

    name = "hyde search"
    variant_name = "hyde"

    def __init__(
        self,
        inner: RetrieverLike,
        llm: object,
        *,
        count: int | None = None,
        mode: Mode = "rrf",
        query_weight: float = 1.0,
        settings: StrategySettings | None = None,
        top_k: int | None = None,
        **output: Unpack[OutputOptions],
    ) -> None:
        options = {"count": count, "settings": settings}
        super().__init__(
            inner,
            model_or(llm, QueryTransform, HyDE, options),
            mode=mode,
            query_weight=query_weight,
            top_k=top_k,
            **output,
        )
