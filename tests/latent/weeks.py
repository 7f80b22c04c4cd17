"""A small corpus of ready-made latents: some weeks of one area, the later ones moved."""

import json

import numpy as np
import pandas as pd

from avshift_core.encoder import weights
from avshift_core.scenario.schema import ID_FIELDS, UNKNOWN, iso_week
from avshift_core.scenario.store.corpus import create_or_open, open_corpus

DAYS = ("2026-03-02", "2026-03-09", "2026-03-16")  # Mondays of the weeks 10, 11 and 12
OURS, OTHER = "00112233445566aa", "ffeeddccbbaa9988"  # ids of two models


def add_week(url, day, *, n=300, drives=15, model="mine", move=0.0, known_drives=None, version="v1", seed=0, **metrics):
    """n scenarios of one day in `harbor`; the first `known_drives` of them have a drive id (all when None)."""
    rng = np.random.default_rng([seed, int(day[-2:])])
    ids = pd.DataFrame({name: np.full(n, UNKNOWN, dtype=object) for name in ID_FIELDS})
    ids["scenario_id"] = [f"{day}-{seed}-{i:04d}" for i in range(n)]
    ids["drive_id"] = [f"{day}-d{i % drives}" for i in range(n)]
    ids.loc[ids.index >= (n if known_drives is None else known_drives), "drive_id"] = UNKNOWN
    ids["day"], ids["period"], ids["area"], ids["av_version"] = day, iso_week(day), "harbor", version
    ids["hour"] = np.arange(n) % 24
    z = rng.normal(size=(n, 3)).astype(np.float32)
    z[:, 0] += move
    values = {"discomfort": (rng.random(n) < 0.3) * 1.0, "ttc_min_s": rng.uniform(0, 10, n), **metrics}
    attributes = pd.DataFrame({"ego_speed_mps": rng.uniform(0, 20, n)})
    with create_or_open(url) as writer:
        writer.add_table(ids, attributes, values, z, model=model, source=f"{day}-{seed}")


def weeks(url, n_weeks=2, **options):
    """The first weeks, each moved by 0.3 against the one before."""
    for k, day in enumerate(DAYS[:n_weeks]):
        add_week(url, day, move=0.3 * k, **options)
    return open_corpus(url)


def add_latents(url, *names):
    """Further latents for all parts, other ones for each name."""
    parts = open_corpus(url).parts
    with create_or_open(url) as writer:
        for seed, name in enumerate(names):
            for part in parts:
                writer.write_latents(name, part.id, np.random.default_rng(seed).normal(size=(part.n, 4)))
    return open_corpus(url)


def write_card(folder, model, states=()):
    """The card of a model, without its weights."""
    folder.mkdir(exist_ok=True)
    card = {"kind": weights.KIND, "model": model, "data": {"states": list(states)}}
    (folder / weights.CARD).write_text(json.dumps(card))
    return folder


def ship(monkeypatch, folder):
    """Let this folder hold the shipped weights."""
    monkeypatch.setattr(weights, "SHIPPED", folder)
