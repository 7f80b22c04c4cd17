from dataclasses import replace

import numpy as np
import pytest
import torch

from avshift_core.config import EncoderConfig
from avshift_core.encoder.model import AgentAttention, Decoder, Encoder, RoadAttention, to_torch
from avshift_core.encoder.scenes import context_view, ragged, scenes_of
from avshift_core.encoder.weights import load_model
from avshift_core.scenario.schema import pad
from avshift_core.scenario.simulate.fleet import Block, FleetConfig, draw, simulate
from avshift_core.scenario.simulate.policy import POLICIES
from avshift_core.scenario.view import tensor_view

TOLERANCE = 1e-5


@pytest.fixture(scope="module")
def net():
    return load_model().net


def z_of(net, scenes):
    with torch.no_grad():
        return net(to_torch(scenes)).numpy()


@pytest.mark.parametrize("view", ["full", "context"])
class TestInvariance:
    """z is that of the scene, not of how it is written down."""

    def shown(self, scenes, view):
        return context_view(scenes, 2.0) if view == "context" else scenes

    def z(self, net, batch, view):
        return z_of(net, self.shown(scenes_of(batch), view))

    def test_agents_in_another_order(self, net, batch, view):
        order = np.random.default_rng(0).permutation(batch.agents.shape[1])
        moved = replace(batch, agents=batch.agents[:, order], agents_valid=batch.agents_valid[:, order],
                        agent_type=batch.agent_type[:, order], agent_size=batch.agent_size[:, order],
                        agent_id=batch.agent_id[:, order])
        assert np.abs(self.z(net, moved, view) - self.z(net, batch, view)).max() < TOLERANCE

    def test_tokens_agent_by_agent_in_another_order(self, net, batch, view):
        """The view sorts agents by distance; here the network itself gets them in another order."""
        tensors = tensor_view(batch)
        order = np.random.default_rng(0).permutation(tensors.agents.shape[1])
        names = ("agents", "agents_valid", "agent_valid", "agent_type", "agent_size", "agent_index")
        moved = replace(tensors, **{name: getattr(tensors, name)[:, order] for name in names})
        a, b = (z_of(net, self.shown(ragged(t), view)) for t in (tensors, moved))
        assert np.abs(a - b).max() < TOLERANCE

    def test_an_agent_that_is_never_valid(self, net, batch, view):
        more = lambda a: np.concatenate([a, np.ones_like(a[:, :1])], axis=1)  # noqa: E731
        added = replace(batch, agents=more(batch.agents), agent_type=more(batch.agent_type),
                        agent_size=more(batch.agent_size), agent_id=more(batch.agent_id),
                        agents_valid=np.concatenate([batch.agents_valid, np.zeros_like(batch.agents_valid[:, :1])], 1))
        assert np.abs(self.z(net, added, view) - self.z(net, batch, view)).max() < TOLERANCE

    def test_more_padding(self, net, batch, view):
        """Alone, in a batch, or beside a scenario with more agents and steps."""
        whole = self.z(net, batch, view)
        alone = np.concatenate([self.z(net, pad([batch.scenario(i)]), view) for i in range(8)])
        assert np.abs(alone - whole[:8]).max() < TOLERANCE

    def test_the_same_scene_elsewhere(self, net, batch, view):
        """Absolute place and direction are no inputs; float32 coordinates far away are rounded, hence 1e-2."""
        turn, move = 0.7, np.array([300.0, -200.0], np.float32)

        def moved(states):
            c, s = np.cos(turn), np.sin(turn)
            x, y = states[..., 0], states[..., 1]
            place = np.stack([c * x - s * y, s * x + c * y], axis=-1) + move
            return np.concatenate([place, states[..., 2:3] + turn, states[..., 3:]], axis=-1).astype(np.float32)

        roads = tuple(replace(road, xy=moved(np.pad(road.xy, ((0, 0), (0, 1))))[:, :2]) for road in batch.road)
        other = replace(batch, ego=moved(batch.ego), agents=moved(batch.agents), road=roads)
        assert np.abs(self.z(net, other, view) - self.z(net, batch, view)).max() < 1e-2

    def test_labels_are_no_inputs(self, net, batch, view):
        ids = tuple(replace(i, av_version="v9", area="moon", period="1999-W01", category="general") for i in batch.ids)
        assert np.array_equal(self.z(net, replace(batch, ids=ids), view), self.z(net, batch, view))


def test_the_context_does_not_see_what_the_ego_does(net, batch):
    """Another drive of the ego after the start, and other traffic after the window: the same context."""
    late = batch.t_s > 2.5
    ego, agents = batch.ego.copy(), batch.agents.copy()
    ego[:, 1:, :2] += 5
    ego[:, 1:, 3] *= 0.3
    agents[np.broadcast_to(late[:, None], agents.shape[:3])] += 3
    first = z_of(net, context_view(scenes_of(batch), 2.0))
    # The order and choice of agents is by the ego's whole way; 128 agents are never reached here.
    second = z_of(net, context_view(scenes_of(replace(batch, ego=ego, agents=agents)), 2.0))
    assert np.abs(first - second).max() < TOLERANCE
    full = z_of(net, scenes_of(replace(batch, ego=ego, agents=agents)))
    assert np.abs(full - z_of(net, scenes_of(batch))).max() > 0.1


def test_both_av_versions_have_the_same_context(net):
    """The same 120 contexts driven by either version: the full view tells them apart, the context view does not."""
    contexts, ids = draw(FleetConfig(16_000, seed=4), Block(0, 0, 5, 120))
    z = {view: [] for view in ("full", "context")}
    for policy in POLICIES.values():
        for view, found in z.items():
            latents = np.zeros((contexts.n, net.config.latent_dim))
            for rows, run, _ in simulate(contexts, ids, policy):
                scenes = scenes_of(run)
                latents[rows] = z_of(net, context_view(scenes, 2.0) if view == "context" else scenes)
            found.append(latents)
    apart = {view: np.linalg.norm(a - b, axis=1) for view, (a, b) in z.items()}
    typical = np.linalg.norm(z["context"][0] - z["context"][0][::-1], axis=1).mean()  # of two different scenarios
    assert np.median(apart["context"]) < 1e-3 * typical and apart["context"].max() < 0.1 * typical
    assert np.median(apart["full"]) > 5 * np.median(apart["context"]) and apart["full"].max() > 0.2 * typical


def test_scenes_without_agents_or_road(net, batch):
    empty = replace(batch, agents_valid=np.zeros_like(batch.agents_valid),
                    road=tuple(replace(r, xy=r.xy[:0], start=r.start[:1], kind=r.kind[:0],
                                       speed_limit_mps=r.speed_limit_mps[:0]) for r in batch.road))
    assert np.isfinite(z_of(net, scenes_of(empty))).all()


def test_ragged_attention_is_attention_group_by_group():
    torch.manual_seed(0)
    layer = AgentAttention(16, 4)
    query, token, group = torch.randn(3, 16), torch.randn(7, 16), torch.tensor([0, 2, 0, 2, 2, 0, 2])
    got = layer(query, token, group)
    for g in range(3):  # group 1 has no token: only nobody
        rows = (group == g).nonzero()[:, 0]
        k, v = layer.kv(token[rows]).split(16, dim=1)
        k, v = torch.cat([layer.nobody[:1], k]), torch.cat([layer.nobody[1:], v])
        q = layer.q(query[g])
        heads = [torch.softmax(k[:, h] @ q[h] / 2, 0) @ v[:, h] for h in torch.arange(16).view(4, 4)]  # sqrt(4) = 2
        assert torch.allclose(got[g], layer.out(torch.cat(heads)), atol=1e-6)


def test_road_attention_is_attention_scene_by_scene():
    torch.manual_seed(0)
    layer = RoadAttention(8, 2)
    query, line, scene = torch.randn(3, 5, 8), torch.randn(4, 8), torch.tensor([0, 0, 0, 2])
    got = layer(query, line, scene)
    for n in range(3):
        kv = torch.cat([layer.nothing[None], layer.kv(line[scene == n])])
        k, v = kv.split(8, dim=1)
        q = layer.q(query[n])
        heads = [torch.softmax(q[:, h] @ k[:, h].T / 2, 1) @ v[:, h] for h in torch.arange(8).view(2, 4)]
        assert torch.allclose(got[n], layer.out(torch.cat(heads, dim=1)), atol=1e-6)


def test_any_subset_of_the_agents_can_be_decoded():
    torch.manual_seed(0)
    decoder = Decoder(EncoderConfig(), 3, (2, 4))
    z, lines = torch.randn(2, 64), torch.arange(3).expand(2, 3)
    steps, agents, _, attributes = decoder(z, torch.arange(128).expand(2, 128), lines)
    assert steps.shape == (2, 15, 14) and agents.shape == (2, 128, 15, 3)
    assert [tuple(a.shape) for a in attributes[1]] == [(2, 3), (2, 2), (2, 4)]
    _, some, _, _ = decoder(z, torch.tensor([[5, 90]]).expand(2, 2), lines)
    assert torch.allclose(some, agents[:, [5, 90]], atol=1e-5)


@pytest.mark.parametrize("changes", [{"latent_dim": 10}, {"latent_dim": 128}, {"kl_weight": 0.1}])
def test_the_ablations_settings(batch, changes):
    torch.manual_seed(0)
    config = EncoderConfig(**changes)
    z, log_variance = Encoder(config).pooled(to_torch(scenes_of(batch)))
    assert z.shape == (batch.n, config.latent_dim)
    assert (log_variance is None) == (config.kl_weight == 0)
