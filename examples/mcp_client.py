"""Write an MCP client that starts ``nodekin mcp`` for a folder and calls its tools.

See docs/agents.md for the configuration of editors and desktop assistants. The MCP SDK is required:
pip install "nodekin[mcp]"
"""

import asyncio
import sys
from pathlib import Path

try:
    from mcp import Client, StdioServerParameters, stdio_client
except ImportError:
    raise SystemExit('This example needs: pip install "nodekin[mcp]"') from None

PAGES = Path(__file__).parent / "data" / "zh"


async def main(folder: Path, question: str) -> None:
    """List the tools, search for the question, and read the document of the first result."""
    command = [sys.executable, "-m", "nodekin"]
    server = StdioServerParameters(command=command[0], args=[*command[1:], "mcp", str(folder)])
    async with Client(stdio_client(server)) as client:
        print("tools:", ", ".join(tool.name for tool in (await client.list_tools()).tools))
        found = await client.call_tool("search", {"query": question})
        print(found.content[0].text)


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else PAGES
    asyncio.run(main(folder, sys.argv[2] if len(sys.argv) > 2 else "谁最早把茶写成书？"))
