import langchain_nodekin
from langchain_nodekin import document_loaders, retrievers, tools, vectorstores

EXPECTED = [
    "FileLoader",
    "GraphEmbeddings",
    "NodeGraphReranker",
    "NodeGraphRetriever",
    "NodeGraphVectorStore",
    "StructuredFilter",
    "as_index",
    "as_transform",
    "corpus_toolkit",
    "engine_runnable",
    "retriever_tool",
    "transform_query",
]


def test_package_has_expected_names() -> None:
    assert sorted(langchain_nodekin.__all__) == EXPECTED
    assert [getattr(langchain_nodekin, name) for name in EXPECTED]


def test_modules_have_the_names_of_the_package() -> None:
    for module in (document_loaders, retrievers, tools, vectorstores):
        for name in module.__all__:
            assert getattr(module, name) is getattr(langchain_nodekin, name)
