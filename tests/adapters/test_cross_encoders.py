"""A real cross-encoder for Chinese puts results in a better order."""

import json
import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from fixed_retriever import passage

from nodekin.adapters import sentence_transformers
from nodekin.nodegraph import Document, NodeGraph
from nodekin.retrievers import Retriever, ScoredNode
from nodekin.retrievers.protocols import RerankError
from nodekin.retrievers.rerankers.cross_encoder import (
    PairScorer,
    QueryPassage,
    as_cross_encoder,
)
from nodekin.retrievers.rerankers.cross_encoder_reranker import CrossEncoderReranker
from nodekin.retrievers.rerankers.rerank_retriever import RerankRetriever
from nodekin.retrievers.similarities.bm25 import Bm25

pytestmark = [pytest.mark.models, pytest.mark.filterwarnings("default")]

CHUNK = 160  # characters
FETCHED = 5


@pytest.fixture(scope="module")
def model(data: Path):
    folder = data.parent / "models" / "zh-ce-mini"
    if not folder.is_dir():
        pytest.skip(f"no model in {folder}, the folder beside --data")
    reason = "the cross-encoder needs: pip install torch sentence-transformers"
    torch = pytest.importorskip("torch", reason=reason)
    package = pytest.importorskip("sentence_transformers", reason=reason)
    settings = {"dtype": torch.float32}
    return package.CrossEncoder(str(folder), device="cpu", max_length=144, model_kwargs=settings)


@pytest.fixture(scope="module")
def cmrc(data: Path) -> tuple[NodeGraph, list[dict]]:
    """Return the paragraphs in chunks, and the questions that a chunk answers.

    A cut every 160 characters goes through the answers to 136 of the 1002 questions. No order of
    chunks is right for those: they count nothing before and after, and dilute any gain.
    """
    folder, questions = data / "cmrc2018" / "kb", data / "cmrc2018" / "questions.jsonl"
    if not folder.is_dir() or not questions.is_file():
        pytest.skip(f"no {folder}")
    graph = NodeGraph(source=folder, progress=False)
    graph.create_node_group("paragraph", str.splitlines)
    graph.create_node_group("chunk", _chunks, parent="paragraph")
    lines = questions.read_text("utf-8").splitlines()
    good = [asked for asked in map(json.loads, lines) if _answered(asked)]
    return graph, good


def _chunks(text: str) -> list[str]:
    return [text[at : at + CHUNK] for at in range(0, len(text), CHUNK)]


def _answered(question: dict) -> bool:
    return any(
        answer in part for part in _chunks(question["context"]) for answer in question["answers"]
    )


def _reciprocal_ranks(rankings: list[list[str]], questions: list[dict]) -> np.ndarray:
    """Return one over the place of the first chunk that has the answer, 0 where none does."""
    values = []
    for texts, asked in zip(rankings, questions, strict=True):
        good = (
            1 / place
            for place, text in enumerate(texts, 1)
            if text in asked["context"] and any(answer in text for answer in asked["answers"])
        )
        values.append(next(good, 0.0))
    return np.array(values)


def _error(differences: np.ndarray) -> float:
    """Return the standard error of their mean."""
    return float(differences.std(ddof=1) / len(differences) ** 0.5)


def _texts(rankings: list[list[ScoredNode]]) -> list[list[str]]:
    return [[result.node.text.strip() for result in results] for results in rankings]


def test_cross_encoder_improves_ranking_on_cmrc(model, cmrc) -> None:
    """The gain exceeds twice its standard error over the questions.

    The retrieval is weak on purpose: BM25 on jieba's words. All 866 questions are needed, since
    200 questions have a standard error of 0.02, about the size of the gain. For every fourth
    question, the reranker's order is compared with the plain model on equal truncated chunks.
    """
    jieba = pytest.importorskip("jieba", reason="the weak retrieval needs: pip install jieba")
    graph, questions = cmrc
    asked = [question["question"] for question in questions]
    inner = Retriever(graph, "chunk", Bm25(analyzer=jieba.lcut), top_k=FETCHED)
    retriever = RerankRetriever(
        inner, "ModuleReranker", model=model, top_k=FETCHED, fetch_k=FETCHED, on_error="raise"
    )
    found, ranked = inner.batch(asked), retriever.batch(asked)
    before, after = (_reciprocal_ranks(_texts(rankings), questions) for rankings in (found, ranked))
    some = slice(None, None, 4)
    alone = [_by(model, q, r) for q, r in zip(asked[some], _texts(found[some]), strict=True)]
    bare = _reciprocal_ranks(alone, questions[some])
    figures = {
        "before": float(before.mean()),
        "after": float(after.mean()),
        "gain": float((after - before).mean()),
        "its standard error": _error(after - before),
        "beside the bare model": float((after[some] - bare).mean()),
        "standard error beside it": _error(after[some] - bare),
    }
    logging.getLogger(__name__).info("MRR@5 over %d questions: %s", len(asked), figures)
    assert figures["gain"] > 2 * figures["its standard error"] > 0, figures
    assert figures["beside the bare model"] > -0.01, figures
    assert all(0 <= r.score <= 1 for results in ranked for r in results)
    assert all([e.similarity for e in r.evidence[:1]] == ["ModuleReranker"] for r in ranked[0])


def _by(model, query: str, texts: list[str]) -> list[str]:
    """Order texts by the model alone."""
    scores = model.predict([(query, text) for text in texts], show_progress_bar=False)
    return [texts[at] for at in np.argsort(-scores, kind="stable")]


def test_long_passages_are_read_in_windows(model) -> None:
    """The answer is after the first 144 tokens, the model's limit without windows."""
    reranker = CrossEncoderReranker(model)
    assert reranker.max_tokens == 144
    filler = "茶是一种用茶树叶子泡制的饮品，各地有不同的喝法。" * 20
    question = "长江有多长？"
    answer = "长江全长约6300公里，是亚洲最长的河流。"
    other = Document(filler, id="other")
    lengthy = Document(filler + answer + filler, id="long")
    made = NodeGraph(progress=False)
    made.add([other, lengthy])
    results = [ScoredNode(made.node(name), 1.0) for name in ("other", "long")]
    best, _ = reranker.rerank(results, question)
    assert best.node.id == "long"
    window = best.evidence[0].node
    assert "6300公里" in window.text
    assert len(window.text) < 144 * 3
    assert best.node.text[window.start : window.end] == window.text
    tokens = model.tokenizer(question, window.text)["input_ids"]
    assert len(tokens) <= 144


def test_cross_encoder_is_thread_safe(model, cmrc) -> None:
    graph, questions = cmrc
    inner = Retriever(graph, "chunk", top_k=4)
    retriever = RerankRetriever(
        inner, "ModuleReranker", model=model, top_k=2, fetch_k=4, on_error="raise"
    )
    asked = [question["question"] for question in questions[:8]]
    alone = [[r.node.id for r in retriever(each)] for each in asked]
    with ThreadPoolExecutor(4) as pool:
        made = [[r.node.id for r in results] for results in pool.map(retriever, asked)]
    assert made == alone


class CountingTokenizer:
    """Count how often texts are tokenized. Passes on everything else."""

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer
        self.calls = []

    def __call__(self, *args, **settings):
        self.calls.append(args)
        return self.tokenizer(*args, **settings)

    def __getattr__(self, name):
        return getattr(self.tokenizer, name)


@pytest.fixture(params=["Bert", "DistilBert", "XLMRoberta", "Electra", "Bert with two labels"])
def tiny(request, tmp_path: Path):
    """Return a cross-encoder with made-up weights whose tokens are characters."""
    reason = "the cross-encoder needs: pip install torch sentence-transformers"
    torch = pytest.importorskip("torch", reason=reason)
    package = pytest.importorskip("sentence_transformers", reason=reason)
    import tokenizers
    import transformers

    kind, _, two = request.param.partition(" ")
    marks = ["[PAD]", "[CLS]", "[SEP]", "[UNK]"]
    vocabulary = {token: at for at, token in enumerate([*marks, *"abcdefgh 长江茶。?"])}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Split(tokenizers.Regex("."), "isolated")
    made.post_processor = tokenizers.processors.TemplateProcessing(
        "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", [("[CLS]", 1), ("[SEP]", 2)]
    )
    names = ["input_ids", "attention_mask", *(["token_type_ids"] * (kind in ("Bert", "Electra")))]
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=made,
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        unk_token="[UNK]",
        model_input_names=names,
    )
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    if kind == "DistilBert":
        sizes = {"dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 64}
    config = getattr(transformers, f"{kind}Config")(
        vocab_size=len(vocabulary),
        intermediate_size=64,
        max_position_embeddings=80,
        num_labels=2 if two else 1,
        pad_token_id=0,
        initializer_range=0.5,
        **sizes,
    )
    getattr(transformers, f"{kind}ForSequenceClassification")(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    return package.CrossEncoder(str(tmp_path), device="cpu", max_length=64)


def test_pair_scorer_scores_match_predict(tiny, monkeypatch) -> None:
    """Short, empty and too long pairs, too long queries, small batches."""
    scorer = PairScorer(tiny, "predict")
    assert scorer.is_direct
    monkeypatch.setattr(sentence_transformers, "CPU_BATCH_TOKENS", 200)
    texts = ["茶。", "", "abc", "长江 " * 40, *("abcdefgh"[:n] * n for n in range(9))]
    pairs = [QueryPassage(query, text) for query in ("长江?", "a" * 99, "") for text in texts]
    tokens = [t if len(t["input_ids"]) <= 64 else None for t in scorer.tokenized(pairs)]
    assert None in tokens
    given = [QueryPassage(pair.query, pair.text, t) for pair, t in zip(pairs, tokens, strict=True)]
    bare = tiny.predict([(pair.query, pair.text) for pair in pairs])
    assert bare.std() > 0.01
    for direct in (scorer._scores(given), scorer._scores(pairs)):
        assert direct.reshape(bare.shape) == pytest.approx(bare, abs=1e-5)
    tiny.default_prompt_name = "query"
    assert not scorer.is_direct


def test_pair_scorer_tokenizes_each_pair_once(tiny, monkeypatch) -> None:
    if tiny.num_labels > 1:
        with pytest.raises(RerankError, match="num_labels=1"):
            as_cross_encoder(tiny).scores("a", ["b", "c"])
        return
    results = [passage(text) for text in ("茶。", "abc", "长江。" * 30)]
    bare = CrossEncoderReranker(tiny).rerank(results, "茶?")
    monkeypatch.setattr(PairScorer, "is_direct", False)
    plain = CrossEncoderReranker(tiny).rerank(results, "茶?")
    monkeypatch.undo()
    counting = CountingTokenizer(tiny.tokenizer)
    monkeypatch.setattr(type(tiny), "tokenizer", property(lambda self: counting))
    monkeypatch.setattr(type(tiny), "predict", lambda self, pairs: pytest.fail("called"))
    ranked = CrossEncoderReranker(tiny).rerank(results, "茶?")
    for other in (bare, plain):
        assert [r.node.text for r in ranked] == [r.node.text for r in other]
        assert [r.score for r in ranked] == pytest.approx([r.score for r in other], abs=1e-5)
        assert [r.evidence[0].node.text for r in ranked] == [r.evidence[0].node.text for r in other]
    tokenized = [args for args in counting.calls if len(args) == 2]
    assert tokenized[0] == (["茶?", "茶?", "茶?"], ["茶。", "abc", "长江。" * 30])
    assert [len(args[0]) for args in tokenized[1:]] == [len(tokenized[1][0])]  # the windows
    assert len([args for args in counting.calls if "茶。" in args[0] or "abc" in args[0]]) == 0
    counting.calls.clear()
    texts = [letter.join(["长江。", "abc", " ", "茶茶?"] * 20) for letter in "abcdefgh"]
    CrossEncoderReranker(tiny).rerank([passage(text) for text in texts], "茶?")
    assert len(counting.calls) <= 5  # in whatever number of windows
    windows = [text for args in counting.calls[-1:] for text in args[-1]]
    assert len(windows) > 3 * len(texts)
    assert max(map(len, windows)) <= 64 - 5
    counting.calls.clear()
    (long,) = CrossEncoderReranker(tiny).rerank([passage("长江。" * 5_000)], "茶?")
    assert len(long.evidence[0].node.text) < 64
    assert max(len(text) for args in counting.calls for text in args[-1]) <= 32 * 64
