"""What people add to a corpus, beside it: the ledger of every look at it, notes on regions, saved views.

    notebook = open_notebook("fleet")                  # fleet-notes.sqlite, made when something is first written
    notebook.looks(), notebook.region_notes(run), notebook.saved()
"""

from avshift_core.notebook.book import Notebook, open_notebook
from avshift_core.notebook.entries import (
    STATUSES,
    Count,
    Look,
    NotebookError,
    RegionNote,
    SavedView,
    Written,
    chance_of_one,
)

__all__ = ["STATUSES", "Count", "Look", "Notebook", "NotebookError", "RegionNote", "SavedView", "Written",
           "chance_of_one", "open_notebook"]
