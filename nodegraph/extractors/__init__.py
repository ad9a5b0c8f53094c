"""Transforms that extract entities without a model, and summaries, keywords, questions by one."""

from .entity_extractor import EntityExtractor
from .llm_extractor import LLMExtractor

__all__ = ["EntityExtractor", "LLMExtractor"]
