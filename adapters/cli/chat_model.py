"""The language model that ``ask`` asks."""

from __future__ import annotations

import os
from typing import Any

from .exits import MODEL, CommandError


def chat_model(model: str | None, base_url: str | None) -> Any:
    """Return the model that was named, by options or by the environment.

    The key is only taken from the environment: a command line can be read by others.

    Raises:
        CommandError: If no model is named, or no server known; it says what to set.
    """
    name = model or os.environ.get("OPENAI_MODEL")
    url = base_url or os.environ.get("OPENAI_BASE_URL")
    key = os.environ.get("OPENAI_API_KEY")
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
            MODEL,
        )
    from ..openai_chat import OpenAIChat

    return OpenAIChat(str(name), base_url=url, api_key=key or "none")
