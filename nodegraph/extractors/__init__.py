"""Transforms that extract entities without a model, and summaries, keywords, questions by one."""

from typing import TYPE_CHECKING

from ..lazy_names import lazy_names

if TYPE_CHECKING:
    from .entity_extractor import EntityExtractor, has_title
    from .entity_names import has_name, name_key, names_in
    from .llm_extractor import LLMExtractor
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            ".entity_extractor": "EntityExtractor has_title",
            ".entity_names": "has_name name_key names_in",
            ".llm_extractor": "LLMExtractor",
        },
    )

__all__ = ["EntityExtractor", "LLMExtractor", "has_name", "has_title", "name_key", "names_in"]
