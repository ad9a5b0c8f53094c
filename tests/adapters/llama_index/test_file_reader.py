"""Files of all formats as documents of LlamaIndex."""

from pathlib import Path

import pytest
from llama_index.core import SimpleDirectoryReader

from nodekin.adapters.llama_index import FileReader
from nodekin.nodegraph import ReadError

SAMPLES = Path(__file__).parents[3] / "examples" / "files"


def test_a_folder_of_files() -> None:
    pdf, word = FileReader().load_data(SAMPLES, extra_info={"owner": "us"})
    assert pdf.text.startswith("# 1 The tea handbook")
    assert "| 龙井 | 四元二角 | 十一元 |" in word.text
    assert (pdf.id_, pdf.metadata["owner"]) == ("files/handbook.pdf", "us")
    assert "file_size" in pdf.excluded_llm_metadata_keys
    with pytest.raises(ReadError, match="no file or folder"):
        FileReader().load_data(SAMPLES / "nowhere")


def test_in_llama_indexs_reader_of_folders() -> None:
    readers = {".pdf": FileReader("page"), ".docx": FileReader()}
    documents = SimpleDirectoryReader(str(SAMPLES), file_extractor=readers).load_data()
    pages = [d for d in documents if d.metadata["file_name"] == "handbook.pdf"]
    assert [d.metadata["page_label"] for d in pages] == ["1", "2"]
    assert pages[1].metadata["place"].startswith("handbook.pdf, page 2")
    assert len(documents) == 3
