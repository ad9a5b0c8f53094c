"""The conversations of a server's clients, each known by a name that only its client has."""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from dataclasses import dataclass, field

from ..retrievers.corpus_tools.tool_output import ToolError, ToolSession

NEW = "new"
"""What a client gives in place of a name that it does not have yet."""

_MOST = 1000  # conversations that are remembered


@dataclass(slots=True)
class ToolConversation:
    """Hold what a conversation has read; hold the lock while a tool is called with it."""

    name: str
    session: ToolSession = field(default_factory=ToolSession)
    lock: threading.Lock = field(default_factory=threading.Lock)


class ToolConversations:
    """Give conversations names that can't be guessed, and find them by these.

    A client that could choose its names could see, or spoil, what another has read. Protocols
    without sessions leave no other way to tell clients apart.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[str, ToolConversation] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, name: object) -> ToolConversation | None:
        """Return a conversation, or a new one where the name is ``NEW``; None for None.

        Raises:
            ToolError: If there is no such conversation (any more).
        """
        if name is None:
            return None
        with self._lock:
            if name == NEW:
                name = secrets.token_hex(8)
                self._known[name] = ToolConversation(name)
                while len(self._known) > _MOST:
                    self._known.popitem(last=False)
            if not isinstance(name, str) or name not in self._known:
                raise ToolError(
                    f"there is no conversation {name!r:.80}; begin one with conversation={NEW!r}, "
                    "and give the name that comes with the result from then on"
                )
            self._known.move_to_end(name)
            return self._known[name]
