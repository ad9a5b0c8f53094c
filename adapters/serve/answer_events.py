"""An answer as events, sent while it is written."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from typing import Any

from ...nodegraph.errors import ModelError
from ...retrievers.answers.answer import Answer
from ...retrievers.answers.engine import QueryEngine
from ...retrievers.base_retriever import BaseRetriever
from ...retrievers.results import ScoredNode
from .corpus_pages import node_record, plain_number

_logger = logging.getLogger("nodekin")

PASSAGES = 6
"""How many passages an answer is from."""

_SHOWN = 1_200  # characters of a source

Event = Mapping[str, Any]


async def answer_events(
    retriever: BaseRetriever, llm: Any, question: str, history: Iterable[tuple[str, str]]
) -> AsyncGenerator[Event, None]:
    """Yield the sources, the text in pieces, and the end; or what went wrong.

    Closing it ends the model's work.

    Args:
        retriever: What finds the passages.
        llm: The model; None for the passages alone.
        question: The question.
        history: Earlier questions, each with its answer.
    """
    try:
        if llm is None:
            results = await asyncio.to_thread(retriever.retrieve, question, top_k=PASSAGES)
            yield _sources((n, r, r.text, None) for n, r in enumerate(results, 1))
            yield {"type": "end", "answered": bool(results), "notes": []}
            return
        engine = QueryEngine(retriever, llm, top_k=PASSAGES)
        stream = engine.astream(question, history=list(history) or None)
        displayed = False
        async with aclosing(stream):
            async for piece in stream:
                if not displayed:
                    displayed = True
                    yield _sources_of(stream.answer)
                yield {"type": "text", "text": piece}
        answer = stream.answer
        yield _sources_of(answer)
        yield {"type": "end", "answered": answer.answered, "searched": answer.searched} | {
            "confidence": plain_number(answer.confidence),
            "notes": [*answer.notes, *_omissions(answer)],
        }
    except (ModelError, ValueError, TypeError, LookupError, OSError) as error:
        existing = getattr(error, "answer", None)
        if isinstance(existing, Answer) and existing.sources:
            yield _sources_of(existing)
        yield {"type": "error", "error": str(error)}
    except Exception as error:
        _logger.exception("an answer failed")
        yield {"type": "error", "error": f"{type(error).__name__}: {error}"}


def _sources_of(answer: Answer) -> Event:
    return _sources((s.number, s.result, s.text, s.cited) for s in answer.sources)


def _sources(sources: Iterable[tuple[int, ScoredNode, str, bool | None]]) -> Event:
    return {
        "type": "sources",
        "sources": [
            {
                "number": number,
                "cited": cited,
                "text": text[:_SHOWN],
                "cut": len(text) > _SHOWN,
                **node_record(result.node),
            }
            for number, result, text, cited in sources
        ],
    }


def _omissions(answer: Answer) -> Iterable[str]:
    for reason, number in Counter(item.reason for item in answer.omitted).items():
        results = "1 result" if number == 1 else f"{number} results"
        yield f"{results} not shown to the model ({reason.replace('_', ' ')})"
