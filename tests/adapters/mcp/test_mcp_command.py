"""The command ``nodekin mcp``."""


def test_mcp_without_index_or_folder_raises(nodekin):
    assert nodekin("mcp").status == 3
    assert nodekin("mcp", "nowhere").status == 2


def test_foreign_address_requires_token(nodekin):
    ran = nodekin("mcp", "docs", "--http", "--host", "0.0.0.0")
    assert ran.status == 2
    assert "NODEKIN_MCP_TOKEN" in ran.err
