"""An answer and its sources as the values that chains hand on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...retrievers import Answer
from .documents import to_documents


def answer_dict(answer: Answer, *, score_key: str | None, details: bool) -> dict[str, Any]:
    """Return an answer as a mapping, of plain values and documents; see ``NodeGraphQueryEngine``.

    Args:
        answer: The answer.
        score_key: The documents' field for the score.
        details: Whether documents tell their place and evidence.
    """
    return {
        **begun(answer, score_key=score_key, details=details),
        "answer": answer.text,
        **ended(answer),
    }


def begun(answer: Answer, *, score_key: str | None, details: bool) -> dict[str, Any]:
    """Return what is known when the answer begins: the question and the documents."""
    results = [source.result for source in answer.sources]
    context = to_documents(results, score_key=score_key, details=details)
    return {"question": answer.question, "context": context}


def ended(answer: Answer) -> dict[str, Any]:
    """Return what is known when the answer has ended."""
    return {"sources": list(_sources(answer)), "found": answer.found, "notes": list(answer.notes)}


def _sources(answer: Answer) -> Iterator[dict[str, Any]]:
    for source in answer.sources:
        yield {
            "number": source.number,
            "cited": source.cited,
            "title": source.title,
            "id": source.result.node.id,
            "document_id": source.result.node.document_id,
            "score": float(source.result.score),
            "text": source.text,
        }
