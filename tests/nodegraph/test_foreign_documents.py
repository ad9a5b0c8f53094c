"""Documents of LangChain and LlamaIndex."""

import pytest

from nodekin.nodegraph import Document, Node, SearchText
from nodekin.nodegraph.foreign_documents import HEADINGS_ONLY, as_document, their_template


def test_langchain_document_is_converted() -> None:
    documents = pytest.importorskip("langchain_core.documents")
    item = documents.Document("Tea.", metadata={"page": 1}, id="t1")
    expected = Document("Tea.", {"page": 1}, id="t1", search_text=HEADINGS_ONLY)
    assert as_document(item) == expected
    assert as_document(documents.Document("Tea.")) == Document("Tea.", search_text=HEADINGS_ONLY)


def test_llama_index_nodes_are_converted() -> None:
    schema = pytest.importorskip("llama_index.core.schema")
    for kind in (schema.Document, schema.TextNode):
        item = kind(
            text="Tea.",
            metadata={"page": 1, "path": "/a"},
            id_="t1",
            excluded_embed_metadata_keys=["path"],
        )
        document = as_document(item)
        assert (document.text, document.metadata, document.id) == ("Tea.", item.metadata, "t1")
        assert document.search_text(Node("Tea.", document.metadata)) == "page: 1\n\nTea."


@pytest.mark.parametrize(
    ("theirs", "ours", "text"),
    [
        ("{content} -- {metadata_str}", "{text} -- {metadata}", "Tea. -- page: 1"),
        ("{metadata_str!s}: {content:>5}", "{metadata!s}: {text:>5}", "page: 1:  Tea."),
        ("{{content}} {{{content}}}", "{{content}} {{{text}}}", "{content} {Tea.}"),
        ("content {content}", "content {text}", "content Tea."),
    ],
)
def test_templates_of_llama_index_return_unchanged(theirs: str, ours: str, text: str) -> None:
    schema = pytest.importorskip("llama_index.core.schema")
    node = schema.TextNode(text="Tea.", metadata={"page": 1}, text_template=theirs)
    searched = as_document(node).search_text
    assert searched == SearchText(
        None, field_template="{key}: {value}", list_separator=None, template=ours
    )
    assert searched(Node("Tea.", {"page": 1})) == text
    assert their_template(searched.template) == theirs
