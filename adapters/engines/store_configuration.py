"""Read the configuration of stores that LazyLLM's programs have: ``store_conf``."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from ...nodegraph.errors import nearest_names

_ROLES = ("segment_store", "vector_store")

_FILE = "graph.nodekin"  # in a folder that is given for a file

logger = logging.getLogger(__name__)

Options = dict[str, Any]


def store_options(store_conf: Mapping[str, Any] | None) -> Options:
    """Return what ``NodeGraph`` takes for a configuration of stores.

    Choose it to keep the configuration of a program that had ``segment_store`` and
    ``vector_store``; else ``NodeGraph(store=...)`` is shorter.

    Args:
        store_conf: ``{"segment_store": {"type": ..., "kwargs": {...}}, "vector_store": {...}}``,
            each of which may be missing or empty. Types of ``segment_store``: ``"map"`` (in
            memory, or in the file or folder ``uri``), ``"sqlite"`` (in the file or folder
            ``uri``), ``"postgresql"`` (at the address ``uri``), ``"opensearch"`` (which searches,
            while ``uri`` has the documents; ``uris``, ``client_kwargs``). Of ``vector_store``:
            ``"map"`` (built in), ``"pgvector"`` (in the same PostgreSQL), ``"milvus"`` (at
            ``uri``, a server or a file; ``db_name``, ``client_kwargs``), ``"chroma"`` or
            ``"chromadb"`` (at ``uri``, a server, or in the folder ``dir``; ``client_kwargs``),
            ``"opensearch"`` (at ``uris``; ``client_kwargs``). ``index_kwargs`` are not used, which
            is logged: the index is made as nodekin makes it.

    Raises:
        TypeError: If a part is no mapping.
        ValueError: If a type or an argument is unknown, or of an engine that is not supported.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> store_options({"segment_store": {"type": "map", "kwargs": {"uri": "texts.db"}}})
        {'store': 'texts.db'}
        >>> graph = NodeGraph(**store_options({"segment_store": {"type": "map"}}))
    """
    conf = _mapping(store_conf or {}, "store_conf")
    for role in conf:
        if role not in _ROLES:
            raise ValueError(
                f"store_conf has the part {role!r}; it has {nearest_names(str(role), _ROLES)}, "
                'each with a "type" and "kwargs"'
            )
    options: Options = {}
    for role in _ROLES:
        part = _mapping(conf.get(role) or {}, role)
        if not part:
            continue
        for name in part:
            if name not in ("type", "kwargs"):
                raise ValueError(
                    f'{role} has {name!r}; it has a "type" and "kwargs", which has all settings'
                )
        kind, kwargs = part.get("type"), _mapping(part.get("kwargs") or {}, f"kwargs of {role}")
        readers = _READERS[role]
        if kind not in readers:
            raise ValueError(
                f"{role} has the type {kind!r}; there is {nearest_names(str(kind), readers)}"
            )
        if role == "vector_store" and options.pop("index", None) and kind != "opensearch":
            logger.warning(
                "the OpenSearch of segment_store is not used: vector_store of type %r searches, "
                "and 'uri' of segment_store has the documents",
                kind,
            )
        readers[kind](f"{role} of type {kind!r}", dict(kwargs), options)
    return options


def _mapping(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise TypeError(
            f"{name} is a mapping, not {value!r:.80}; write "
            '{"segment_store": {"type": "map", "kwargs": {"uri": "graph.db"}}}'
        )
    return value


def _uri(name: str, kwargs: dict[str, Any], *, required: bool) -> str | None:
    """Return the only setting there is."""
    uri = kwargs.pop("uri", None)
    if kwargs:
        raise ValueError(f"the {name} takes 'uri' alone, not {', '.join(map(repr, kwargs))}")
    if uri is None and not required:
        return None
    if not isinstance(uri, str | Path) or not str(uri):
        raise ValueError(f"the {name} needs 'uri', a path or an address, not {uri!r:.80}")
    return str(uri)


def _file(name: str, kwargs: dict[str, Any], options: Options, required: bool = False) -> None:
    uri = _uri(name, kwargs, required=required)
    if uri is not None and "://" in uri:
        raise ValueError(f"the {name} takes the path of a file or folder as 'uri', not {uri!r:.80}")
    if uri is not None:
        is_folder = uri.endswith(("/", "\\")) or Path(uri).is_dir()
        options["store"] = str(Path(uri, _FILE)) if is_folder else uri


def _required_file(name: str, kwargs: dict[str, Any], options: Options) -> None:
    _file(name, kwargs, options, required=True)


def _postgresql(name: str, kwargs: dict[str, Any], options: Options) -> None:
    uri = _uri(name, kwargs, required=True) or ""
    if not uri.startswith(("postgresql://", "postgres://")):
        raise ValueError(  # a password is never in a message
            f"the {name} needs an address like 'postgresql://user@host/database?schema=name' as "
            "'uri'"
        )
    options["store"] = uri


def _built_in(name: str, kwargs: dict[str, Any], options: Options) -> None:
    if kwargs:
        raise ValueError(f"the {name} takes no settings, not {', '.join(map(repr, kwargs))}")


def _pgvector(name: str, kwargs: dict[str, Any], options: Options) -> None:
    _built_in(name, kwargs, options)
    store = options.get("store", "")
    if not store.startswith("postgres"):
        raise ValueError(
            f"the {name} is in the PostgreSQL of the graph; give segment_store the type "
            "'postgresql'"
        )
    options["store"] = f"{store}{'&' if '?' in store else '?'}vectors=pgvector"


def _milvus(name: str, kwargs: dict[str, Any], options: Options) -> None:
    uri, database = kwargs.pop("uri", None), kwargs.pop("db_name", None)
    client = _client(name, kwargs, ("user", "password", "token", "secure", "timeout", "db_name"))
    if not isinstance(uri, str | Path) or not str(uri):
        raise ValueError(f"the {name} needs 'uri', 'host:19530' or the path of a file")
    server, secure = _server(str(uri))
    if not server:
        options["index"] = _path_address("milvus", str(uri), client)
        return
    user = client.pop("user", "")
    if user:
        server = f"{quote(str(user), '')}:{quote(str(client.pop('password', '')), '')}@{server}"
    parameters = {
        "database": database or client.pop("db_name", ""),
        "secure": client.pop("secure", secure),
        **client,
    }
    options["index"] = _address("milvus", server, parameters)


def _chroma(name: str, kwargs: dict[str, Any], options: Options) -> None:
    uri, folder = kwargs.pop("uri", None), kwargs.pop("dir", None)
    client = _client(name, kwargs, ("tenant", "database", "ssl", "token"))
    if not uri and not folder:
        raise ValueError(f"the {name} needs 'uri', 'host:8000', or 'dir', a folder")
    if not uri:
        options["index"] = _path_address("chroma", str(folder), client)
        return
    server, secure = _server(str(uri))
    if not server:
        raise ValueError(f"the {name} takes 'host:8000' as 'uri'; a folder is given as 'dir'")
    secure = client.pop("ssl", secure)
    options["index"] = _address("chroma", server, {"secure": secure, **client})


def _opensearch(name: str, kwargs: dict[str, Any], options: Options) -> None:
    uris = kwargs.pop("uris", None)
    existing = ("user", "password", "http_auth", "use_ssl", "verify_certs", "ca_certs", "timeout")
    client = _client(name, kwargs, existing, ("uris", "client_kwargs", "index_kwargs"))
    passed = [uris] if isinstance(uris, str) else uris
    servers = [_server(str(uri)) for uri in passed] if isinstance(passed, list | tuple) else []
    if not servers or not all(server for server, _ in servers):
        raise ValueError(f"the {name} needs 'uris', a list of 'host:9200'")
    user, password = client.pop("user", ""), client.pop("password", "")
    if auth := client.pop("http_auth", None):
        user, password = auth.partition(":")[::2] if isinstance(auth, str) else auth
    nodes = ",".join(server for server, _ in servers)
    if user:
        nodes = f"{quote(str(user), '')}:{quote(str(password), '')}@{nodes}"
    parameters = {
        "secure": client.pop("use_ssl", any(secure for _, secure in servers)),
        "verify": "" if client.pop("verify_certs", True) else "false",
        "ca": client.pop("ca_certs", None),
        **client,
    }
    if not parameters["secure"]:
        parameters["verify"] = ""
    options["index"] = _address("opensearch", nodes, parameters)


def _opensearch_beside(name: str, kwargs: dict[str, Any], options: Options) -> None:
    uri = kwargs.pop("uri", None)
    if not isinstance(uri, str | Path) or not str(uri):
        raise ValueError(
            f"the {name} needs 'uri', too, for what has the documents, as OpenSearch has no "
            "transactions, and only searches: a file, or 'postgresql://user@host/database'"
        )
    store = _postgresql if str(uri).startswith(("postgresql:", "postgres:")) else _file
    store(name, {"uri": uri}, options)
    _opensearch(name, kwargs, options)


def _client(
    name: str,
    kwargs: dict[str, Any],
    known: tuple[str, ...],
    settings: tuple[str, ...] = ("uri", "dir", "db_name", "client_kwargs", "index_kwargs"),
) -> dict[str, Any]:
    """Return the settings of the client; nothing else is left."""
    client = dict(_mapping(kwargs.pop("client_kwargs", None) or {}, f"client_kwargs of {name}"))
    if kwargs.pop("index_kwargs", None):
        logger.warning(
            "index_kwargs of the %s are not used: the index is made as nodekin makes it, and the "
            "similarity is the retriever's",
            name,
        )
    for what, passed, names in (
        ("kwargs", kwargs, settings),
        ("client_kwargs", client, known),
    ):
        for unknown in passed:
            if passed is kwargs or unknown not in known:
                raise ValueError(
                    f"the {what} of the {name} have {unknown!r}; they may have "
                    f"{nearest_names(str(unknown), names)}"
                )
    return client


_SERVER = re.compile(r"(?:(https?|tcp)://)?([\w.-]+:\d+|\[[\da-fA-F:]+\]:\d+)/?")


def _server(uri: str) -> tuple[str, bool]:
    """Return host and port of ``ip:port`` or a URL of that, and whether it wants TLS."""
    match = _SERVER.fullmatch(uri)
    if match is None:
        if "://" in uri:  # a password is never in a message
            raise ValueError("an address of a server is written 'host:port' or 'http://host:port'")
        return "", False
    return match[2], match[1] == "https"


def _path_address(kind: str, path: str, client: dict[str, Any]) -> str:
    if client:
        raise ValueError(f"{kind} in a file or folder takes no {nearest_names('', client)}")
    return f"{kind}:{'//' if path.startswith('/') else ''}{quote(path)}"


def _address(kind: str, server: str, parameters: dict[str, Any]) -> str:
    texts = {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in parameters.items()
        if value not in ("", None, False)
    }
    return f"{kind}://{server}" + (f"?{urlencode(texts)}" if texts else "")


_READERS: dict[str, dict[str, Callable[[str, dict[str, Any], Options], None]]] = {
    "segment_store": {
        "map": _file,
        "sqlite": _required_file,
        "postgresql": _postgresql,
        "opensearch": _opensearch_beside,
    },
    "vector_store": {
        "map": _built_in,
        "pgvector": _pgvector,
        "milvus": _milvus,
        "chroma": _chroma,
        "chromadb": _chroma,
        "opensearch": _opensearch,
    },
}
