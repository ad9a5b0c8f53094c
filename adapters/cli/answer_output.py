"""Write an answer while it comes: wrapped for a terminal, with a line that says what is awaited."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TextIO

import click

from .exit_status import printable
from .snippet import columns, hangs_over, terminal_columns, unbroken


class AnswerOutput:
    """Write pieces of text to standard output as they come.

    On a terminal lines are broken at spaces, and anywhere in Chinese, and until the first piece
    comes the last line says what is awaited. Elsewhere the pieces are written as they are.

    Args:
        waiting_for: What is awaited.

    Example:
        >>> with AnswerOutput("the model") as output:
        ...     output.write("Green tea ")
        ...     output.write("is steamed.")
        Green tea is steamed.
    """

    def __init__(self, waiting_for: str) -> None:
        self._wraps = self.is_terminal(sys.stdout)
        self._notice = f"waiting for {waiting_for} ..." if self.is_terminal(sys.stderr) else ""
        self._width = terminal_columns()
        self._used = 0
        self._begun = ""  # a word of which more may come
        self.is_empty = True

    def is_terminal(self, stream: TextIO) -> bool:
        """Return whether a person reads a stream as it comes."""
        return stream.isatty()

    def __enter__(self) -> AnswerOutput:
        if self._notice:
            click.echo(click.style(self._notice, dim=True), nl=False, err=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._clear_notice()
        self._write(self._begun)
        if not self.is_empty:
            click.echo()

    def write(self, piece: str) -> None:
        """Write a piece; the word it ends with may wait for the next one."""
        self._clear_notice()
        self.is_empty = self.is_empty and not piece
        text = printable(piece)
        if not self._wraps:
            click.echo(text, nl=False)
            return
        *whole, self._begun = unbroken(self._begun + text) or [""]
        for token in whole:
            self._write(token)

    def _write(self, token: str) -> None:
        size = columns(token)
        fits = self._used + size <= self._width or not self._used
        hangs = hangs_over(token) and self._used <= self._width
        if token == "\n":
            self._used, size = 0, 0
        elif not fits and not hangs:
            click.echo()
            token = token.lstrip(" ")
            self._used, size = 0, columns(token)
        click.echo(token, nl=False)
        self._used += size

    def _clear_notice(self) -> None:
        if self._notice:
            click.echo(f"\r{' ' * columns(self._notice)}\r", nl=False, err=True)
            self._notice = ""
