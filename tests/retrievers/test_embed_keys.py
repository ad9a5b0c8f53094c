"""Several embeddings in one graph: which are searched, and how their results are united."""

import numpy as np
import pytest

from nodekin.nodegraph import Document, NodeGraph
from nodekin.retrievers import Retriever


def vowels(texts: list[str]) -> np.ndarray:
    return np.array([[1e-3 + text.count(v) for v in "aeiou"] for text in texts], np.float32)


def length(texts: list[str]) -> np.ndarray:
    return np.array([[1.0, len(text)] for text in texts], np.float32)


DOCUMENTS = [Document(t, id=t) for t in ("aaaa", "eeee", "aa", "oooo", "a", "ae")]


def new_graph(**embed) -> NodeGraph:
    graph = NodeGraph(progress=False, embed=embed or {"vowels": vowels, "length": length})
    graph.add(DOCUMENTS)
    return graph


def found(retriever: Retriever, query: str, **settings) -> list[tuple[str, float]]:
    return [(r.node.id, r.score) for r in retriever.retrieve(query, **settings)]


def test_embed_keys_select_one_embedding() -> None:
    graph = new_graph()
    assert [i for i, _ in found(Retriever(graph, "ROOT", "cosine", embed_keys=["length"]), "ee")][
        :2
    ] == ["aa", "ae"]
    by_vowels = Retriever(graph, "ROOT", "cosine", embed_keys="vowels", top_k=2)
    assert by_vowels.embed_keys == ["vowels"]
    assert [i for i, _ in found(by_vowels, "ee")] == ["eeee", "ae"]


@pytest.mark.parametrize("keys", [None, ["vowels", "length"], ("length", "vowels", "length")])
def test_several_embeddings_return_best_with_all_evidence(keys) -> None:
    graph = new_graph()
    retriever = Retriever(graph, "ROOT", "cosine", embed_keys=keys, top_k=2)
    single = {
        key: dict(found(Retriever(graph, "ROOT", "cosine", embed_keys=[key], top_k=2), "ee"))
        for key in ("vowels", "length")
    }
    results = retriever.retrieve("ee")
    assert {r.node.id for r in results} < set(single["vowels"]) | set(single["length"])
    assert len({r.node.id for r in results}) == len(results) == 2
    for result in results:
        by_key = {
            k: scores[result.node.id] for k, scores in single.items() if result.node.id in scores
        }
        assert result.score == max(by_key.values()) == result.evidence[0].score
        assert {e.embed_key: e.score for e in result.evidence} == by_key
    assert [r.score for r in results] == [1.0, 1.0]
    assert retriever.batch(["ee", "a"]) == [retriever.retrieve("ee"), retriever.retrieve("a")]


def test_min_score_by_key_limits_each_embedding() -> None:
    graph = new_graph()
    every = found(Retriever(graph, "ROOT", "cosine", embed_keys=["length"], top_k=9), "u")
    for min_score in ({"vowels": 1}, {"vowels": 1, "length": -1}):
        retriever = Retriever(graph, "ROOT", "cosine", min_score=min_score, top_k=9)
        assert found(retriever, "u") == every
    retriever = Retriever(graph, "ROOT", "cosine", min_score={"vowels": 1, "length": 1})
    assert [i for i, _ in found(retriever, "ee")] == ["eeee", "aa", "ae"]
    vowels_alone = Retriever(graph, "ROOT", "cosine", embed_keys=["vowels"], min_score=1)
    assert found(vowels_alone, "u") == []


def test_default_similarity_searches_words_and_vectors() -> None:
    graph = new_graph()
    graph.add([Document("xyz", id="xyz"), Document("xyz xyz aeiou", id="both")])
    auto = Retriever(graph, "ROOT", top_k=3)
    results = auto.retrieve("xyz")
    assert len(results) == 3
    assert results[0].node.id == "xyz"
    ways = {(match.similarity, match.embed_key) for match in results[0].evidence}
    assert ways == {("bm25", None), ("cosine", "vowels"), ("cosine", "length")}
    assert sum(match.share or 0 for match in results[0].evidence) == pytest.approx(results[0].score)
    assert auto.batch(["xyz", " "], filters={"not": {"of": 1}})[0] != []
    assert len(auto.retrieve(" ", filters={"not": {"of": 1}})) == 3
    words = NodeGraph(progress=False)
    words.add(DOCUMENTS)
    assert Retriever(words, "ROOT").similarity.name == "bm25"
    assert Retriever(graph, "ROOT", embed_keys=["vowels"]).similarity.name == "cosine"
    one = Retriever(graph, "ROOT", "auto", embed_keys=["vowels"])
    assert {match.embed_key for match in one.retrieve("ae")[0].evidence} == {None, "vowels"}
    with pytest.raises(ValueError, match="words and vectors are searched; set similarity"):
        Retriever(graph, "ROOT", min_score=0.5)


def test_graphs_without_common_embedding_are_searched_by_words() -> None:
    graph = new_graph()
    other, same = NodeGraph(progress=False), new_graph(vowels=vowels)
    other.add("aaaa is what was asked for")
    assert "bm25 + cosine" in repr(Retriever([graph, same], "ROOT"))
    for graphs in ([graph, other], [other, graph]):
        retriever = Retriever(graphs, "ROOT")
        assert retriever.similarity.name == "bm25"
        assert {len(result.text) for result in retriever.retrieve("aaaa")} == {4, 26}


def test_invalid_min_score_of_embeddings_raises() -> None:
    graph = new_graph()
    with pytest.raises(ValueError, match="from -1 to 1 for cosines, got 80"):
        Retriever(graph, "ROOT", "cosine", min_score=80)
    with pytest.raises(ValueError, match=r"key 'vowel'; the embeddings .* are 'vowels', 'length'"):
        Retriever(graph, "ROOT", "cosine", min_score={"vowel": 0.5})
    with pytest.raises(ValueError, match=r"key 'length'; the embeddings .* are 'vowels'"):
        Retriever(graph, "ROOT", "cosine", embed_keys=["vowels"], min_score={"length": 0.5})
    with pytest.raises(TypeError, match="a number, or a dict with one for each key, got 'x'"):
        Retriever(graph, "ROOT", "cosine", min_score={"vowels": "x"})
    with pytest.raises(TypeError, match=r"a number, or a dict .*, got True"):
        Retriever(graph, "ROOT", "cosine", min_score=True)
    with pytest.raises(ValueError, match="got nan"):
        Retriever(graph, "ROOT", "cosine", min_score={"vowels": float("nan")})


def test_invalid_embed_keys_raise() -> None:
    graph = new_graph()
    with pytest.raises(
        ValueError, match="unknown embedding 'vowel'; the graph has 'vowels', 'length'"
    ):
        Retriever(graph, "ROOT", "cosine", embed_keys=["vowel"])
    with pytest.raises(ValueError, match="names no embedding"):
        Retriever(graph, "ROOT", "cosine", embed_keys=[])
    with pytest.raises(ValueError, match=r"embed_keys=\['vowels'\] .* 'bm25' compares texts"):
        Retriever(graph, "ROOT", "bm25", embed_keys=["vowels"])
    with pytest.raises(ValueError, match=r"'cosine' compares embeddings, .*embed=\.\.\.\)"):
        Retriever(NodeGraph(), "ROOT", "cosine")


def test_graphs_with_different_embeddings_are_searched_together() -> None:
    first, second = new_graph(vowels=vowels), NodeGraph(progress=False, embed={"length": length})
    second.add([Document("uuu", id="u"), Document("uu", id="uu")])
    retriever = Retriever([first, second], "ROOT", "cosine", top_k=2)
    assert found(retriever, "ee") == [("eeee", 1.0), ("uu", 1.0)]
    assert found(retriever.with_fetch_k(1), "ee") == [("eeee", 1.0), ("uu", 1.0)]
    assert [result.node.id for result in retriever("ee", top_k=1)] == ["eeee"]
    with pytest.raises(ValueError, match="unknown embedding 'vowels'; the graph has 'length'"):
        Retriever([first, second], "ROOT", "cosine", embed_keys=["vowels"])
    with pytest.raises(ValueError, match="has none"):
        Retriever([first, NodeGraph()], "ROOT", "cosine")


@pytest.mark.parametrize("target", ["ROOT", "line"])
def test_top_k_limits_results_of_several_embeddings(target: str) -> None:
    graph = NodeGraph(embed={"vowels": vowels, "length": length}, progress=False)
    graph.add([f"{letter * 2}\n{letter * number}" for number, letter in enumerate("aeiouaeiou", 1)])
    graph.create_node_group("line", str.splitlines)
    retriever = Retriever(graph, "line", "cosine", target=target, top_k=9)
    whole = retriever("ee")
    for top_k in (1, 2, 3, 5):
        results = retriever("ee", top_k=top_k)
        assert len(results) == top_k
        assert len({result.node.id for result in results}) == top_k
        assert [r.score for r in results] == [r.score for r in whole[:top_k]]
        assert {match.embed_key for r in results for match in r.evidence} <= {"vowels", "length"}


def test_cosine_never_returns_zero_vectors() -> None:
    graph = NodeGraph(embed=lambda texts: [[t.count("a"), t.count("b")] for t in texts])
    graph.add(["a", "b", "none"])
    results = Retriever(graph, "ROOT", "cosine", top_k=3)("a")
    assert [result.text for result in results] == ["a", "b"]
