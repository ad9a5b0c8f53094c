"""Documents and slides of Office 97 to 2003."""

from pathlib import Path

import pytest

from nodekin.nodegraph import NodeGraph

OLD_FILES = Path(__file__).parents[2] / "support" / "office97"


def test_old_word_file_and_slides_are_read(tmp_path: Path) -> None:
    pytest.importorskip("office_oxide", reason="no office-oxide: pip install office-oxide")
    for name in ("handbook.doc", "slides.ppt"):
        (tmp_path / name).write_bytes((OLD_FILES / name).read_bytes())
    (tmp_path / "broken.doc").write_bytes((OLD_FILES / "handbook.doc").read_bytes()[:1500])
    graph = NodeGraph(tmp_path, progress=False)
    word, slides = graph.nodes("ROOT")
    assert word.text == "# The tea handbook\n\nGreen tea is bought in May."
    assert slides.text == "# Buying\n\nGreen tea\n\nBlack tea\n\n\f\n\n# Serving\n\nPour it"
    assert slides.metadata["page_unit"] == "slide"
    (failure,) = graph.failures
    assert "damaged" in str(failure.error)
