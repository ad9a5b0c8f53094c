"""Word documents and slides."""

from pathlib import Path

import pytest
from support.feature_files import old_slides_file, old_word_file

from nodekin.nodegraph import NodeGraph


def test_slides(tmp_path: Path) -> None:
    from pptx import Presentation
    from pptx.util import Inches

    deck = Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[1])
    slide.shapes.title.text = "Tea in numbers"
    slide.placeholders[1].text = "Green\nBlack"
    slide.notes_slide.notes_text_frame.text = "Say it slowly."
    slide = deck.slides.add_slide(deck.slide_layouts[5])
    slide.shapes.title.text = "价格"
    table = slide.shapes.add_table(2, 2, Inches(1), Inches(2), Inches(4), Inches(1)).table
    for at, value in enumerate(["茶", "价", "龙井", "4|2"]):
        table.cell(at // 2, at % 2).text = value
    deck.core_properties.title = "Numbers"
    deck.save(str(tmp_path / "deck.pptx"))
    (node,) = NodeGraph(tmp_path / "deck.pptx", progress=False).nodes("ROOT")
    assert node.text == (
        "# Tea in numbers\n\n- Green\n- Black\n\nNotes: Say it slowly.\n\n\f\n\n"
        "# 价格\n\n| 茶 | 价 |\n| --- | --- |\n| 龙井 | 4\\|2 |"
    )
    assert (node.metadata["title"], node.metadata["page_unit"]) == ("Numbers", "slide")


def test_old_word_file_and_slides_are_read(tmp_path: Path) -> None:
    pytest.importorskip("office_oxide", reason="no office-oxide: pip install office-oxide")
    old_word_file(tmp_path / "a.doc", "The tea handbook\rGreen tea is bought in May.\r")
    old_slides_file(tmp_path / "b.ppt", ("Buying", "Green tea\rBlack tea"), ("Serving", "Pour it"))
    (tmp_path / "c.doc").write_bytes((tmp_path / "a.doc").read_bytes()[:1500])
    graph = NodeGraph(tmp_path, progress=False)
    word, slides = graph.nodes("ROOT")
    assert word.text == "# The tea handbook\n\nGreen tea is bought in May."
    assert slides.text == "# Buying\n\nGreen tea\n\nBlack tea\n\n\f\n\n# Serving\n\nPour it"
    assert slides.metadata["page_unit"] == "slide"
    (failure,) = graph.failures
    assert "damaged" in str(failure.error)
