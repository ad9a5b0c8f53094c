"""Entities that passages mention, found without a model."""

from .entity_extractor import EntityExtractor
from .llm_extractor import AGAIN, LLMExtractor, fill

__all__ = [
    "AGAIN",
    "EntityExtractor",
    "LLMExtractor",
    "fill",
]
