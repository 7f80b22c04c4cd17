"""This project's side of every topic: the one file here that imports avshift_core, and only when it is called."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from measure import Data

METRIC = "ell"


def nearest(data: Data, k: int) -> np.ndarray:
    """(n, k) nearest other rows of each row."""
    from avshift_core.latent.neighbors import knn_graph

    return knn_graph(data.X, k).index


def cohorts(data: Data) -> list:
    from avshift_core.latent.cohort import make_cohort

    return [
        make_cohort(name, data.z[rows], drive_id=data.drive[rows], ell={METRIC: data.ell[rows]})
        for name, rows in (("P", data.y == 0), ("Q", data.y == 1))
    ]


def verdict_alone(data: Data, **settings) -> SimpleNamespace:
    """An analysis up to its verdict."""
    from avshift_core.config import AnalysisConfig
    from avshift_core.latent.space import make_space
    from avshift_core.progress import finish
    from avshift_core.shift.c2st import global_test_steps
    from avshift_core.shift.drives import pool
    from avshift_core.shift.gate import verdict

    config, (P, Q) = AnalysisConfig(**settings), cohorts(data)
    sample, space = pool(P, Q), make_space(P, Q, config.n_cells, config.seed)
    test = finish(global_test_steps(space, sample, config))
    return SimpleNamespace(
        P=P, Q=Q, config=config, sample=sample, space=space, global_test=test, verdict=verdict(test, config)
    )


def score_new(data: Data, stage) -> np.ndarray:
    """Log-odds of Q for the rows of other drives, by one model of four fifths of the drives, as a fold of ours has."""
    from dataclasses import replace

    from avshift_core.shift.classifiers import class_weights, held_out_logits
    from avshift_core.shift.drives import Pool, folds_by_drive

    sample, space = stage.sample, stage.space
    scale, mean = data.z.std(axis=0), data.z.mean(axis=0)
    X = space.standardise(data.X_new.astype(np.float64) * scale + mean)
    both = replace(space, X=np.concatenate([space.X, X]), cell=np.concatenate([space.cell, space.cells.assign(X)]))
    fold = folds_by_drive(sample, stage.config.folds, np.random.default_rng(0))
    train, held_out = np.flatnonzero(fold != 0), np.flatnonzero(fold == 0)
    rows = sample.n + np.arange(len(X))
    pooled = Pool(np.concatenate([sample.y, data.y_new]), np.concatenate([sample.drive, np.zeros(len(X), int)]),
                  sample.drive_y, sample.fold_key)
    weight = np.concatenate([class_weights(sample.y), np.zeros(len(X))])
    return held_out_logits(stage.config.classifier, both, pooled, weight, [(train, held_out), (train, rows)], seed=0)[1]


def complete(data: Data):
    """Every stage of an analysis, as the dashboard runs it."""
    from avshift_core.shift.analyze import analyze

    return analyze(*cohorts(data))


def regions(data: Data) -> np.ndarray:
    """(2n,) whether a row lies in a region; looked for whatever the verdict, as who has no verdict does."""
    from avshift_core.shift.local import localize

    stage = verdict_alone(data)
    found = localize(stage.space, stage.sample, _h(stage), stage.config)
    return np.concatenate([found.region_P, found.region_Q]) >= 0


def paper_regions(data: Data) -> np.ndarray:
    """The same with the paper's procedure for regions."""
    from avshift_core.shift.local_paper import localize_paper

    stage = verdict_alone(data)
    found = localize_paper(stage.space, stage.sample, _h(stage), stage.config)
    return np.concatenate([found.region_P, found.region_Q]) >= 0


def _h(stage) -> np.ndarray:
    return np.concatenate([stage.global_test.h_P, stage.global_test.h_Q])


def rates(data: Data) -> dict[str, float]:
    """Rate of Q by the estimators that need no regions."""
    from avshift_core.shift.calibrate import make_calibrator

    stage = verdict_alone(data)
    calibrator = make_calibrator(
        stage.P, stage.Q, stage.space, stage.sample, stage.global_test, None, None, [METRIC], stage.config
    )
    estimates = calibrator.calibrate(METRIC, stage.config.B).estimates()
    return {name: estimates[name].mu for name in ("strata", "aipw", "ipw")}


def layout(data: Data) -> np.ndarray:
    """(2n, 2) map of a corpus that holds both cohorts."""
    from avshift_core.latent.atlas import draw_steps
    from avshift_core.progress import finish

    ids = np.char.zfill(np.arange(len(data.z)).astype(str), 6)
    return finish(draw_steps(ids, data.z, data.y, len(ids))).xy
