"""Long passages by their best window, with headings."""

import pickle

from support.cross_encoders import Predicts, Scores
from support.fixed_retriever import candidates, text_scores

from nodekin.nodegraph import Document, MarkdownSplitter, Node, NodeGraph
from nodekin.retrievers import Reranker, Retriever, ScoredNode
from nodekin.retrievers.rerankers.cross_encoder_reranker import CrossEncoderReranker


def test_long_passage_gets_score_of_its_best_window() -> None:
    text = "长江是中国最长的河流。它发源于青海省。它流入东海。茶是一种饮品。"
    asked = []

    def model(query, texts):
        asked.extend(texts)
        return [float("茶" in each) for each in texts]

    graph = NodeGraph(progress=False)
    graph.create_node_group("line", str.splitlines)
    graph.add([Document(f"短。\n{text}", id="d")])
    results = Retriever(graph, "line")("长江是什么？短")
    reranker = Reranker("ModuleReranker", model=model, max_tokens=25, length=len, overlap=8)
    best, other = reranker(results, "茶")
    assert asked[-1] == "短。"
    assert asked[:-1] == [
        "长江是中国最长的河流。它发源于青海省。",
        "它发源于青海省。它流入东海。",
        "它流入东海。茶是一种饮品。",
    ]
    assert best.node.text == text
    assert best.score == 1.0
    window = best.evidence[0].node
    assert window.text == "它流入东海。茶是一种饮品。"
    assert graph.node("d").text[window.start : window.end] == window.text
    assert window.parent == best.node
    assert window.group == "line"
    assert "它流入东海。茶是一种饮品。" in best.explain()
    assert other.evidence[0].node == other.node
    pickle.loads(pickle.dumps(best))


def test_negative_scores_keep_the_best_window() -> None:
    scores = {"aaaa": -7.0, "bbbb": -2.0, "cc": -3.0}
    reranker = CrossEncoderReranker(
        lambda query, texts: [scores[each] for each in texts], max_tokens=9, length=len, overlap=0
    )
    assert text_scores(reranker.rerank(candidates("aaaabbbb", "cc"), "q")) == [
        ("aaaabbbb", -2.0),
        ("cc", -3.0),
    ]


def test_limit_and_tokenizer_of_the_model_apply() -> None:
    class Tokenizer:
        def __call__(self, texts, add_special_tokens, truncation, verbose):
            assert (add_special_tokens, truncation, verbose) == (False, False, False)
            assert max(map(len, texts)) <= 320  # a long text is cut first
            return {"input_ids": [list(text) for text in texts]}

        def num_special_tokens_to_add(self, pair):
            return 3

    class Model(Predicts):
        max_seq_length = 10
        tokenizer = Tokenizer()

        def predict(self, sentences, show_progress_bar=None):
            assert all(3 + len(query) + len(text) <= 10 for query, text in sentences)
            return [float(ord(text[-1])) for _, text in sentences]

    reranker = CrossEncoderReranker(Model())
    assert reranker.max_tokens == 10
    assert text_scores(reranker.rerank(candidates("abcdefghij"), "qq")) == [
        ("abcdefghij", float(ord("j")))
    ]
    (ranked,) = reranker.rerank(candidates("a b. " * 200 + "z" + " b. a" * 200), "qq")
    assert ranked.score == float(ord("z"))
    assert "z" in ranked.evidence[0].node.text
    assert CrossEncoderReranker(Model(), max_tokens=9).max_tokens == 9
    assert CrossEncoderReranker(Scores()).max_tokens == 400


def test_query_above_the_limit_is_truncated() -> None:
    reranker = CrossEncoderReranker(Scores(), max_tokens=8, length=len)
    assert text_scores(reranker.rerank(candidates("abcdefgh"), "q" * 99)) == [("abcdefgh", 2.0)]


def test_headings_are_scored_and_never_shown() -> None:
    asked = []

    def model(query, texts):
        asked.extend(texts)
        return [float(query in each) for each in texts]

    graph = NodeGraph(progress=False)
    graph.create_node_group("section", MarkdownSplitter())
    graph.create_node_group("line", lambda text: text.splitlines()[1:], parent="section")
    graph.add("# Tea\nA drink.\n## Green\nUnfermented drink.\n")
    results = Retriever(graph, "line")("drink")
    (best,) = Reranker("ModuleReranker", model=model, top_k=1)(results, "Green")
    assert set(asked) == {"Tea > Green\nUnfermented drink.", "Tea\nA drink."}
    assert best.node.text == best.evidence[0].node.text == "Unfermented drink."
    asked.clear()
    Reranker("ModuleReranker", model=model, search_text=False)(results, "Green")
    assert sorted(asked) == ["A drink.", "Unfermented drink."]
    asked.clear()
    group = lambda node: f"{node.group.upper()}\n{node.text}"  # noqa: E731
    Reranker("ModuleReranker", model=model, search_text=group)(results, "q")
    assert sorted(asked) == ["LINE\nA drink.", "LINE\nUnfermented drink."]


def test_long_headings_lose_the_outermost() -> None:
    asked = []

    def model(query, texts):
        asked.extend(texts)
        return [0.0] * len(texts)

    nodes = [Node("text", {"headings": ["x" * 30, "Tea", "Green"]}), Node("t", {"headings": 3})]
    reranker = CrossEncoderReranker(model, max_tokens=60, length=len)
    reranker.rerank([ScoredNode(node, 1.0) for node in nodes], "q")
    assert asked == ["Tea > Green\ntext", "3\nt"]
    long = ScoredNode(Node("a" * 100, {"headings": ["Tea"]}), 1.0)
    asked.clear()
    reranker.rerank([long], "q")
    assert all(each.startswith("Tea\n") and len(each) <= 55 for each in asked)
