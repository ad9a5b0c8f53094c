"""Models: embedders and language models, coerced from what people have, and their caches."""

from typing import TYPE_CHECKING

from ..lazy_names import lazy_names

if TYPE_CHECKING:
    from .answer_cache import (
        AnswerCache,
        Answers,
        answer_key,
        current_answers,
        keep_answers,
        kept_answer,
    )
    from .cached_llm import CachedLLM
    from .chat_prompt import ChatPrompt, PromptTemplate, prompt_text
    from .embedder import Embedder, as_embedder, as_embedders
    from .embedder_adapters import Encoder, Vectors, in_thread, is_async
    from .embedding_cache import EmbeddingCache
    from .identity import model_name
    from .language import (
        Language,
        QuotedText,
        fill_template,
        language_of,
        neutralize,
        retry_note,
    )
    from .llm import LLM, as_llm
    from .passage_vectors import embed_ahead
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            ".answer_cache": (
                "AnswerCache Answers answer_key current_answers keep_answers kept_answer"
            ),
            ".cached_llm": "CachedLLM",
            ".chat_prompt": "ChatPrompt PromptTemplate prompt_text",
            ".embedder": "Embedder as_embedder as_embedders",
            ".embedder_adapters": "Encoder Vectors in_thread is_async",
            ".embedding_cache": "EmbeddingCache",
            ".identity": "model_name",
            ".language": "Language QuotedText fill_template language_of neutralize retry_note",
            ".llm": "LLM as_llm",
            ".passage_vectors": "embed_ahead",
        },
    )

__all__ = [
    "LLM",
    "AnswerCache",
    "Answers",
    "CachedLLM",
    "ChatPrompt",
    "Embedder",
    "EmbeddingCache",
    "Encoder",
    "Language",
    "PromptTemplate",
    "QuotedText",
    "Vectors",
    "answer_key",
    "as_embedder",
    "as_embedders",
    "as_llm",
    "current_answers",
    "embed_ahead",
    "fill_template",
    "in_thread",
    "is_async",
    "keep_answers",
    "kept_answer",
    "language_of",
    "model_name",
    "neutralize",
    "prompt_text",
    "retry_note",
]
