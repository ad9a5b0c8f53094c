"""Steps of LangChain chains: transform a query, fuse lists of documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig, RunnableSerializable
from pydantic import ConfigDict, Field, PrivateAttr, SkipValidation, model_validator

from ...retrievers.foreign.outputs import fuse_outputs
from ...retrievers.strategies.model_prompt import QueryTransform
from ...retrievers.strategies.strategy_registry import RouteOptions, make_transform
from .callbacks import achild_runs, child_runs
from .documents import Details, to_document

if TYPE_CHECKING:
    from typing_extensions import Unpack

Mode: TypeAlias = Literal["rrf", "relative", "distribution", "concat"]


class ChainStep(RunnableSerializable[Any, Any]):
    """A step that holds nothing but its configuration: it can be serialised and configured."""

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    @classmethod
    def is_lc_serializable(cls) -> bool:
        """A step is configuration."""
        return True


class TransformQuery(ChainStep):
    """Transform a query with a language model. See ``transform_query``."""

    llm: Annotated[Any, SkipValidation]
    transform_name: str
    output: Literal["texts", "text"] = "texts"
    options: Annotated[dict[str, Any], SkipValidation] = Field(default_factory=dict)

    _transform: QueryTransform = PrivateAttr()

    @model_validator(mode="after")
    def _set_transform(self) -> TransformQuery:
        self._transform = make_transform(self.transform_name, self.llm, **self.options)
        return self

    @property
    def InputType(self) -> type[str]:
        """A query."""
        return str

    @property
    def OutputType(self) -> Any:
        """Texts, or one, depending on ``output``."""
        return str if self.output == "text" else list[str]

    def invoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Return what the query is transformed to.

        Raises:
            TypeError: If the query is no text, or a keyword is given: a step takes none.
            ModelError: If the model fails, with ``on_error="raise"``.
        """
        return self._call_with_config(self._run, input, config, **kwargs)

    async def ainvoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Async version of ``invoke``."""
        return await self._acall_with_config(self._arun, input, config, **kwargs)

    def _run(self, query: str, config: RunnableConfig | None = None) -> Any:
        with child_runs(config):
            texts = self._transform(query)
        return texts[0] if self.output == "text" else texts

    async def _arun(self, query: str, config: RunnableConfig | None = None) -> Any:
        async with achild_runs(config):
            texts = await self._transform.acall(query)
        return texts[0] if self.output == "text" else texts


def transform_query(
    llm: object,
    transform: str,
    *,
    output: Literal["texts", "text"] = "texts",
    **options: Unpack[RouteOptions],
) -> TransformQuery:
    """Return a step that transforms a query with a language model, to be composed with ``|``.

    The step has a child run for each call of the model, reads plain text where the model has no
    structured output, and returns the query itself where the model fails.

    Args:
        llm: The model: a LangChain one, or in any other form that ``LLM`` takes.
        transform: ``"rewrite"`` (more clearly), ``"expand"`` (several phrasings), ``"decompose"``
            (simpler questions), ``"hyde"`` (a passage that could answer it) or ``"route"`` (the
            name of the route that fits, by ``routes``), or the name of the strategy.
        output: ``"texts"`` for a list, ``"text"`` for the first text: of ``"rewrite"`` and
            ``"route"``, which make only one, and of ``"hyde"`` with ``include_query=False``.
        **options: Those of the transform (``max_queries``, ``include_query``, ``domain``,
            ``glossary``, ``routes``, ``default``), and ``prompt``, ``language``, ``on_error``,
            ``retries`` and ``timeout``. A prompt may be a LangChain prompt template
            (``{question}`` is understood as well as ``{query}``).

    Raises:
        TypeError: If the model is none, or an option is unknown.
        ValueError: If there is no such transform, or an option is out of range.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> model = FakeListChatModel(responses=["1. Nile length\\n2. How many km is the Nile?"])
        >>> transform_query(model, "expand").invoke("How long is the Nile?")
        ['How long is the Nile?', 'Nile length', 'How many km is the Nile?']
        >>> model = FakeListChatModel(responses=["Rewritten question: How long is the Nile?"])
        >>> chain = transform_query(model, "rewrite", output="text") | str.upper
        >>> chain.invoke("nile lenght?")
        'HOW LONG IS THE NILE?'

        A route is what LangChain's ``RouterRunnable`` takes as ``key``:

        >>> from langchain_core.runnables import RouterRunnable, RunnablePassthrough
        >>> model = FakeListChatModel(responses=["I would take: **drinks**"])
        >>> routes = {"rivers": "All about rivers", "drinks": "Tea, coffee"}
        >>> route = transform_query(model, "route", output="text", routes=routes)
        >>> searches = RouterRunnable({"rivers": str.upper, "drinks": str.lower})
        >>> chain = {"key": route, "input": RunnablePassthrough()} | searches
        >>> chain.invoke("Is tea fermented?")
        'is tea fermented?'
    """
    return TransformQuery(llm=llm, transform_name=transform, output=output, options={**options})


class FuseDocuments(ChainStep):
    """Fuse lists of documents into one: what ``retriever.map()`` ends in.

    A document is the same in two lists if its id is, or without an id its text and metadata.
    Documents come back as they were, each once. Choose ``FusionRetriever`` where the retrievers
    can be held: it queries them in parallel and keeps the evidence.

    Args:
        mode: ``"rrf"`` by ranks. ``"relative"``, ``"distribution"`` or ``"concat"`` by the
            documents' ``relevance_score``, by rank where they have none. See ``fuse``.
        weights: What each list counts. All the same by default.
        k: How many documents at most. None for all.
        merge_by: A metadata field by which documents are the same. ``"document.id"`` for the id
            alone, also where texts are equal.
        details: Whether the metadata has the fused score. See ``to_document``.

    Raises:
        pydantic.ValidationError: If a mode is unknown or a number out of range.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> from langchain_core.runnables import RunnableLambda
        >>> texts = ["The Nile is long.", "The Amazon is long.", "Tea is a drink."]
        >>> documents = [Document(text, id=text.split()[1]) for text in texts]
        >>> retriever = RunnableLambda(
        ...     lambda query: [d for d in documents if d.id in query or "long" in d.page_content]
        ... )
        >>> model = FakeListChatModel(responses=["How long is the Nile?\\nHow long is the Amazon?"])
        >>> steps = transform_query(model, "decompose", include_query=False)
        >>> chain = steps | retriever.map() | fuse_documents(k=2)
        >>> [document.id for document in chain.invoke("Is the Nile longer than the Amazon?")]
        ['Nile', 'Amazon']

    Source:
        The reciprocal rank fusion of LangChain's RAG-Fusion template, which tells documents apart
        by their whole JSON.
    """

    mode: Mode = "rrf"
    weights: list[float] | None = None
    k: int | None = Field(default=None, ge=1, strict=True)
    rank_constant: float = Field(default=60, ge=0)
    merge_by: str | None = None
    details: Details = False

    def invoke(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """Return the documents of all lists, best first.

        Raises:
            TypeError: If the input is no list of lists of documents.
            ValueError: If there are not as many weights as lists.
        """
        documents: list[Document] = self._call_with_config(self._fuse, input, config, **kwargs)
        return documents

    def _fuse(self, lists: Any) -> list[Document]:
        if isinstance(lists, Mapping):
            lists = list(lists.values())
        is_nested = isinstance(lists, Sequence) and not isinstance(lists, str)
        if not is_nested or any(isinstance(item, Document) for item in lists):
            raise TypeError(
                "fuse_documents takes lists of documents, what retriever.map() returns, or a "
                f"mapping to them, not {lists!r:.120}"
            )
        fused = fuse_outputs(
            [list(documents) for documents in lists],
            self.mode,
            self.weights,
            self.k,
            rank_constant=self.rank_constant,
            merge_by=self.merge_by,
        )
        return [to_document(result, details=self.details) for result in fused]


fuse_documents = FuseDocuments
"""Returns a step, as the others do."""
