"""The event rate of Q's traffic from P's outcomes alone."""

from __future__ import annotations

import engine
import numpy as np
from measure import Contender, Data, measure

COLUMNS = {"error": "rms error of Q's rate"}
NULLS: dict[str, str] = {}
CLIP = 10.0
FOLDS = 5


def quality(data: Data, rates: dict[str, float]) -> dict:
    return {name: {"error": rate - float(data.mu_Q)} for name, rate in rates.items()}


def _weighted(data: Data, w) -> dict[str, float]:
    w = np.clip(w, 0, CLIP)
    return {"": float(w @ data.ell[data.y == 0] / w.sum())}


def naive(data: Data) -> dict[str, float]:
    return {"": float(data.ell[data.y == 0].mean())}


def exact(data: Data) -> dict[str, float]:
    return _weighted(data, data.w[data.y == 0])


def ulsif(data: Data) -> dict[str, float]:
    from densratio import densratio

    return _weighted(data, densratio(data.Q, data.P, verbose=False).compute_density_ratio(data.P))


def sklearn_mlp(data: Data) -> dict[str, float]:
    from sklearn.neural_network import MLPClassifier

    return _by_classifier(data, MLPClassifier((128, 64), early_stopping=True, random_state=0))


def sklearn_mlp_by_drive(data: Data) -> dict[str, float]:
    from sklearn.model_selection import StratifiedGroupKFold
    from sklearn.neural_network import MLPClassifier

    return _by_classifier(data, MLPClassifier((128, 64), early_stopping=True, random_state=0), StratifiedGroupKFold)


def sklearn_logistic(data: Data) -> dict[str, float]:
    from sklearn.linear_model import LogisticRegression

    return _by_classifier(data, LogisticRegression(max_iter=1000))


def _by_classifier(data: Data, model, splitter=None) -> dict[str, float]:
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    folds = (splitter or StratifiedKFold)(FOLDS, shuffle=True, random_state=0)
    h = cross_val_predict(model, data.X, data.y, groups=data.drive, cv=folds, method="predict_proba")[data.y == 0, 1]
    return _weighted(data, h / np.maximum(1 - h, 1e-9))


CONTENDERS = (
    Contender("AVShift", engine.rates, note="global test, weights and outcome models"),
    Contender("densratio uLSIF", ulsif, "plain", "its defaults, 100 kernels"),
    Contender("scikit-learn MLP weights", sklearn_mlp, "plain", f"{FOLDS} random folds, clip {CLIP:g}"),
    Contender("scikit-learn MLP weights by drive", sklearn_mlp_by_drive, "plain",
              f"{FOLDS} folds by drive, clip {CLIP:g}"),
    Contender("scikit-learn logistic weights", sklearn_logistic, "plain", f"{FOLDS} random folds, clip {CLIP:g}"),
    Contender("no weights", naive, "plain", "rate of P"),
    Contender("exact weights", exact, "plain", "the true density ratio: not to be had outside a benchmark"),
)

if __name__ == "__main__":
    measure(CONTENDERS, quality)
