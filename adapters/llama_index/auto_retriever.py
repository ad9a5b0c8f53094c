"""Let a model write the query and the conditions, by LlamaIndex's own auto-retriever."""

from __future__ import annotations

import copy
import logging
import re
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

from llama_index.core.bridge.pydantic import ValidationError
from llama_index.core.callbacks import CallbackManager
from llama_index.core.llms import LLM
from llama_index.core.output_parsers.base import OutputParserException
from llama_index.core.prompts.mixin import PromptMixinType
from llama_index.core.retrievers import VectorIndexAutoRetriever
from llama_index.core.schema import QueryBundle
from llama_index.core.utils import print_text
from llama_index.core.vector_stores.types import (
    MetadataFilter,
    MetadataFilters,
    VectorStoreInfo,
    VectorStoreQuerySpec,
)

from ...nodegraph.errors import nearest_names
from ...nodegraph.models.output.json_values import clean
from ...retrievers.filters import Filters, all_of
from ...retrievers.protocols import RetrieverLike
from ...retrievers.validation import whole
from ..tool_filters import FilterError, FilterField
from .prompt_templates import default_llm
from .retriever import NodeGraphRetriever, as_filters

_log = logging.getLogger(__name__)

_TYPES: Mapping[str, type] = {
    **{"str": str, "string": str, "text": str, "bool": bool, "boolean": bool},
    **{"int": int, "integer": int, "float": float, "number": float},
}

_CONDITION = re.compile(r"""filters?["']?\s*:\s*(?:\[\s*["'{\[]|\{|["'][^"'])""")

_TRUTH_VALUE = re.compile(r"""(["']?value["']?\s*:\s*)(true|false)\b""", re.IGNORECASE)


class NodeGraphAutoRetriever(VectorIndexAutoRetriever):
    """Search any nodekin retriever for what a model makes of a question: a query and conditions.

    It is LlamaIndex's ``VectorIndexAutoRetriever``, prompt and all, without a vector index. The
    model reads which fields there are and what they mean, and writes a query, conditions with
    LlamaIndex's operators, and a number of results if the question names one. Its conditions are
    added to those of the retriever and to ``extra_filters``, and are checked before ranking. A
    blank query lists what meets all conditions, in the order of the documents.

    Values become what ``vector_store_info`` declares (``"1999"`` is the number 1999 in a field of
    type ``int``). Conditions that can't be read, or are on other fields, are an error, never left
    out. An answer without
    any that can't be read leaves the question itself, with a warning in the log, as in LlamaIndex.

    Args:
        retriever: Any nodekin retriever, or what ``as_retriever`` takes for one.
        vector_store_info: What the documents are, and their fields: names, types, descriptions.
        llm: A LlamaIndex model. None for ``Settings.llm``.
        prompt_template_str: The prompt, with ``{schema_str}``, ``{info_str}`` and ``{query_str}``.
        max_top_k: The most results that the model may request.
        similarity_top_k: How many results at most, whatever the model requests. None for the
            retriever's own ``top_k``, or the number that the model requests.
        empty_query_top_k: The same, where the model writes no query. None for the same number.
        extra_filters: Conditions that always hold: nodekin's, or any ``MetadataFilters``.
        callback_manager: As everywhere in LlamaIndex.
        verbose: Whether to print what the model wrote, and how each result was found.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If a number is below 1, or ``extra_filters`` have no exact counterpart. When
            retrieving: if the model wrote conditions that can't be read, such as an operator that
            does not exist.
        ImportError: If no model was given or set, and LlamaIndex's default one is not installed.

    Example:
        >>> from llama_index.core.llms import MockLLM
        >>> from llama_index.core.vector_stores.types import MetadataInfo
        >>> from nodekin.nodegraph import Document, NodeGraph
        >>> from nodekin.retrievers import Retriever
        >>> class Model(MockLLM):  # stands for a real one
        ...     def predict(self, *args, **settings):
        ...         year = '{"key": "year", "operator": ">", "value": "2000"}'
        ...         return '{"query": "tea", "filters": [' + year + "]}"
        >>> graph = NodeGraph()
        >>> ids = graph.add([Document("Old tea", {"year": 1990}), Document("Tea", {"year": 2010})])
        >>> year = MetadataInfo(name="year", type="int", description="the year of the harvest")
        >>> info = VectorStoreInfo(content_info="Teas", metadata_info=[year])
        >>> retriever = NodeGraphAutoRetriever(Retriever(graph, "ROOT", "bm25"), info, Model())
        >>> [result.text for result in retriever.retrieve("Which tea is from after 2000?")]
        ['Tea']
    """

    def __init__(
        self,
        retriever: RetrieverLike,
        vector_store_info: VectorStoreInfo,
        llm: LLM | None = None,
        *,
        prompt_template_str: str | None = None,
        max_top_k: int = 10,
        similarity_top_k: int | None = None,
        empty_query_top_k: int | None = 10,
        extra_filters: MetadataFilters | Filters | None = None,
        callback_manager: CallbackManager | None = None,
        verbose: bool = False,
    ) -> None:
        llm = default_llm() if llm is None else llm
        for name, value, kind in (
            ("vector_store_info", vector_store_info, VectorStoreInfo),
            ("llm", llm, LLM),
        ):
            if not isinstance(value, kind):
                raise TypeError(f"{name} is LlamaIndex's {kind.__name__}, not {value!r:.80}")
        numbers = {
            "max_top_k": max_top_k,
            "similarity_top_k": similarity_top_k,
            "empty_query_top_k": empty_query_top_k,
        }
        for name, number in numbers.items():
            if number is not None:
                whole(number, name, 1)
        super().__init__(
            cast(Any, SimpleNamespace(_object_map={})),  # instead of a vector index
            vector_store_info,
            llm,
            prompt_template_str,
            max_top_k=max_top_k,
            empty_query_top_k=empty_query_top_k,
            callback_manager=callback_manager,
            verbose=verbose,
        )
        self._similarity_top_k: int | None = similarity_top_k  # type: ignore[assignment]
        self.retriever = NodeGraphRetriever(
            retriever,
            filters=extra_filters,
            callback_manager=self.callback_manager,
            verbose=verbose,
        )
        self._types = {field.name: field.type for field in vector_store_info.metadata_info}

    def __repr__(self) -> str:
        return f"NodeGraphAutoRetriever({self.retriever!r})"

    def _get_prompt_modules(self) -> PromptMixinType:
        """Return the prompts of the strategies in the retriever, too."""
        return {"retriever": self.retriever}

    def _parse_generated_spec(self, output: str, query_bundle: QueryBundle) -> VectorStoreQuerySpec:
        """Return what the model wrote, the question itself where that is nothing.

        Raises:
            ValueError: If there are conditions, and they can't be read.
        """
        answer = _TRUTH_VALUE.sub(r'\1"\2"', clean(output))
        try:
            spec = cast(VectorStoreQuerySpec, self._output_parser.parse(answer).parsed_output)
        except (OutputParserException, ValidationError) as error:  # the second one in 0.13
            if _CONDITION.search(answer):
                raise ValueError(f"the model's conditions can't be read: {error}") from error
            _log.warning(
                "the model's answer can't be read, the question is searched for: %s", error
            )
            return VectorStoreQuerySpec(query=query_bundle.query_str, filters=[])
        if not spec.query.strip() and not spec.filters:
            spec.query = query_bundle.query_str
        spec.filters = [self._declared(part) for part in spec.filters]
        return spec

    def _build_retriever_from_spec(  # type: ignore[override]
        self, spec: VectorStoreQuerySpec
    ) -> tuple[NodeGraphRetriever, QueryBundle]:
        """Return the retriever with the conditions and the number of the model, and the query."""
        is_blank = not spec.query.strip() and self._empty_query_top_k is not None
        number = self._empty_query_top_k if is_blank else self._similarity_top_k
        if spec.top_k is not None and spec.top_k > 0:
            limits = [spec.top_k, self._max_top_k, number]
            number = min(limit for limit in limits if limit is not None)
        filters = as_filters(MetadataFilters(filters=[*spec.filters]))
        if self._verbose:
            text = f"query: {spec.query!r}, filters: {filters}, top_k: {number}\n"
            print_text(text, color="llama_turquoise")
        retriever = copy.copy(self.retriever)
        retriever.similarity_top_k = number
        retriever.filters = all_of(self.retriever.filters, filters)
        return retriever, QueryBundle(spec.query)

    def _declared(self, part: MetadataFilter) -> MetadataFilter:
        """Return a condition with values of the declared type of its field.

        Raises:
            ValueError: If the field is not declared, or a value has another type.
        """
        if part.key not in self._types:
            raise ValueError(
                f"the model's condition is on {part.key!r}, which vector_store_info does not "
                f"declare; it has {nearest_names(part.key, self._types)}"
            )
        field = FilterField("", type=_TYPES.get(self._types[part.key].strip().lower()))
        several = part.value if isinstance(part.value, list) else [part.value]
        try:
            values = [value if value is None else field.read(value) for value in several]
        except FilterError as error:
            raise ValueError(f"the model's condition on {part.key!r}: {error}") from error
        value = values if isinstance(part.value, list) else values[0]
        return part.model_copy(update={"value": value})  # LlamaIndex's filters take no bool
