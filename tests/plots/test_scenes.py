import numpy as np

from avshift_core.plots.scenes import EGO, REACH_M, scene_rows
from avshift_core.plots.theme import Q
from tests.scenario.scenes import along, scene, times, track

LANE = (np.array([[-500.0, 0], [500, 0]]), "lane_center", 13.9)


def pictured(turn=0.0):
    """An ego at 10 m/s and a lorry 12 m to its left, both heading to `turn`, seen after 6 of 12 s."""
    t = times(12.0)
    x = along(t, 10.0)
    c, s = np.cos(turn), np.sin(turn)
    ego = track(t, c * x, s * x, heading=turn)
    lorry = track(t, c * x - s * 12, s * x + c * 12, heading=turn, kind="truck", size=(12.0, 2.5, 3.5))
    return scene(t, ego, [lorry], [LANE])


def boxes(figure, color):
    return [trace for trace in figure.data if trace.fill == "toself" and trace.fillcolor == color]


def test_the_ego_is_in_the_middle_to_scale_and_drives_to_the_right():
    for turn in (0.0, 2.0):
        figure = scene_rows([[pictured(turn)]], [["a title"]])
        (ego,), (lorry,) = boxes(figure, EGO), boxes(figure, Q)
        x, y = np.array(ego.x[:-1]), np.array(ego.y[:-1])
        assert np.allclose([x.min(), x.max()], [-2.4, 2.4], atol=0.02)  # a car of 4.8 m
        assert np.allclose([y.min(), y.max()], [-0.95, 0.95], atol=0.02)
        assert np.allclose([np.mean(lorry.x[:4]), np.mean(lorry.y[:4])], [0, 12], atol=0.02)
        assert np.ptp(np.array(lorry.x[:-1])) > 11.9
        assert "a title" in [a.text for a in figure.layout.annotations]


def test_a_picture_each_with_its_own_axes_and_nothing_far_outside():
    figure = scene_rows([[pictured(), pictured()], [pictured(), pictured()]], [["a", "b"], ["c", "d"]])
    assert {trace.xaxis for trace in figure.data if trace.fill} == {"x", "x2", "x3", "x4"}
    values = [v for trace in figure.data for v in trace.x if v is not None and np.isfinite(v)]
    assert max(map(abs, values)) <= 1.5 * REACH_M
    domains = [figure.layout[f"xaxis{n}"].domain for n in ("", "2")]
    assert domains[0][1] <= domains[1][0]


def test_an_agent_that_is_not_seen_at_half_time_stands_where_it_was_last():
    t = times(12.0)
    gone = track(t, along(t, 10.0), 3.5, kind="truck", valid=t < 3)
    figure = scene_rows([[scene(t, track(t, along(t, 10.0)), [gone])]], [[""]])
    (box,) = boxes(figure, Q)
    assert np.isclose(np.mean(box.x[:4]), 29 - 60, atol=0.6)  # at 2.9 s, while the ego is at 60 m
