"""Recursive retrieval by sub-chunks and by metadata, saved and loaded, in one script."""

import runpy
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[3] / "examples" / "llama_index_recursive.py"


def test_it_finds_by_all_ways_and_makes_nothing_twice(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    built, loaded = capsys.readouterr().out.split("built: 48 base nodes, 96 texts told by models\n")
    assert loaded.endswith("loaded: 48 base nodes, 0 texts told by models\n")
    assert loaded.rpartition("loaded:")[0] == built  # the same answers by the same ways
    tea, panda = built.split("国宝一天到晚都在吃什么？\n")
    assert "各种真正的茶都来自… by chunk 32: 红茶则属于全发酵茶。青茶又叫乌龙茶" in tea
    assert tea.count("青茶又叫乌龙茶，是半发酵茶，代表品种有福建的安溪铁观音和武夷岩茶。[1]") == 3
    plain, metadata = panda.split("  metadata references: ")
    assert "大熊猫" not in plain  # no chunk has the words of the question
    assert metadata.startswith("大熊猫的学名是Ai… by questions: 国宝大熊猫一天")
    assert "食物却有99%左右是竹子" in metadata
