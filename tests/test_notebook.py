"""The notebook runs from its first cell to its last, and shows a plan."""

import os
import shutil
import sys
from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).parent.parent / "docs" / "notebooks" / "gripper.ipynb"


def printed(cell):
    return "".join(output.get("text", "") for output in cell.get("outputs", ()))


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # of Jupyter's event loop
def test_the_notebook_trains_and_plays_a_plan(tmp_path, monkeypatch):
    nbformat = pytest.importorskip("nbformat", reason="Jupyter is not installed")
    from nbclient import NotebookClient

    shutil.copy(NOTEBOOK, tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    folder = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=540, kernel_name="python3", resources=folder).execute()
    text = "\n".join(map(printed, notebook.cells))
    assert "the best so far" in text
    assert "89 actions" in text  # 30 balls: 15 ways there, 14 back, 60 picks and drops
    assert "10 of 10 solved" in text
    assert "<html" in (tmp_path / "gripper.html").read_text(encoding="utf-8")


def test_it_is_committed_without_outputs():
    nbformat = pytest.importorskip("nbformat", reason="Jupyter is not installed")
    cells = nbformat.read(NOTEBOOK, as_version=4).cells
    assert not any(cell.get("outputs") for cell in cells)
