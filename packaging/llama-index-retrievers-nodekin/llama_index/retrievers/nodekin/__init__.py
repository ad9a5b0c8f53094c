"""All of nodekin's LlamaIndex adapters, under the package name that the ecosystem expects."""

from nodekin.adapters.llama_index import *
from nodekin.adapters.llama_index import __all__ as __all__
