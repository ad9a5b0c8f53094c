"""Helpers that return the texts of nodes as lists, so that tests can compare them."""

from nodekin.nodegraph import Node


def texts(nodes: list[Node]) -> list[str]:
    return [node.text for node in nodes]


def split_lines(text: str) -> list[str]:
    return text.splitlines()
