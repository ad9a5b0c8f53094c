"""Turn files into documents: by their content, in processes of their own, for any reader."""

from .file_records import documents_of
from .folder_scan import FolderScan, scan
from .formats import SUFFIXES, format_of, has_lines
from .read_options import ReadOptions, check_encoding
from .read_report import ReadReport
from .reader_registry import Reader, can_read, register_reader, supported_suffixes
from .reading import read_file, read_files

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
