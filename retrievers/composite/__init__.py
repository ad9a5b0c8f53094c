"""Retrievers around retrievers that fuse, merge, widen, complete and follow links."""
