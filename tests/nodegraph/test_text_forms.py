"""Texts and ids in two Unicode forms (NFC, NFD) are one text and one id."""

import re
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodekin import NodeGraph
from nodekin.nodegraph import Document
from nodekin.nodegraph.text_forms import composed_matches, other_forms

FORMS = pytest.mark.parametrize(("stored", "asked"), [("NFC", "NFD"), ("NFD", "NFC")])

# Latin, Vietnamese, Greek, Cyrillic, Korean, Japanese, Bengali, and letters that never compose.
NAMES = ["José", "Ngữ Việt", "Ἀθῆναι", "Йод", "한국어", "がぎぐ", "কোড", "क़लम", "Å", "ẛ"]


def form(name: str, text: str) -> str:
    return unicodedata.normalize(name, text)  # type: ignore[arg-type]


@FORMS
@pytest.mark.parametrize("name", NAMES)
def test_node_finds_id_in_other_form(stored: str, asked: str, name: str) -> None:
    graph = NodeGraph(progress=False)
    given_id = form(stored, f"{name}/{name}.md")
    assert graph.add(Document("Tea.", id=given_id)) == [given_id]
    assert graph.node(form(asked, given_id)).id == given_id
    graph.add(Document("Milk.", id="b.md"))
    graph.link("b.md", form(asked, given_id))
    (linked,) = graph.linked(form(asked, given_id), incoming=True)
    assert linked.id == "b.md"


@FORMS
def test_node_finds_id_of_mixed_forms(stored: str, asked: str) -> None:
    graph = NodeGraph(progress=False)
    mixed = f"{form(stored, 'é')} {form(asked, 'ü')}.md"
    graph.add(Document("Tea.", id=mixed))
    assert graph.node("é ü.md").id == mixed


def test_id_in_its_own_form_has_priority(tmp_path: Path) -> None:
    for name in ("NFC", "NFD"):  # two files of a folder on Linux
        (tmp_path / form(name, "é.md")).write_text(name)
    graph = NodeGraph(tmp_path, progress=False)
    if len(graph.nodes("ROOT")) == 2:  # file systems of macOS have one file
        for name in ("NFC", "NFD"):
            assert graph.node(f"{tmp_path.name}/{form(name, 'é.md')}").text == name
        (tmp_path / form("NFC", "é.md")).write_text("changed")
        assert len(graph.refresh().updated) == 1
        assert len(graph.nodes("ROOT")) == 2


@FORMS
@pytest.mark.parametrize("name", ["é.md", "é/ü.md"])
def test_add_of_other_form_replaces_document(stored: str, asked: str, name: str) -> None:
    graph = NodeGraph(progress=False)
    graph.add([Document("Old tea.", id=form(stored, name)), Document("Milk.", id="b.md")])
    graph.add(Document("New tea.", id=form(asked, name)))
    assert {node.id: node.text for node in graph.nodes("ROOT")} == {
        form(asked, name): "New tea.",
        "b.md": "Milk.",
    }
    graph.update(Document("Newer tea.", id=form(stored, name)))
    assert [n.text for n in graph.nodes("ROOT") if n.id != "b.md"] == ["Newer tea."]


def test_add_replaces_document_of_mixed_forms() -> None:
    graph = NodeGraph(progress=False)
    graph.add(Document("Old.", id=f"{form('NFD', 'é')}/{form('NFC', 'ü')}.md"))
    graph.add(Document("New.", id=form("NFC", "é/ü.md")))
    assert [node.text for node in graph.nodes("ROOT")] == ["New."]


def test_add_of_both_forms_raises() -> None:
    graph = NodeGraph(progress=False)
    both = [Document(name, id=form(name, "é.md")) for name in ("NFC", "NFD")]
    with pytest.raises(ValueError, match="document ids must be unique"):
        graph.add(both)


@FORMS
def test_renamed_file_replaces_its_document(stored: str, asked: str, tmp_path: Path) -> None:
    file = tmp_path / form(stored, "é.md")
    file.write_text("Tea.")
    graph = NodeGraph(tmp_path, progress=False)
    file.rename(tmp_path / form(asked, "é.md"))
    graph.refresh()
    assert len(graph.nodes("ROOT")) == 1


@FORMS
def test_remove_takes_id_and_path_in_other_form(stored: str, asked: str, tmp_path: Path) -> None:
    graph = NodeGraph(progress=False)
    graph.add(Document("Tea.", id=form(stored, "é.md")))
    graph.remove(form(asked, "é.md"))
    assert graph.nodes("ROOT") == []
    folder = tmp_path / form(stored, "Verträge")
    folder.mkdir()
    (folder / "a.md").write_text("Tea.")
    graph.add(folder)
    graph.remove(tmp_path / form(asked, "Verträge"))
    assert graph.nodes("ROOT") == []
    assert graph.sources == []


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("stored", ["NFC", "NFD"])
def test_composed_matches_returns_span_of_text(stored: str, name: str) -> None:
    text = form(stored, f"{name}: a {name}!")
    pattern = re.compile(re.escape(form("NFC", name)))
    spans = list(composed_matches(pattern, text))
    assert [text[slice(*span)] for span in spans] == [form(stored, name)] * 2


def test_composed_matches_never_splits_a_letter() -> None:
    assert list(composed_matches(re.compile("Jose"), "Jose\u0301")) == []
    assert list(composed_matches(re.compile("하"), form("NFD", "한"))) == []


@given(st.text("aé ü한が.\n\u0301\u0323\u3099\u1161\u11a8कড়", max_size=12))
def test_composed_matches_finds_whole_text(text: str) -> None:
    if text:
        pattern = re.compile(re.escape(form("NFC", text)))
        assert list(composed_matches(pattern, text)) == [(0, len(text))]


def test_other_forms_are_limited() -> None:
    assert other_forms("a/b.md") == []
    assert len(other_forms("/".join("é" * 30))) <= 64
