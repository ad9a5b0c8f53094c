"""Check whether the quotations in an answer are exact and whether its sources have changed.

The answer of the language model is written in this file. Replace it with a real model such as
OpenAIChat("gpt-4o-mini"). A PDF reader is required: pip install "nodekin[files]"
"""

import json
from importlib.util import find_spec
from pathlib import Path

from nodekin import NodeGraph
from nodekin.nodegraph import Document
from nodekin.retrievers import Answer, DefaultRetriever, QueryEngine

ANSWER = (
    "The handbook says that green tea “is poured at Eighty degrees” and “rests for two minutes” "
    "[1]. The kettle is “cleaned with lemon on Fridays” [1]. "
    "“A new cup without a question … the head of the room” [1]. It was written by Mr Lu."
)


def main() -> None:
    """Print each quotation with its page and possible problem, and then change the sources."""
    graph = NodeGraph(Path(__file__).parent / "files" / "handbook.pdf", progress=False)
    engine = QueryEngine(DefaultRetriever(graph), lambda prompt: ANSWER, check="quotes")
    answer = engine.query("How is green tea poured, and the kettle cleaned?")
    for quote in answer.quotes:
        if quote.quoted:
            where = quote.spans[0].place if quote.spans else ""
            print(f"{quote.status:<12} “{quote.text}” {where}".rstrip())
            for span in quote.spans:
                for location in span.locations:  # there is one location for each line of the page
                    print(f"{'':<12} at {location.rectangle}")
    print("", *answer.notes, sep="\n! ")

    stored = json.dumps(answer.to_dict())  # this can be saved in a file or a database
    answer = Answer.from_dict(json.loads(stored))
    print("\nthe sources are the same:", engine.check_current(answer).is_current)
    (document,) = graph.nodes("ROOT")
    graph.add(Document(document.text.replace("two minutes", "three minutes"), id=document.id))
    changes = engine.check_current(answer)
    print("sources that changed:", [source.number for source in changes.changed])
    print("sources that are new:", [result.text[:40] for result in changes.new])


if __name__ == "__main__":
    if find_spec("pypdfium2") is None:
        raise SystemExit('This example needs: pip install "nodekin[files]"')
    main()
