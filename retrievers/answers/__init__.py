"""From a question to an answer with sources."""

from .answer import Answer, AnswerError, LeftOut, Source
from .conversation import Conversation
from .engine import QueryEngine
from .prompts import PROMPTS
from .qa import PresetAnswer, QaRetriever
from .stream import AnswerStream, AsyncAnswerStream

__all__ = [
    "PROMPTS",
    "Answer",
    "AnswerError",
    "AnswerStream",
    "AsyncAnswerStream",
    "Conversation",
    "LeftOut",
    "PresetAnswer",
    "QaRetriever",
    "QueryEngine",
    "Source",
]
