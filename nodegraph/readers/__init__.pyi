from .file_records import documents_of as documents_of
from .folder_scan import FolderScan as FolderScan
from .folder_scan import scan as scan
from .reading import read_files as read_files
