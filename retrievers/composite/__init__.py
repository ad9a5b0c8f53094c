"""Retrievers around retrievers: fusion, windows, merging, completion, references, links."""
