"""Cohorts of which some drives were drawn: what the others, known by their sums, say of a calibrated rate."""

from __future__ import annotations

from avshift_core.shift.estimate import Influence

ENOUGH = 20  # a slope of fewer drives is fitted to their noise, and the interval around it too short (test_undrawn.py)


def followed(value: Influence, drawn: Influence, whole: Influence, told: int, M: float) -> Influence:
    """A calibrated rate of the drawn drives, moved as all drives move the observed one.

        mu = value + b (whole - drawn),     b = sum_d u_d v_d / sum_d v_d^2

    with u and v what a drive does to `value` and to `drawn`: the regression estimator for two-phase samples (Sarndal,
    Swensson and Wretman 1992). Its residuals u - b v count more the more they have made the slope (leverage), as far as
    drives were not drawn. Where too few drives tell a slope the others are left out; where the rate would leave [0, M],
    it moves in proportion.

    Args:
        drawn, whole: observed rate of the drawn drives, and of all.
        told: drawn drives with the event or without it, whichever are fewer.
    """
    if told < ENOUGH or drawn.variance == 0:
        return value
    squares, more = drawn.source**2, whole.mu - drawn.mu
    b, leverage = float(value.source @ drawn.source / squares.sum()), squares / squares.sum()
    if value.mu + b * more < 0:
        b, leverage = value.mu / drawn.mu, 0.0
    elif value.mu + b * more > M:
        b, leverage = (M - value.mu) / (M - drawn.mu), 0.0
    own, unseen = value - drawn.times(b), 1 - len(drawn.source) / len(whole.source)
    residual = own.source * (1 + unseen * leverage / (1 - leverage))
    return Influence(own.mu, residual, own.target) + whole.times(b)
