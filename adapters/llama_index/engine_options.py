"""The types of the options of query engines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypedDict

from llama_index.core.bridge.pydantic import BaseModel
from llama_index.core.callbacks import CallbackManager
from llama_index.core.indices.prompt_helper import PromptHelper
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.response_synthesizers import BaseSynthesizer, ResponseMode
from llama_index.core.types import BasePydanticProgram
from llama_index.core.vector_stores.types import MetadataFilters, VectorStoreQueryMode

from ...nodegraph.models.templates import Language
from ...retrievers.base_retriever import Phrases
from ...retrievers.filters import Filters
from ...retrievers.plans.prompting import PromptReplacement
from ...retrievers.protocols import Similarity
from ...retrievers.ranking import Mode
from ...retrievers.strategies.metadata_fields import FilterField
from ...retrievers.strategies.model_prompt import OnError
from ...retrievers.strategies.self_query import Now
from ...retrievers.strategies.strategy_registry import StrategyName
from ..argument_types import AnyRetriever

ProgramFactory: TypeAlias = Callable[[BasePromptTemplate], BasePydanticProgram[BaseModel]]

FilterFields: TypeAlias = Mapping[str, FilterField | str] | Sequence[str]

RetrieverSource: TypeAlias = AnyRetriever | Mapping[str, AnyRetriever | tuple[str, AnyRetriever]]
"""A retriever, or retrievers by the name of a tool, each with an optional description."""


class SynthesisOptions(TypedDict, total=False):
    """Arguments of ``get_response_synthesizer``."""

    verbose: bool | None
    text_qa_template: BasePromptTemplate | None
    refine_template: BasePromptTemplate | None
    summary_template: BasePromptTemplate | None
    simple_template: BasePromptTemplate | None
    chat_content_qa_template: BasePromptTemplate | None
    chat_content_refine_template: BasePromptTemplate | None
    chat_summary_template: BasePromptTemplate | None
    response_mode: ResponseMode | str | None
    output_cls: type[BaseModel] | None
    use_async: bool | None
    streaming: bool | None
    structured_answer_filtering: bool | None
    program_factory: ProgramFactory | None
    prompt_helper: PromptHelper | None
    chat_prompt_helper: PromptHelper | None
    multimodal: bool | None


class EngineStrategyOptions(TypedDict, total=False):
    """Options of strategies."""

    max_queries: int | None
    include_query: bool | None
    max_steps: int | None
    max_calls: int | None
    total_timeout: float | None
    fetch_k: int | None
    mode: Mode | None
    answers: bool | None
    answer_prompt: PromptReplacement | None
    prompt: PromptReplacement | None
    language: Language | None
    retries: int | None
    timeout: float | None
    on_error: OnError | None
    fields: FilterFields | None
    now: Now | None


class EngineOptions(SynthesisOptions, EngineStrategyOptions, total=False):
    """Arguments of ``NodeGraphQueryEngine``."""

    strategy: StrategyName | Literal["none"]
    response_synthesizer: BaseSynthesizer | None
    similarity_top_k: int | None
    filters: MetadataFilters | Filters | None
    max_tokens: int | None
    min_score: float | None
    phrases: Phrases | None
    node_postprocessors: Sequence[BaseNodePostprocessor] | None
    callback_manager: CallbackManager | None


class IndexEngineOptions(EngineOptions, total=False):
    """Arguments of ``NodeGraphIndex.as_query_engine``."""

    similarity: str | Similarity | None
    group: str | None
    node_ids: Sequence[str] | None
    doc_ids: Sequence[str] | None
    vector_store_query_mode: VectorStoreQueryMode | str | None
    alpha: float | None
    sparse_top_k: int | None
    hybrid_top_k: int | None
    vector_store_kwargs: Mapping[str, float] | None


def given_options(**options: Any) -> dict[str, Any]:
    """Return the options that are not None."""
    return {name: value for name, value in options.items() if value is not None}
