from dataclasses import fields, replace

import numpy as np
import pytest

from avshift_core.encoder.scenes import Scenes, context_view, cut, pack, packed_size, scenes_of, unpack
from avshift_core.errors import ModelError
from avshift_core.scenario.view import tensor_view


def same(a: Scenes, b: Scenes) -> bool:
    return all(np.array_equal(getattr(a, f.name), getattr(b, f.name)) for f in fields(Scenes))


def test_nothing_of_the_view_is_lost(batch):
    view, scenes = tensor_view(batch), scenes_of(batch)
    assert len(scenes.token) == view.agents_valid.sum()
    assert len(scenes.line) == view.road_valid.sum()
    dense = np.zeros_like(view.agents)
    slot = np.nonzero(view.agent_valid)[1]
    dense[scenes.agent_scene[scenes.token_agent], slot[scenes.token_agent], scenes.token_step] = scenes.token
    assert np.array_equal(dense, view.agents)


def test_packed_scenes_come_back(batch):
    scenes = scenes_of(batch)
    extra = np.arange(2.0 * scenes.n).reshape(-1, 2)
    data, counts = pack(scenes, extra)
    assert len(data) == packed_size(counts, 2).sum()
    back, more = unpack(data, counts, 2)
    assert same(scenes, back)
    assert np.array_equal(extra, more)


def test_the_context_shows_the_first_seconds_and_one_state_of_the_ego(batch):
    scenes = scenes_of(batch)
    context = context_view(scenes, 2.0)
    seen = context.token_step * context.dt_s[context.agent_scene[context.token_agent]]
    assert seen.max() <= 2.0 + 1e-5
    every = scenes.token_step * scenes.dt_s[scenes.agent_scene[scenes.token_agent]]
    assert len(context.token) == (every <= 2.0 + 1e-5).sum()
    assert (context.ego_valid.sum(axis=1) == 1).all()
    assert np.array_equal(context.ego[:, 0, :5], scenes.ego[:, 0, :5])
    assert not context.ego[:, 0, 5].any() and scenes.ego[:, 0, 5].any()  # its acceleration is its answer to the scene
    assert not context.ego[:, 1:].any()
    assert context.step_valid.sum(axis=1).max() == 3  # 0, 0.71 and 1.43 s of a scenario of 10 s


def test_a_cut_at_the_end_is_no_cut(batch):
    scenes = scenes_of(batch)
    assert same(cut(scenes, np.full(scenes.n, 14), ego_start_only=False), scenes)


def test_a_scenario_without_a_valid_step_is_named(batch):
    valid = batch.ego_valid.copy()
    valid[5] = False
    with pytest.raises(ModelError, match=f"'{batch.ids[5].scenario_id}' has no valid step"):
        scenes_of(replace(batch, ego_valid=valid))


def test_an_ego_that_is_seen_only_between_the_steps_of_the_view_is_named_too(batch):
    valid = np.zeros_like(batch.ego_valid)
    valid[:, 3] = True  # at 0.3 s, and the view's steps are 0.7 s or more apart
    with pytest.raises(ModelError, match="has no valid step"):
        scenes_of(replace(batch, ego_valid=valid))
