"""Retrievers that wrap retrievers: fusion, windows, merging, completion, references, links."""
