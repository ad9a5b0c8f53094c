"""Arguments that other libraries call by another name: an error says how they are called here."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import ParamSpec, TypeVar

ParamT = ParamSpec("ParamT")
ReturnT = TypeVar("ReturnT")

OURS = {
    "top_k": ("topk", "k", "top_n", "similarity_top_k", "limit", "n_results"),
    "graph": ("doc", "docs", "index", "vectorstore", "node_graph"),
    "group_name": ("group", "name", "node_group"),
    "filters": ("filter", "where", "metadata_filter", "metadata_filters"),
    "similarity_cut_off": ("score_threshold", "similarity_cutoff", "similarity_threshold"),
    "cut_off": ("score_threshold", "similarity_cutoff"),
    "embed": ("embed_model", "embedding", "embeddings", "embedding_function"),
    "store": ("persist_dir", "persist_directory", "store_conf", "docstore", "path"),
    "source": ("dataset_path", "documents", "input_dir", "data"),
    "retrievers": ("retriever",),
    "inner": ("base_retriever", "retriever"),
    "retriever": ("base_retriever", "inner"),
    "reranker": ("base_compressor", "compressor", "rerank"),
    "llm": ("model", "chat_model"),
    "query": ("question", "query_str", "input"),
    "node_id": ("id_", "id"),
    "id": ("id_", "doc_id", "document_id", "uid"),
    "text": ("page_content", "content"),
    "metadata": ("extra_info",),
    "group": ("group_name", "node_group"),
    "output_format": ("output_type",),
}
"""The names here, and those that LangChain, LlamaIndex, Chroma, haystack and LazyLLM use."""


def explain_names(function: Callable[ParamT, ReturnT]) -> Callable[ParamT, ReturnT]:
    """Let the error of a call with another library's argument names say what they are here.

    Nothing else changes: neither the call nor its type.
    """

    @functools.wraps(function)
    def call(*args: ParamT.args, **kwargs: ParamT.kwargs) -> ReturnT:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            hint = _hint(inspect.signature(function).parameters, kwargs, str(error))
            if not hint:
                raise
            raise TypeError(f"{error}; {hint}") from error

    return call


def _hint(parameters: Iterable[str], given: Iterable[str], message: str) -> str:
    known = set(parameters)
    pairs = [
        f"{name!r} is called {ours!r} here"
        for name in given
        if name not in known
        for ours, others in OURS.items()
        if name in others and (ours in known or f"'{ours}'" in message)
    ]
    return ", ".join(pairs) if " is called " not in message else ""
