"""Synchronize a graph with a folder. Only nodes of changed files are rebuilt.

The program runs on a copy of the Chinese sample pages, or on your own folder, which it does not
modify: ``python examples/sync_folder.py [folder [graph file]]``.
"""

import shutil
import sys
import tempfile
from pathlib import Path

from nodekin.nodegraph import NodeGraph, split_paragraphs
from nodekin.retrievers import Retriever

PAGES = Path(__file__).parent / "data" / "zh"
calls = []


def headline(paragraph: str) -> str:
    """Return a headline for a paragraph. This replaces a language model that costs money."""
    calls.append(paragraph)
    return paragraph.strip().splitlines()[0][:20]


def open_graph(folder: Path, file: Path) -> NodeGraph:
    """Open the graph. If it already contains the folder, files are compared by their hashes."""
    graph = NodeGraph(folder, store=file)
    graph.create_node_group("paragraph", split_paragraphs)
    graph.create_node_group("headline", headline, parent="paragraph", version="1")
    return graph


def ask(graph: NodeGraph, what: str) -> None:
    """Search headlines, and print how many were missing and have been created."""
    calls.clear()
    pages = [result.node.id for result in Retriever(graph, "headline", target="ROOT")("茶 天坛")]
    size = graph.groups["headline"].size
    print(f"{what:<18} {len(calls):>3} headlines made, {size:>3} there; found {pages}")


def main(folder: Path, file: Path, ours: bool) -> None:
    """Build the graph, change the folder in several ways, and print the cost of each change."""
    with open_graph(folder, file) as graph:
        ask(graph, "first run")
    with open_graph(folder, file) as graph:
        ask(graph, "opened again")
        if not ours:
            print("\nnow change your files and run this again")
            return
        pages = sorted(folder.glob("*.md"))
        pages[0].write_text(pages[0].read_text(encoding="utf-8") + "\n\n新的一段。\n", "utf-8")
        pages[1].rename(folder / "renamed.md")
        pages[2].unlink()
        (folder / "new.md").write_text("# 天坛\n\n天坛在北京的南边。\n", encoding="utf-8")
        report = graph.refresh()
        print(f"\nadded {report.added}, updated {report.updated}, removed {report.removed},")
        print(f"{report.unchanged} unchanged")
        ask(graph, "after the changes")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        given = [Path(each) for each in sys.argv[1:]]
        here = given[0] if given else Path(shutil.copytree(PAGES, Path(scratch, "pages")))
        file = Path(f"{here.name}.nodekin") if given else Path(scratch, "graph.nodekin")
        main(here, given[1] if given[1:] else file, not given)
