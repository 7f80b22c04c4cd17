from dataclasses import replace

import numpy as np
import pytest
import torch

from avshift_core.config import EncoderConfig
from avshift_core.encoder.loss import RECONSTRUCTION, Targets, _nearest, _reconstruction, make_targets, training_loss
from avshift_core.encoder.model import Decoder, Encoder, to_torch
from avshift_core.encoder.scenes import scenes_of
from avshift_core.encoder.targets import CLASSES, N_EXTRA, NUMBERS
from tests.scenario.scenes import along, batch_of, scene, times, track

SIZES = tuple(map(len, CLASSES.values()))


@pytest.fixture
def nets():
    torch.manual_seed(0)
    config = EncoderConfig(d_model=32, n_heads=4, n_layers=1, latent_dim=8)
    return Encoder(config), Decoder(config, len(NUMBERS), SIZES), config


def two_cars():
    """Ego at 10 m/s; one car 8 m to its left, one 30 m ahead, both as fast. 14 s: one view step a second."""
    t = times(14.0)
    ego = track(t, along(t, 10.0))
    return batch_of(scene(t, ego, [track(t, along(t, 10.0), 8.0), track(t, 30 + along(t, 10.0))],
                          [(np.array([[-50.0, 0], [200, 0]]), "lane_center", 13.9)]))


def no_targets(n):
    extra = np.full((n, N_EXTRA), np.nan, np.float32)
    extra[:, len(NUMBERS):] = -1
    return make_targets(extra, torch.zeros(len(NUMBERS)), torch.ones(len(NUMBERS)))


def test_the_nearest_agent_relative_to_the_ego():
    near = _nearest(to_torch(scenes_of(two_cars())))
    assert near.shape == (1, 15, 5)
    expected = [0, np.arcsinh(8 / 4), 0, 0, 1]  # 8 m to the left in units of 4 m, no relative speed, there
    assert torch.allclose(near[0], torch.tensor(expected, dtype=torch.float32).expand(15, 5), atol=1e-3)


def test_a_decoder_that_says_what_happened_has_no_loss():
    s = to_torch(scenes_of(two_cars()))
    x = torch.arange(15.0) * 10  # ego, m
    squash = lambda v: torch.asinh(v / 4)  # noqa: E731
    one, none = torch.ones(15), torch.zeros(15)
    ego = torch.stack([squash(x), none, one, none, one], 1)
    actor = torch.stack([squash(30 * one), none, one, 20 * one], 1)  # the second car, 30 m ahead at 10 m/s, seen
    steps = torch.cat([ego, actor, _nearest(s)[0]], 1)[None]
    left, ahead = (torch.stack([squash(a), squash(b), 20 * one], 1) for a, b in ((x, 8 * one), (x + 30, none)))
    agents = torch.stack([left, ahead])[None]
    line = torch.cat([squash(s.line[0]).flatten(), torch.tensor([20.0, 0, 0, 0, 0, 0])])
    lines = torch.zeros(1, 6, 30)
    lines[0, 0] = line
    targets = Targets(torch.zeros(1, 1), torch.zeros(1, 1), torch.tensor([1]))
    parts = _reconstruction(steps, agents, lines, s, targets, torch.tensor([2]), torch.tensor([[0, 1]]))
    for name, value in parts.items():
        assert value.item() < 1e-3, name
    wrong = _reconstruction(steps, agents.flip(1), lines, s, replace(targets, actor=torch.tensor([0])),
                            torch.tensor([2]), torch.tensor([[0, 1]]))
    assert wrong["agents"] > 1 and wrong["actor"] > 1


def test_targets_that_nobody_measured_are_left_out(nets, batch):
    encoder, decoder, config = nets
    s = to_torch(scenes_of(batch))
    loss, parts = training_loss(encoder, decoder, s, s, no_targets(s.n), config, torch.Generator().manual_seed(0))
    assert torch.isfinite(loss)
    assert [parts[name].item() for name in ("numbers", "category", "classes", "actor")] == [0, 0, 0, 0]


def test_the_loss_is_the_sum_of_its_parts_with_the_attributes_weighted(nets, batch):
    encoder, decoder, config = nets
    s = to_torch(scenes_of(batch))
    extra = np.zeros((s.n, N_EXTRA), np.float32)
    targets = make_targets(extra, torch.ones(len(NUMBERS)), torch.ones(len(NUMBERS)))
    loss = lambda weight: training_loss(  # noqa: E731
        encoder, decoder, s, s, targets, replace(config, attr_weight=weight), torch.Generator().manual_seed(0))
    (one, parts), (three, _) = loss(1.0), loss(3.0)
    said = sum(parts[name].item() for name in ("category", "numbers", "classes"))
    told = sum(weight * parts[name].item() for name, weight in RECONSTRUCTION.items())
    assert one.item() == pytest.approx(told + said + config.spread_weight * parts["spread"].item(), rel=1e-5)
    assert (three - one).item() == pytest.approx(2 * said, rel=1e-4)


def test_every_weight_learns(nets, batch):
    encoder, decoder, config = nets
    s = to_torch(scenes_of(batch))
    targets = make_targets(np.zeros((s.n, N_EXTRA), np.float32), torch.ones(len(NUMBERS)), torch.ones(len(NUMBERS)))
    training_loss(encoder, decoder, s, s, targets, config, torch.Generator().manual_seed(0))[0].backward()
    for net in (encoder, decoder):
        for name, parameter in net.named_parameters():
            assert parameter.grad is not None and parameter.grad.abs().max() > 0, name


def test_the_kl_term_is_zero_at_a_standard_normal(batch):
    torch.manual_seed(0)
    config = EncoderConfig(d_model=32, n_heads=4, n_layers=1, latent_dim=8, kl_weight=0.5)
    encoder, decoder = Encoder(config), Decoder(config, len(NUMBERS), SIZES)
    for layer in (encoder.latent, encoder.log_variance):  # mean 0 and variance 1, whatever comes in
        torch.nn.init.zeros_(layer.weight)
        torch.nn.init.zeros_(layer.bias)
    s = to_torch(scenes_of(batch))
    loss = lambda: training_loss(  # noqa: E731
        encoder, decoder, s, s, no_targets(s.n), config, torch.Generator().manual_seed(0))[1]["kl"].item()
    assert loss() == pytest.approx(0, abs=1e-6)
    torch.nn.init.constant_(encoder.latent.bias, 2.0)
    assert loss() == pytest.approx(8 * 2.0**2 / 2)  # KL of N(2, 1) from N(0, 1) in 8 dimensions
