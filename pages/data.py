"""Data & models: corpora, imports, the ledger, the encoder and its quality, ablation, jobs and kept results."""

import streamlit as st

from pages.common import state
from pages.common.data_corpora import corpora_part
from pages.common.data_import import import_part
from pages.common.data_jobs import jobs_part
from pages.common.data_ledger import ledger_part
from pages.common.data_models import ablation_part, encoder_part, quality_part
from pages.common.frame import errors_as_sentences, frame

PARTS = {
    "corpora": ("Corpora", corpora_part), "import": ("Add data", import_part), "ledger": ("Ledger", ledger_part),
    "encoder": ("Encoder", encoder_part), "quality": ("Quality", quality_part),
    "ablation": ("Ablation", ablation_part), "jobs": ("Jobs", jobs_part),
}


def data_page() -> None:
    st.title("Data & models", anchor=False)
    part = state.segmented("data", "What to look at", tuple(PARTS), "corpora", format_func=lambda p: PARTS[p][0],
                           label_visibility="collapsed")
    with errors_as_sentences():
        PARTS[part][1]()


frame("Data & models", needs_corpus=False)
data_page()
