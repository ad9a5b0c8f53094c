from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodekin.nodegraph import NodeGraph
from nodekin.retrievers import Retriever, TextAnalyzer
from nodekin.retrievers.similarities import Bm25

analyze = TextAnalyzer()


def found(text: str, query: str, analyzer=analyze) -> bool:
    graph = NodeGraph(progress=False)
    graph.add([text, "zzz"])
    results = Retriever(graph, "ROOT", Bm25(analyzer=analyzer)).retrieve(query)
    return [result.node.text for result in results] == [text]


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("", []),
        (" \n\t，。！?", []),
        ("长江", ["长", "江", "长江"]),
        ("长江是河", ["长", "江", "是", "河", "长江", "江是", "是河"]),
        ("茶", ["茶"]),
        ("长，江", ["长", "江"]),
        ("running rivers", ["run", "river"]),
        ("GPT4模型v2", ["gpt4", "模", "型", "模型", "v2"]),
        ("茶tea茶", ["茶", "tea", "茶"]),
        ("ＡＢＣ　１２３", ["abc", "123"]),
        ("①②", ["12"]),
        ("café Ünïcode", ["cafe", "unicod"]),
        ("cafe\u0301", ["cafe"]),
        ("STRASSE Straße", ["strass", "strass"]),
        ("İstanbul", ["istanbul"]),
        ("Ёлка ёлка", ["елка", "елка"]),
        ("the dog's bowl, the dog’s bowl", ["the", "dog", "bowl", "the", "dog", "bowl"]),
        ("C++ C# F#, a+b", ["c++", "c#", "f#", "a", "b"]),
        ("3.14 2024-05-01", ["3", "14", "2024", "05", "01"]),
        ("snake_case", ["snake", "case"]),
        ("カタカナ", ["カ", "タ", "カ", "ナ", "カタ", "タカ", "カナ"]),
        ("ｶﾞ", ["ガ"]),
        ("한국 어", ["한", "국", "한국", "어"]),
        ("ไทย", ["ไ", "ท", "ย", "ไท", "ทย"]),
        ("𠀀𠀁", ["𠀀", "𠀁", "𠀀𠀁"]),
        ("tea ☕👩‍🔬 time", ["tea", "time"]),
        ("\ud800x\x00y", ["x", "y"]),
    ],
)
def test_terms_of_a_text(text: str, terms: list[str]) -> None:
    assert analyze(text) == terms


@pytest.mark.parametrize(
    ("query", "same_as"),
    [
        ("什么是茶", "是茶"),
        ("茶是什么？", "茶是"),
        ("长江有多少支流呢？", "长江有 支流"),
        ("为什么天是蓝的", "天是蓝的"),
        ("谁写了红楼梦", "写了红楼梦"),
        ("他去了哪里", "他去了"),
        ("哪吒是谁", "哪吒是"),
        ("几何有几种", "几何有 种"),
        ("吗啡有毒吗", "吗啡有毒"),
        ("呢绒是布吗?", "呢绒是布"),
        ("What is the longest river?", "longest river"),
        ("Who wrote it", "wrote"),
        ("river in the north for a boat", "river in north for boat"),
    ],
)
def test_a_query_leaves_out_what_only_asks(query: str, same_as: str) -> None:
    assert analyze.query(query) == analyze(same_as)


@pytest.mark.parametrize("query", ["什么", "谁", "为什么", "the", "What is it?", "The Who"])
def test_a_query_of_nothing_else_keeps_it(query: str) -> None:
    assert analyze.query(query) == analyze(query) != []


def test_texts_keep_all_words() -> None:
    assert analyze("什么是 the") == ["什", "么", "是", "什么", "么是", "the"]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("喝茶的人", "茶"),
        ("他叫哪吒", "哪吒"),
        ("The Ｆｕｌｌ　ｗｉｄｔｈ", "full width"),
        ("Learn c++ now", "C++"),
        ("日本語のテキスト", "テキスト"),
        ("한국어 문장", "문장"),
        ("a naïve idea", "naive"),
        ("answer: 42", "42"),
        ("whose rivers run", "river"),
    ],
)
def test_found_in_whatever_script(text: str, query: str) -> None:
    assert found(text, query)


@pytest.mark.parametrize(("text", "query"), [("C", "C++"), ("C#", "c"), ("天气", "天空")])
def test_different_words_are_different(text: str, query: str) -> None:
    assert set(analyze(text)) != set(analyze(query))


def test_without_stemming() -> None:
    assert TextAnalyzer(stem=False)("Running rivers") == ["running", "rivers"]


def test_any_callable_analyzes() -> None:
    jieba = pytest.importorskip("jieba")
    assert found("我来到北京清华大学", "清华大学", jieba.lcut)
    assert found("我来到北京清华大学", "清华大学", jieba.cut)  # a generator
    assert found("x y", "x", str.split)
    assert found("xy", "y", lambda text: list(text))


def test_an_analyzer_need_not_be_hashable() -> None:
    class Words:
        __hash__ = None  # as a dataclass has it

        def __call__(self, text: str) -> list[str]:
            return text.split()

    words = Words()
    assert found("x y", "x", words)
    graph = NodeGraph(progress=False)
    graph.add("x y")
    assert Bm25(analyzer=words).open(graph, "ROOT") is Bm25(analyzer=words).open(graph, "ROOT")
    assert Bm25(analyzer=words).open(graph, "ROOT") is not Bm25(analyzer=Words()).open(
        graph, "ROOT"
    )


def test_an_analyzer_with_its_own_query_method() -> None:
    class Synonyms:
        def __call__(self, text: str) -> list[str]:
            return text.split()

        def query(self, text: str) -> list[str]:
            return [{"automobile": "car"}.get(word, word) for word in text.split()]

    assert found("my car", "automobile", Synonyms())
    assert not found("my automobile", "automobile", Synonyms())


def test_many_threads_stem_alike() -> None:
    words = [f"running{i} rivers flowing" for i in range(200)]
    expected = [analyze(word) for word in words]
    with ThreadPoolExecutor(8) as pool:
        for terms in pool.map(lambda _: [analyze(word) for word in words], range(40)):
            assert terms == expected


@given(st.text())
def test_any_text_gives_terms_without_white_space(text: str) -> None:
    terms = analyze(text)
    assert all(term and not any(c.isspace() for c in term) for term in terms)
    assert analyze(text.upper().lower()) == analyze(text.upper().lower().casefold())


@given(st.text(alphabet="茶江长tea s什么的吗 '"))
def test_a_query_has_only_terms_of_its_text(text: str) -> None:
    terms = analyze(text)
    asked = analyze.query(text)
    assert set(asked) <= set(terms)
    assert bool(asked) == bool(terms)
