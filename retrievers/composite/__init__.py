"""Retrievers that wrap other retrievers: fusion, windows, merging, references and links."""
