"""Tell in plain values how a result was found."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ..retrievers import ScoredNode


def evidence_dicts(result: ScoredNode) -> list[dict[str, Any]]:
    """Return a result's evidence as dicts that JSON can hold, the best match first.

    Each has the matching node's ``id``, ``group``, ``text``, ``start`` and ``end``, the ``score``
    and ``similarity`` of the match, and the form of the ``query`` that was searched for;
    ``embed_key`` where embeddings were compared, ``share`` where retrievers were fused, ``forms``
    (dicts of ``query``, ``strategy``, ``note``) where strategies changed the query.
    """
    return [
        {
            "id": match.node.id,
            "group": match.group,
            "text": match.node.text,
            "start": match.node.start,
            "end": match.node.end,
            "score": float(match.score),
            "similarity": match.similarity,
            "query": match.query,
            **({} if match.embed_key is None else {"embed_key": match.embed_key}),
            **({} if match.share is None else {"share": float(match.share)}),
            **({"forms": [asdict(form) for form in match.forms]} if match.forms else {}),
        }
        for match in result.evidence
    ]
