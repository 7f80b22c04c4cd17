"""Every rule on a hand-made scene that fulfils it and on one that just does not."""

import numpy as np
import pytest

from avshift_core.scenario.measure.categories import PRIORITY, detect
from avshift_core.scenario.schema import CATEGORIES
from tests.scenario.scenes import CAR, PERSON, along, batch_of, bent, lane_change, moved, scene, times, track

T = times(12)
LANE = 3.5


def straight(speed=12.0, **more):
    return track(T, along(T, speed), **more)


def lanes(*offsets, x=(-100, 400), limit=13.9):
    """Lane centre lines along x; an offset given as (offset, -1) runs the other way."""
    out = []
    for offset in offsets:
        offset, way = offset if isinstance(offset, tuple) else (offset, 1)
        line = np.stack([np.linspace(*x, 51), np.full(51, offset)], axis=1)
        out.append((line[::way], "lane_center", limit))
    return out


def name(*scenarios):
    return detect(batch_of(*scenarios)).category_name.tolist()


def fired(scenario, category):
    return bool(detect(batch_of(scenario)).fired[0, CATEGORIES.index(category)])


def cut_in(ahead=25.0, speed=12.0, width=LANE, road=(), start=4.0):
    agent = track(T, ahead + along(T, speed), LANE - lane_change(T, start, 4.0, width))
    return scene(T, straight(), [agent], road)


WAYS = {"as it is": lambda s: s, "to the left": lambda s: bent(s, 250.0), "to the right": lambda s: bent(s, -250.0),
        "elsewhere": lambda s: moved(s, 400.0, -90.0, 2.2)}


@pytest.mark.parametrize("way", WAYS)
def test_cut_in(way):
    found = detect(batch_of(WAYS[way](cut_in())))
    assert found.category_name[0] == "agent_cutting_in"
    assert found.actor[0] == found.cutin.agent[0] == 0
    # bumper to bumper 25 - 4.8, the same all the time; the move starts at 4 s and 1.6 m of 3.5 are done at 5.9 s
    assert found.cutin.onset_gap_m[0] == pytest.approx(25 - CAR[0], abs=0.5)
    assert found.cutin.entry_gap_m[0] == pytest.approx(25 - CAR[0], abs=0.5)
    assert T[found.cutin.onset_step[0]] == pytest.approx(4.5, abs=0.5)
    assert T[found.cutin.entry_step[0]] == pytest.approx(6.0, abs=0.4)
    assert found.cutin.speed_mps[0] == pytest.approx(12.0, abs=0.3)


@pytest.mark.parametrize(
    ("scenario", "why"),
    [
        (cut_in(ahead=-25.0), "behind the ego"),
        (cut_in(ahead=90.0), "too far ahead"),
        (cut_in(width=1.2), "stays beside the path"),
        (cut_in(width=2 * LANE, start=2.0), "passes through to the lane beyond"),
        (scene(T, straight(), [track(T, 25 + along(T, 12), 0.0)]), "has always been there"),
        (scene(T, straight(), [track(T, 40.0, 10 - along(T, 1.4), kind="pedestrian", size=PERSON)]), "a pedestrian"),
        (scene(T, straight(), [track(T, 60.0, 60 - along(T, 12.0))]), "crosses"),
        (scene(T, track(T, along(T, 12), lane_change(T, 3, 4, LANE)), [track(T, 30 + along(T, 12), LANE)]),
         "it is the ego that changes"),
    ],
)
def test_no_cut_in(scenario, why):
    found = detect(batch_of(scenario))
    assert found.cutin.agent[0] < 0, why
    assert found.cutin.onset_step[0] == -1 and np.isnan(found.cutin.onset_gap_m[0])


def test_the_nearest_of_two_cut_ins_counts():
    agents = [track(T, ahead + along(T, 12), LANE - lane_change(T, 4, 4, LANE)) for ahead in (45.0, 20.0)]
    assert detect(batch_of(scene(T, straight(), agents))).cutin.agent[0] == 1


@pytest.mark.parametrize("way", WAYS)
def test_agent_changes_lane_but_not_into_the_path(way):
    away = scene(T, straight(), [track(T, 20 + along(T, 12), LANE + lane_change(T, 3, 4, LANE))])
    out = scene(T, straight(), [track(T, 20 + along(T, 14), lane_change(T, 3, 4, LANE))])
    assert name(WAYS[way](away)) == ["agent_lane_changing"]
    assert fired(WAYS[way](out), "agent_lane_changing")


def test_agent_that_wobbles_or_turns_off_does_not_change_lane():
    wobble = track(T, 20 + along(T, 12), LANE + 0.6 * np.sin(T))
    phi = np.clip((T - 4) / 3, 0, 1) * np.pi / 2
    turns = track(T, 20 + np.cumsum(6 * np.cos(phi)) * 0.1, -LANE - np.cumsum(6 * np.sin(phi)) * 0.1)
    assert not fired(scene(T, straight(), [wobble]), "agent_lane_changing")
    assert not fired(scene(T, straight(6.0), [turns]), "agent_lane_changing")


@pytest.mark.parametrize("road", [(), lanes(0, LANE)])
@pytest.mark.parametrize("way", ["as it is", "elsewhere"])
def test_ego_changes_lane(way, road):
    changes = scene(T, track(T, along(T, 12), lane_change(T, 4, 4, LANE)), road=road)
    back = scene(T, track(T, along(T, 12), lane_change(T, 2, 4, LANE) - lane_change(T, 7, 4, LANE)), road=road)
    drifts = scene(T, track(T, along(T, 12), 0.5 * np.sin(0.5 * T)), road=road)
    assert [fired(WAYS[way](s), "ego_lane_changing") for s in (changes, back, drifts)] == [True, False, False]
    assert name(WAYS[way](changes)) == ["ego_lane_changing"]


@pytest.mark.parametrize("radius", [120.0, -300.0])
def test_ego_changes_lane_in_a_bend_where_lanes_are_mapped(radius):
    road = lanes(0, LANE)
    changes = scene(T, track(T, along(T, 12), lane_change(T, 4, 4, LANE)), road=road)
    keeps = scene(T, straight(), road=road)
    assert fired(bent(changes, radius), "ego_lane_changing")
    assert not fired(bent(keeps, radius), "ego_lane_changing")


def test_a_bend_is_no_lane_change():
    """Straight for 70 m, then a bend to the left: no map, so nothing can be said, and nothing is."""
    phi = np.clip((along(T, 12) - 70) / 100, 0, 1)
    x, y = np.cumsum(1.2 * np.cos(phi)), np.cumsum(1.2 * np.sin(phi))
    assert name(scene(T, track(T, x, y))) == ["general"]
    assert name(bent(scene(T, straight()), 60.0)) == ["general"]


def test_pulling_out_and_over():
    gas = np.clip(T - 2, 0, None) * 1.5
    x = along(T, np.minimum(gas, 8))
    out = track(T, x, 2.2 * (1 - np.cos(np.pi * np.clip(x / 25, 0, 1))) / 2)
    brake = np.maximum(9 - 1.2 * np.clip(T - 2, 0, None), 0)
    x = along(T, brake)
    over = track(T, x, -2.2 * (1 - np.cos(np.pi * np.clip((x - 10) / 30, 0, 1))) / 2)
    queue_start, queue_stop = track(T, along(T, np.minimum(gas, 8))), track(T, along(T, brake))
    assert name(*(scene(T, ego) for ego in (out, over, queue_start, queue_stop))) == [
        "ego_pulling_out", "ego_pulling_over", "general", "general"]


def nudge(object_y, peak=1.2, kind="car", size=CAR):
    x = along(T, 8)
    ego = track(T, x, peak * np.exp(-(((x - 50) / 12) ** 2)))
    return scene(T, ego, [track(T, 50.0, object_y, kind=kind, size=size)])


def test_nudging_around_a_parked_car():
    assert name(nudge(-1.9)) == ["ego_nudging"]
    assert detect(batch_of(nudge(-1.9))).actor[0] == 0
    assert name(nudge(-1.0, kind="static", size=PERSON)) == ["ego_nudging"]
    assert not fired(nudge(-6.0), "ego_nudging")  # far from the lane
    assert not fired(nudge(2.6), "ego_nudging")  # on the side it swerves to
    assert not fired(nudge(-1.9, peak=0.2), "ego_nudging")  # keeps straight
    late = scene(T, track(T, along(T, 8), lane_change(T, 8, 3, 1.2)), [track(T, 95.0, -1.9)])
    assert name(late) == ["ego_nudging"]  # still beside it at the end, 96 m


def slowing(lowest):
    """From 10 m/s down to `lowest` within 4 s and up again."""
    return np.interp(T, [0, 2, 6, 8, 12], [10, 10, lowest, lowest, 10])


def test_yielding_to_a_crossing_car():
    crossing = track(T, 60.0, -40 + along(T, 6.0))
    yields = scene(T, track(T, along(T, slowing(0.0))), [crossing])
    drives_on = scene(T, straight(), [track(T, 90.0, -40 + along(T, 12.0))])
    farther = track(T, 85.0, -40 + along(T, 6.0))
    mildly = scene(T, track(T, along(T, np.interp(T, [0, 2, 5, 12], [10, 10, 8.5, 10]))), [farther])
    assert name(mildly) == ["ego_yielding"]
    slows_alone = scene(T, track(T, along(T, slowing(0.0))), [track(T, 60.0, 20 + along(T, 6.0))])
    assert name(yields) == ["ego_yielding"]
    assert not fired(drives_on, "ego_yielding")
    assert not fired(slows_alone, "ego_yielding")


def test_yielding_on_a_crosswalk_and_jaywalking_off_it():
    walker = track(T, 55.0, -6 + along(T, 1.3), kind="pedestrian", size=PERSON)
    ego = track(T, along(T, slowing(0.5)))
    crosswalk = [([(55, -5), (55, 5)], "crosswalk", np.nan)]
    assert name(scene(T, ego, [walker])) == ["agent_jaywalking"]
    assert name(scene(T, ego, [walker], crosswalk)) == ["ego_yielding"]
    pavement = track(T, 20 + along(T, 1.3), -4.0, kind="pedestrian", size=PERSON)
    behind = track(T, -20.0, -6 + along(T, 1.3), kind="pedestrian", size=PERSON)
    assert not fired(scene(T, ego, [pavement, behind]), "agent_jaywalking")


def test_parallel_driving():
    beside = scene(T, straight(), [track(T, 1 + along(T, 12.3), LANE)])
    overtakes = scene(T, straight(), [track(T, -25 + along(T, 18), LANE)])
    two_lanes = scene(T, straight(), [track(T, 1 + along(T, 12), 2 * LANE)])
    assert name(beside) == ["agent_parallel_driving"]
    assert not fired(overtakes, "agent_parallel_driving")
    assert not fired(two_lanes, "agent_parallel_driving")


def test_wrong_way():
    towards = lambda y: [track(T, 150 - along(T, 8), y)]  # noqa: E731
    swerves = track(T, 150 - along(T, 8), -lane_change(T, 4.5, 2, 2.5))
    assert name(scene(T, straight(), towards(0.3))) == ["agent_wrong_way_driving"]
    assert name(scene(T, straight(), [swerves])) == ["agent_wrong_way_driving"]
    two_way, one_way = lanes(0, (LANE, -1)), lanes(0, LANE)
    assert name(scene(T, straight(), towards(LANE))) == ["general"]  # unmapped: the other side of the road
    assert name(scene(T, straight(), towards(LANE), two_way)) == ["general"]
    assert name(scene(T, straight(), towards(LANE), one_way)) == ["agent_wrong_way_driving"]


@pytest.mark.parametrize("signed", [False, True])
def test_backing_up(signed):
    backs = track(T, 40 - along(T, np.where(T > 3, 1.0, 0.0)), -3.0, heading=0.0)
    if signed:
        backs["states"][:, 3] *= -1
    stands = track(T, 40 + 0.01 * np.sin(5 * T), -3.0, heading=0.0)
    assert name(scene(T, straight(), [backs])) == ["agent_backing_up"]
    assert not fired(scene(T, straight(), [stands]), "agent_backing_up")


def test_lane_keeping_behind_a_leader():
    follows = scene(T, straight(), [track(T, 30 + along(T, 12))])
    alone = scene(T, straight(), [track(T, 30 + along(T, 12), 7.5)])
    assert name(follows, alone) == ["ego_lane_keeping", "general"]
    assert detect(batch_of(follows)).actor.tolist() == [0]


def test_priority_holds_every_category_once():
    assert sorted(PRIORITY) == sorted(CATEGORIES)


def test_an_agents_doing_comes_before_the_egos_answer():
    both = scene(T, track(T, along(T, slowing(3.0))), [
        track(T, 60.0, -6 + along(T, 1.3), kind="pedestrian", size=PERSON), track(T, 30 + along(T, slowing(3.0)))])
    found = detect(batch_of(both))
    assert found.fired[0, CATEGORIES.index("ego_lane_keeping")]
    assert found.category_name[0] == "agent_jaywalking"


def test_empty_and_broken_scenes():
    nobody = scene(T, straight())
    never = scene(T, straight(valid=False), [track(T, 20 + along(T, 12))])
    one_step = scene(T[:1], {k: (v[:1] if isinstance(v, np.ndarray) else v) for k, v in straight().items()},
                     acceleration=0.0)
    assert name(nobody, never, one_step) == ["general"] * 3
    assert name(one_step) == ["general"]


def test_an_added_invalid_agent_changes_nothing():
    base = cut_in()
    ghost = track(T, 22.0, 0.0, valid=False)
    agent = track(T, 25.0 + along(T, 12.0), LANE - lane_change(T, 4, 4.0, LANE))
    more = scene(T, straight(), [agent, ghost])
    a, b = detect(batch_of(base)), detect(batch_of(more))
    assert (a.category == b.category).all() and (a.cutin.onset_step == b.cutin.onset_step).all()
