"""Turn files into documents: by their content, in processes of their own, for any reader."""

from typing import TYPE_CHECKING

from ..lazy_names import lazy_names

if TYPE_CHECKING:
    from .file_records import documents_of
    from .folder_scan import FolderScan, scan
    from .formats import SUFFIXES, format_of, has_lines
    from .read_options import ReadOptions, check_encoding
    from .read_report import ReadReport
    from .reader_registry import Reader, can_read, register_reader, supported_suffixes
    from .reading import read_file, read_files
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            ".file_records": "documents_of",
            ".folder_scan": "FolderScan scan",
            ".formats": "SUFFIXES format_of has_lines",
            ".read_options": "ReadOptions check_encoding",
            ".read_report": "ReadReport",
            ".reader_registry": "Reader can_read register_reader supported_suffixes",
            ".reading": "read_file read_files",
        },
    )

__all__ = [
    "SUFFIXES",
    "FolderScan",
    "ReadOptions",
    "ReadReport",
    "Reader",
    "can_read",
    "check_encoding",
    "documents_of",
    "format_of",
    "has_lines",
    "read_file",
    "read_files",
    "register_reader",
    "scan",
    "supported_suffixes",
]
