"""Say in an error what to do from a command line, where the package says what to write."""

from __future__ import annotations

_HINTS = (
    (
        "; convert it, or register a reader",
        "; say what it is with --encoding gb18030, or convert it",
    ),
    (
        ": declare it first with create_node_group",
        "; 'nodekin groups' lists them, 'nodekin index --group NAME=TRANSFORM' makes another",
    ),
    ("; add one with register_reader", "; convert it to text"),
    ("; a text is added with graph.add", ""),
    ("; give the graph a path of its own", "; name another folder with --store, or --rebuild"),
    (
        "; add it as Document(text, id=...), or rename its folder",
        "; rename its folder, or give it an index of its own with --store",
    ),
)


def for_the_command_line(error: BaseException | str) -> str:
    """Return what an error or a warning says in one line, with a remedy that a shell has.

    Example:
        >>> error = LookupError("no node group 'x': declare it first with create_node_group")
        >>> for_the_command_line(error)[:37]
        "no node group 'x'; 'nodekin groups' l"
    """
    text = " ".join(str(error).split()) or type(error).__name__
    for theirs, ours in _HINTS:
        said, found, _ = text.partition(theirs)
        if found:
            return said + ours
    return text
