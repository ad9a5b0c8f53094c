"""Word documents and slides."""

from pathlib import Path

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
