"""ToolConversations have names that can't be guessed, and the oldest are forgotten."""

import pytest

from nodekin.adapters.mcp import mcp_server as tool_conversations
from nodekin.adapters.mcp.mcp_server import NEW, ToolConversations
from nodekin.retrievers import ToolError


def test_conversation_is_found_by_name() -> None:
    known = ToolConversations()
    one, other = known.find(NEW), known.find(NEW)
    assert one is not None
    assert other is not None
    assert one.name != other.name
    assert known.find(one.name) is one
    assert known.find(None) is None


@pytest.mark.parametrize("name", ["", "main", 3, ["new"], "0" * 16])
def test_conversation_names_are_chosen_by_server(name) -> None:
    with pytest.raises(ToolError, match=r"there is no conversation .*; begin one with"):
        ToolConversations().find(name)


def test_most_recently_used_conversations_are_kept(monkeypatch) -> None:
    monkeypatch.setattr(tool_conversations, "_MAX_CONVERSATIONS", 2)
    known = ToolConversations()
    names = [known.find(NEW).name, known.find(NEW).name]
    known.find(names[0])
    known.find(NEW)
    assert known.find(names[0])
    with pytest.raises(ToolError):
        known.find(names[1])
