"""Every feature of a format is in the text or in the notes of the read report."""

from pathlib import Path

import pytest
from support.feature_files import FEATURES, TEXT_FEATURES

from nodekin.nodegraph import NodeGraph


@pytest.mark.parametrize("name", FEATURES)
def test_feature_is_in_text_or_in_notes(tmp_path: Path, name: str) -> None:
    write, parts, notes = FEATURES[name]
    write(tmp_path / name)
    graph = NodeGraph(tmp_path / name, progress=False)
    (node,) = graph.nodes("ROOT")
    (noted,) = graph.read_report.notes.values()
    assert [part for part in parts if part not in node.text] == []
    assert [note for note in notes if note not in noted] == []
    assert not any("\ue000" <= character <= "\uf8ff" for character in node.text)
    assert node.text.count("Teahouse") == 1


@pytest.mark.parametrize("name", TEXT_FEATURES)
def test_words_of_text_format_are_in_text_or_noted(tmp_path: Path, name: str) -> None:
    data, words, left_out = TEXT_FEATURES[name]()
    (tmp_path / name).write_bytes(data)
    graph = NodeGraph(tmp_path / name, progress=False)
    text = "\n".join(node.text for node in graph.nodes("ROOT"))
    noted = "".join(graph.read_report.notes.values())
    assert [word for word in words.split() if word not in text] == []
    assert [note for note in left_out if note not in noted] == []
    assert [word for word in " ".join(left_out.values()).split() if word in text] == []
    assert noted.count("(first: ") + noted.count(";") < 2 * len(left_out) + 1  # no other notes
