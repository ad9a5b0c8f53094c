"""Search for sentences in files with pages, and return the pages that contain them.

Usage: python examples/pages.py [folder]. The folder may contain PDF files, Word documents,
presentations and e-books. Readers for these formats are required: pip install "nodekin[files]"
"""

import sys
from importlib.util import find_spec
from pathlib import Path

from nodekin import NodeGraph, Retriever
from nodekin.nodegraph import split_sentences

FILES = Path(__file__).parent / "files"
QUESTIONS = ["When is the kettle cleaned with vinegar?", "谁付运费？"]


def main(folder: Path) -> None:
    """Print the page that contains the best sentence, and then a list of pages."""
    graph = NodeGraph(folder, progress=False)
    graph.create_node_group("sentence", split_sentences)
    search = Retriever(graph, "sentence", "bm25", target="page", top_k=1)
    for question in QUESTIONS if folder == FILES else [input("? ")]:
        for result in search(question):
            print(f"? {question}\n  {result.place}: {result.evidence[0].node.text.strip()}")
    for page in graph.nodes("page"):
        print(f"{page.place}: {len(page.text)} characters")


if __name__ == "__main__":
    if find_spec("pypdfium2") is None:
        raise SystemExit('This example needs: pip install "nodekin[files]"')
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FILES)
