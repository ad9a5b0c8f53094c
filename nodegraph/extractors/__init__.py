"""Transforms that extract entities without a model, and summaries, keywords, questions by one."""

from .entity_extractor import EntityExtractor, has_title
from .entity_names import name_key, names_in
from .llm_extractor import LLMExtractor

__all__ = ["EntityExtractor", "LLMExtractor", "has_title", "name_key", "names_in"]
