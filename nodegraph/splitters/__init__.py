"""Transforms that split texts into sentences, chunks or sections, with their positions."""
