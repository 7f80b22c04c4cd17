"""Calendar and counts of a corpus."""

import pandas as pd

from avshift_core.plots.overview import calendar_figure, counts_figure

DAYS = pd.DataFrame({
    "day": ["2026-03-02", "2026-03-02", "2026-03-03", "unknown"], "area": ["harbor", "old_town", "harbor", "harbor"],
    "period": ["2026-W10"] * 4, "av_version": ["v1", "v2", "v1", "v1"], "n": [10, 20, 300, 5],
})


def test_every_known_day_has_its_count():
    (heat,) = calendar_figure(DAYS).data
    assert list(heat.x) == ["2026-03-02", "2026-03-03"] and list(heat.y) == ["Harbor", "Old town"]
    assert heat.z.tolist() == [[10, 300], [20, 0]] and (heat.zmin, heat.zmax) == (0, 300)
    assert heat.customdata[0][0] == "2026-W10, AV v1, v2"


def test_counts_by_area_add_up_in_one_bar():
    bars = counts_figure(DAYS, "av_version", "AV version").data
    shown = {(bar.name, level): n for bar in bars for level, n in zip(bar.y, bar.x, strict=True)}
    assert shown == {("Harbor", "v1"): 315, ("Harbor", "v2"): 0, ("Old town", "v1"): 0, ("Old town", "v2"): 20}
