"""The LlamaIndex integration of nodekin, under the package name that LlamaIndex users expect."""

from nodekin.adapters.llama_index import *
from nodekin.adapters.llama_index import __all__ as __all__
