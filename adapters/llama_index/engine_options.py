"""Types for the options of query engines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypedDict, get_type_hints

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
from ...retrievers.strategies.filter_field import FilterField
from ...retrievers.strategies.model_prompt import OnError
from ...retrievers.strategies.self_query import Now
from ...retrievers.strategies.strategy_registry import StrategyName
from ..argument_types import AnyRetriever

ProgramFactory: TypeAlias = Callable[[BasePromptTemplate], BasePydanticProgram[BaseModel]]

OptionalTemplate: TypeAlias = BasePromptTemplate | None

OptionalPrompt: TypeAlias = PromptReplacement | None

OptionalFlag: TypeAlias = bool | None

OptionalCount: TypeAlias = int | None

OptionalNumber: TypeAlias = float | None

FilterFields: TypeAlias = Mapping[str, FilterField | str] | Sequence[str]

RetrieverSource: TypeAlias = AnyRetriever | Mapping[str, AnyRetriever | tuple[str, AnyRetriever]]
"""A retriever, or a mapping from tool names to retrievers, each with an optional description."""


class SynthesisOptions(TypedDict, total=False):
    """The keyword arguments of LlamaIndex's ``get_response_synthesizer``."""

    verbose: OptionalFlag
    text_qa_template: OptionalTemplate
    refine_template: OptionalTemplate
    summary_template: OptionalTemplate
    simple_template: OptionalTemplate
    chat_content_qa_template: OptionalTemplate
    chat_content_refine_template: OptionalTemplate
    chat_summary_template: OptionalTemplate
    response_mode: ResponseMode | str | None
    output_cls: type[BaseModel] | None
    use_async: OptionalFlag
    streaming: OptionalFlag
    structured_answer_filtering: OptionalFlag
    program_factory: ProgramFactory | None
    prompt_helper: PromptHelper | None
    chat_prompt_helper: PromptHelper | None
    multimodal: OptionalFlag


class EngineStrategyOptions(TypedDict, total=False):
    """The keyword arguments of retrieval strategies."""

    max_queries: OptionalCount
    include_query: OptionalFlag
    max_steps: OptionalCount
    max_calls: OptionalCount
    total_timeout: OptionalNumber
    fetch_k: OptionalCount
    mode: Mode | None
    answers: OptionalFlag
    answer_prompt: OptionalPrompt
    prompt: OptionalPrompt
    language: Language | None
    retries: OptionalCount
    timeout: OptionalNumber
    on_error: OnError | None
    fields: FilterFields | None
    now: Now | None
    prompts: Mapping[str, PromptReplacement] | None
    length: Callable[[str], int] | None


class EngineOptions(SynthesisOptions, EngineStrategyOptions, total=False):
    """The keyword arguments of ``NodeGraphQueryEngine``."""

    strategy: StrategyName | Literal["none"]
    response_synthesizer: BaseSynthesizer | None
    similarity_top_k: OptionalCount
    filters: MetadataFilters | Filters | None
    max_tokens: OptionalCount
    min_score: OptionalNumber
    phrases: Phrases | None
    weights: Mapping[str, float] | None
    node_postprocessors: Sequence[BaseNodePostprocessor] | None
    callback_manager: CallbackManager | None


class IndexEngineOptions(EngineOptions, total=False):
    """The keyword arguments of ``NodeGraphIndex.as_query_engine``."""

    similarity: str | Similarity | None
    group: str | None
    node_ids: Sequence[str] | None
    doc_ids: Sequence[str] | None
    vector_store_query_mode: VectorStoreQueryMode | str | None
    alpha: OptionalNumber
    sparse_top_k: OptionalCount
    hybrid_top_k: OptionalCount
    vector_store_kwargs: Mapping[str, float] | None


def options_of(kind: type[object], arguments: Mapping[str, object]) -> dict[str, Any]:
    """Select the arguments that belong to a type of options and are not None.

    Args:
        kind: The ``TypedDict`` that declares the options.
        arguments: A mapping from the names of all arguments to their values.

    Returns:
        The selected arguments, keyed by name.
    """
    names = get_type_hints(kind)
    return {name: value for name, value in arguments.items() if name in names and value is not None}
