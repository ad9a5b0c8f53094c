from typing import Any

from langchain_core.tools import BaseTool
from langchain_nodekin import NodeGraphRetriever, retriever_tool
from langchain_tests.integration_tests import ToolsIntegrationTests

from ..documents import DOCUMENTS


class TestRetrieverTool(ToolsIntegrationTests):
    @property
    def tool_constructor(self) -> BaseTool:
        retriever = NodeGraphRetriever.from_documents(DOCUMENTS, k=2)
        return retriever_tool(retriever, "search_tea", "Search texts on tea.")

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        return {"query": "How many leaves has tea number 3?"}
