"""Do the cohorts differ at all? Classifier and kernel two-sample tests."""

from __future__ import annotations

import engine
import numpy as np
from measure import Contender, Data, measure

ALPHA = 0.05
FOLDS = 5
HIDDEN = 128, 64
MMD_ROWS = 5_000  # a side: 10,000 x 10,000 kernel values, of which the library holds several copies
LONGER = 20  # epochs

COLUMNS = {"p": "p", "advantage": "advantage", "new": "on new drives", "best": "best possible", "found": "shift found"}
NULLS = {"found": "false alarms"}
PAIRED = {"new": "new drives, less ours"}


def quality(data: Data, result: dict) -> dict:
    """`new` is what a model of this test reaches on drives that nobody has seen: no split flatters it."""
    return {name: {**row, "new": row["new"]() if row["new"] and not data.tiny else None,
                   "best": float(data.gamma_star)} for name, row in result.items()}


def _outcome(p: float, advantage: float | None, new=None) -> dict:
    """`new()` is the advantage on new drives, once the clock has stopped."""
    return {"": {"p": float(p), "advantage": advantage, "new": new, "found": bool(p < ALPHA)}}


def _advantage(probability, y) -> float:
    """Balanced held-out accuracy above one half."""
    right = (np.asarray(probability) >= 0.5) == y
    return float((right[y == 0].mean() + right[y == 1].mean()) / 2 - 0.5)


def verdict_alone(data: Data) -> dict:
    return _ours(data, engine.verdict_alone(data))


def verdict_by_network(data: Data) -> dict:
    return _ours(data, engine.verdict_alone(data, classifier="mlp"))


def verdict_by_cells(data: Data) -> dict:
    return _ours(data, engine.verdict_alone(data, classifier="cells"))


def complete_analysis(data: Data) -> dict:
    return _ours(data, engine.complete(data))


def _ours(data: Data, analysis) -> dict:
    test = analysis.global_test
    new = lambda: _advantage(engine.score_new(data, analysis) >= 0, data.y_new)  # noqa: E731
    by_p = _outcome(test.p_value, test.acc - 0.5, new)[""]
    return {"by verdict": {**by_p, "found": analysis.verdict.name != "no_shift"}, "by p-value": {**by_p, "new": None}}


def classifier_drift(data: Data, **settings) -> dict:
    import torch
    from alibi_detect.cd import ClassifierDrift

    torch.manual_seed(0)
    widths = (data.X.shape[1], *HIDDEN)
    layers = [layer for a, b in zip(widths, HIDDEN, strict=False) for layer in (torch.nn.Linear(a, b), torch.nn.ReLU())]
    model = torch.nn.Sequential(*layers, torch.nn.Linear(HIDDEN[-1], 2))
    test = ClassifierDrift(data.P, model, backend="pytorch", n_folds=FOLDS, preds_type="logits", **settings)
    found = test.predict(data.Q, return_probs=True)["data"]
    y = np.repeat([0, 1], [len(found["probs_ref"]), len(found["probs_test"])])
    h = np.concatenate([found["probs_ref"], found["probs_test"]])

    def new() -> float:  # the model of the last fold
        with torch.no_grad():
            return _advantage(test._detector.model(torch.as_tensor(data.X_new)).argmax(dim=1).numpy(), data.y_new)

    return _outcome(found["p_val"], _advantage(h, y), new)


def classifier_drift_longer(data: Data) -> dict:
    return classifier_drift(data, epochs=1 if data.tiny else LONGER)


def mmd_drift(data: Data) -> dict:
    from alibi_detect.cd import MMDDrift

    rng = np.random.default_rng(0)
    P, Q = (side[rng.permutation(len(side))[:MMD_ROWS]] for side in (data.P, data.Q))
    return _outcome(MMDDrift(P, backend="pytorch").predict(Q)["data"]["p_val"], None)


def sklearn_c2st(data: Data) -> dict:
    """The textbook: random folds, binomial test of the accuracy."""
    from sklearn.model_selection import StratifiedKFold

    return _sklearn(data, StratifiedKFold(FOLDS, shuffle=True, random_state=0))


def sklearn_c2st_by_drive(data: Data) -> dict:
    from sklearn.model_selection import StratifiedGroupKFold

    return _sklearn(data, StratifiedGroupKFold(FOLDS, shuffle=True, random_state=0))


def _sklearn(data: Data, folds) -> dict:
    from scipy.stats import binomtest
    from sklearn.model_selection import cross_val_predict
    from sklearn.neural_network import MLPClassifier

    model = MLPClassifier(HIDDEN, early_stopping=True, random_state=0)
    h = cross_val_predict(model, data.X, data.y, groups=data.drive, cv=folds, method="predict_proba")[:, 1]
    right = (h >= 0.5) == data.y

    def new() -> float:
        train = next(folds.split(data.X, data.y, groups=data.drive))[0]
        return _advantage(model.fit(data.X[train], data.y[train]).predict(data.X_new), data.y_new)

    return _outcome(binomtest(int(right.sum()), len(right), alternative="greater").pvalue, _advantage(h, data.y), new)


CONTENDERS = (
    Contender("AVShift global test", verdict_alone, note=f"3 repeats of {FOLDS} folds by drive, two A/A controls"),
    Contender("AVShift, its network alone", verdict_by_network, note="--classifier mlp"),
    Contender("AVShift, its tree of cells alone", verdict_by_cells, note="--classifier cells"),
    Contender("AVShift complete analysis", complete_analysis, on_nulls=False, note="regions, calibration, trust too"),
    Contender("alibi-detect ClassifierDrift", classifier_drift, "alibi", f"{FOLDS} folds, its own 3 epochs"),
    Contender("alibi-detect, more epochs", classifier_drift_longer, "alibi", f"{FOLDS} folds, {LONGER} epochs"),
    Contender("alibi-detect MMDDrift", mmd_drift, "alibi", f"at most {MMD_ROWS:,} a side: memory is quadratic"),
    Contender("scikit-learn C2ST", sklearn_c2st, "plain", f"{FOLDS} random folds, MLP, binomial test"),
    Contender("scikit-learn C2ST by drive", sklearn_c2st_by_drive, "plain", f"{FOLDS} folds by drive, binomial test"),
)

if __name__ == "__main__":
    measure(CONTENDERS, quality)
