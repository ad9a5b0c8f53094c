"""Transforms and models that tests let other processes load: they note their calls in a file."""

import os
from dataclasses import dataclass
from pathlib import Path

from nodekin.nodegraph import Node
from nodekin.nodegraph.node import LinkedText


@dataclass
class Noted:
    """Split a text into words; note in a file each text, and by which process."""

    file: Path
    bad: str = "-"

    def note(self, text: str) -> None:
        line = f"{os.getpid()} {text!r}\n".encode()
        descriptor = os.open(self.file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(descriptor, line)  # in one piece, beside those of other processes
        os.close(descriptor)

    def __call__(self, text: str) -> list[str]:
        self.note(text)
        if self.bad in text:
            raise ValueError(f"can't stand {self.bad!r}")
        return text.split()

    def complete(self, prompt: str) -> str:  # so it is a language model, too
        self.note(prompt)
        return f"answer {len(prompt)}"

    name = "noted"


def notes(file: Path) -> list[tuple[int, str]]:
    """Return the calls that were noted: the process and the text."""
    lines = file.read_text("utf-8").splitlines() if file.exists() else []
    return [(int(line.split(" ", 1)[0]), line.split(" ", 1)[1].strip("'")) for line in lines]


class HeavyModel:
    """An embedding model that says when it is loaded."""

    name = "heavy"

    def __init__(self, file: Path) -> None:
        self.noted = Noted(file)

    def __setstate__(self, state: dict[str, Noted]) -> None:
        self.__dict__.update(state)
        self.noted.note("loaded")

    def embed(self, texts: list[str]) -> list[list[float]]:
        if any("broken" in text for text in texts):
            raise ValueError("no such text")
        return [[float(len(text)), float(sum(map(ord, text)))] for text in texts]


class AwkwardError(Exception):
    """An error that can be pickled, but not be loaded again."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(f"{reason} ({code})")


def awkward(text: str) -> list[str]:
    raise AwkwardError(7, text)


def around(node: Node) -> list[object]:
    """Look at all that a node knows of its graph; return texts, numbers, nodes and links."""
    line = node.parent
    assert line is not None
    siblings = line.children["word"]
    first = node.graph.find("word")(node.root)[0]  # type: ignore[union-attr]
    before, _ = node.graph.neighbours(node)  # type: ignore[union-attr, attr-defined]
    with node.graph.reader.reading("line"):  # type: ignore[union-attr]
        ancestors = [group.name for group in node.graph.reader.lineage("word")]  # type: ignore[union-attr]
    return [
        f"{node.text} in {line.text!r} of {node.root.id}, {len(siblings)}, {ancestors}",
        Node(node.text, {"before": before.text if before else None, "place": node.place}),
        LinkedText(f"{node.searched_text} is linked", [first], type="first"),
        len(node.links),
    ]
