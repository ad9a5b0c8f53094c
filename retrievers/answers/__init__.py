"""From a question to an answer with sources."""

from .answer import Answer, AnswerError, OmittedResult, Source
from .conversation import Conversation
from .engine import QueryEngine
from .prompts import PROMPTS
from .qa import PresetAnswer, QaRetriever
from .settings import AnswerOptions
from .stream import AnswerStream, AsyncAnswerStream

__all__ = [
    "PROMPTS",
    "Answer",
    "AnswerError",
    "AnswerOptions",
    "AnswerStream",
    "AsyncAnswerStream",
    "Conversation",
    "OmittedResult",
    "PresetAnswer",
    "QaRetriever",
    "QueryEngine",
    "Source",
]
