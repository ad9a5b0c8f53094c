"""The names of symbols."""

from pathlib import Path

from nodekin.nodegraph import NodeGraph


def test_names_of_nested_symbols_are_truncated(tmp_path: Path) -> None:
    lines = [f"{' ' * depth}def {'tea' * 20}{depth}():" for depth in range(60)]
    (tmp_path / "a.py").write_text("\n".join([*lines, " " * 60 + "pass"]))
    symbols = [
        n.own_metadata["symbol"] for n in NodeGraph(tmp_path, progress=False).nodes("symbol")
    ]
    assert len(symbols) == 60
    assert max(map(len, symbols)) == 200
    assert symbols[-1].endswith("tea59")
