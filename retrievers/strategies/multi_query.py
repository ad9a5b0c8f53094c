"""Search for several phrasings of the query at once."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ...nodegraph.models.output.queries import parse_phrasings
from ..plans.plan import Plan
from ..plans.prompting import Prompt
from ..protocols import RetrieverLike
from ..ranking import Mode
from ..results import OutputOptions
from ..validation import whole
from .model_prompt import (
    QueryTransform,
    QueryVariants,
    StrategySettings,
    model_or,
)
from .transform_retriever import TransformRetriever

if TYPE_CHECKING:
    from typing_extensions import Unpack

PROMPT = Prompt(
    zh="""\
请把原问题换成 {count} 种不同的问法，用来检索：换用同义词、全称或简称，改变句式，或换个角度提问，
但问的必须是同一件事。保留所有人名、地名、数字和条件。只写问法，不写答案：每行一种，各不相同，不要编号，不要解释。

例
原问题：珠穆朗玛峰有多高？
其他问法：
珠峰的海拔是多少米？
世界最高峰珠穆朗玛峰的高度是多少？
珠穆朗玛峰海拔有几米？

要改写的
原问题：{query}
其他问法：
""",
    en="""\
Write {count} other phrasings of the question to search with: use synonyms, full or short names,
another sentence form, or ask from another side, but always for the same thing. Keep all names,
numbers and conditions, and do not answer. Write one phrasing a line, each different, without
numbers or remarks, in the language of the question.

Example
Question: How high is Mount Everest?
Other phrasings:
What is the height of Mount Everest in metres?
Elevation of Mt. Everest, the highest mountain of the world
How tall is Everest?

To rephrase
Question: {query}
Other phrasings:
""",
    required=("query",),
    optional=("count",),
)


class QueryExpansion(QueryTransform):
    """Let a model write a query in several phrasings.

    Args:
        llm: The model, in any form that ``LLM`` takes.
        count: How many phrasings to ask for, and to take at most.
        settings: How the model is asked. A prompt has ``{query}``, and may have ``{count}``. The
            query itself comes first unless ``include_query=False``.

    Example:
        >>> model = lambda prompt: "1. Nile length\\n2. How many km is the Nile?"
        >>> QueryExpansion(model)("How long is the Nile?")
        ['How long is the Nile?', 'Nile length', 'How many km is the Nile?']
    """

    name = "expand"
    supplements = True
    PROMPT = PROMPT
    FORM = '{"queries": ["...", "..."]}'

    def __init__(
        self, llm: object, *, count: int = 3, settings: StrategySettings | None = None
    ) -> None:
        super().__init__(llm, settings)
        self.count = whole(count, "count", 1)

    def variants(self, query: str) -> Plan[QueryVariants]:
        """Return the phrasings as a plan."""
        read = partial(parse_phrasings, query=query, limit=self.count)
        phrasings = yield from self.ask(query, read, count=self.count)
        return QueryVariants(tuple(phrasings))


class MultiQueryRetriever(TransformRetriever):
    """Search for a query in several phrasings that a model writes, and fuse what they find.

    Choose it where questions use other words than the documents. ``HyDERetriever`` goes further
    from the question, ``SubQuestionRetriever`` is for questions that ask several things.

    Args:
        inner: Any retriever.
        llm: The model, in any form that ``LLM`` takes, or a ``QueryExpansion``.
        count: How many phrasings to ask for, and to take at most. None for 3.
        mode: How the results of the queries are fused. See ``fuse``.
        query_weight: The weight of the query itself in the fusion. Each phrasing has 1.
        settings: How the model is asked. See ``StrategySettings``.
        top_k: How many results at most, also of each query. None for the inner retriever's own.
        **output: ``output_format`` and ``join``, see ``OutputOptions``.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> from nodekin.retrievers import Retriever
        >>> graph = NodeGraph()
        >>> ids = graph.add(["The stream is 6,650 km long.", "Tea is a drink."])
        >>> model = lambda prompt: "Length of the stream\\nKilometres of the river"
        >>> retriever = MultiQueryRetriever(Retriever(graph, "ROOT"), model, query_weight=2)
        >>> print(retriever("How far does the river go?")[0].explain())  # doctest: +ELLIPSIS
        0...  ROOT  "The stream is 6,650 km long."
          0...  ROOT  bm25 for "Length of the stream": itself, which gave ...
            phrasing of "How far does the river go?"
    """

    name = "multi-query"
    variant_name = "phrasing"

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
            model_or(llm, QueryTransform, QueryExpansion, options),
            mode=mode,
            query_weight=query_weight,
            top_k=top_k,
            **output,
        )
