"""The trainer against independent loops, independence of members, early stopping, restarts and interrupts."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from torch import nn

import uqprism as up
from uqprism.training import MLP, Natural, ResNet18, SmallCNN, TrainingOptions, TrainingWarning, WarmUp, train, train_many
from uqprism.training.device import Threads, torch_threads
from uqprism.training.randomness import ORDER, DropoutMasks, drawn_rows, member_seeds, orders, uniform
from uqprism.training.trainer import Trainer

from .problems import FAST, Explosive, cut_off, images, rows_of, waves

SEEDS = [11, 22, 33]


def test_training_is_that_of_a_plain_loop_with_adam() -> None:
    """Every member by hand: its own module, its own `torch.optim.Adam`, batches in its own order."""
    x, y = waves(50)
    settings = {**FAST, "dtype": "float64", "validation_fraction": 0.0, "batch_size": 16, "max_epochs": 4}
    settings |= {"head": "natural", "schedule": "constant", "learning_rate": 1e-3}
    ensemble = train(x, y, network=MLP((7, 5), "silu"), member_seeds=SEEDS, **settings)
    inputs = torch.tensor((x - x.mean(0)) / x.std(0))
    targets = torch.tensor((y - y.mean()) / y.std())
    for member, seed in enumerate(SEEDS):
        torch.manual_seed(seed)
        module = MLP((7, 5), "silu")((3,), 2).double()
        optimiser = torch.optim.Adam(module.parameters(), 1e-3)
        for epoch in range(4):
            order = orders(torch.tensor([seed]), ORDER, epoch, 50)[0]
            assert_array_equal(np.sort(order), np.arange(50))
            for at in np.array_split(order.numpy(), 4):
                optimiser.zero_grad()
                precision = nn.functional.softplus(module(inputs[at])[:, 1]) + 1e-8
                mean = module(inputs[at])[:, 0] / precision
                nn.functional.gaussian_nll_loss(mean, targets[at], 1 / precision, full=True).backward()
                optimiser.step()
        expected = torch.cat([p.detach().reshape(-1) for p in module.parameters()])
        assert_allclose(rows_of(ensemble)[member], expected, rtol=1e-9, atol=1e-12)


ALONE = {
    "mlp": (MLP((8, 8)), waves, {}),
    "bootstrap": (MLP((8,)), waves, {"bootstrap": True}),
    "early stopping": (MLP((8,)), waves, {"max_epochs": 60, "patience": 2, "learning_rate": 0.02}),
    "dropout": (MLP((8,), dropout=0.3), waves, {}),
    "decay and clipping": (MLP((8,)), waves, {"weight_decay": 0.1, "max_gradient": 0.5}),
    "convolutions": (SmallCNN((2, 3, 4), 5), images, {}),
    "batch norm": (ResNet18(stem=3, width=4), images, {"max_epochs": 2}),
}


@pytest.mark.parametrize("case", ALONE)
def test_a_member_in_a_stack_is_the_member_trained_alone(case: str) -> None:
    network, data, settings = ALONE[case]
    x, y = data()
    settings = {**FAST, "batch_size": 16, **settings}
    together = train(x, y, network=network, member_seeds=SEEDS, **settings)
    for member, seed in enumerate(SEEDS):
        alone = train(x, y, network=network, member_seeds=[seed], **{**settings, "n_members": 1})
        assert alone.history.best_epochs[0] == together.history.best_epochs[member]
        assert_allclose(rows_of(together)[member], rows_of(alone)[0], rtol=1e-3, atol=2e-5)
        assert_allclose(together.history.curves[member].training, alone.history.curves[0].training, rtol=1e-4)


def test_members_differ_in_weights_and_order() -> None:
    first, second = rows_of(train(*waves(), **FAST))[:2]
    assert np.abs(first - second).mean() > 0.01
    seeds = member_seeds(0, 3)
    permutations = orders(seeds, ORDER, 0, 100)
    assert (permutations[0] != permutations[1]).sum() > 80
    assert (permutations[0] != orders(seeds, ORDER, 1, 100)[0]).sum() > 80


def test_many_training_sets_train_as_one_stack() -> None:
    """Each experiment is what `train` gives on its rows alone, standardised by them."""
    x, y = waves(90)
    x[:, 1] *= 1e4
    rows = np.stack([np.arange(40), np.arange(50, 90), np.arange(80, 40, -1)])
    settings = {**FAST, "n_members": 2, "batch_size": 16, "validation": waves(20, seed=1)}
    together = train_many(x, y, rows, network=MLP((6,)), **settings)
    for own, ensemble in zip(rows, together, strict=True):
        alone = train(x[own], y[own], network=MLP((6,)), **settings)
        assert_allclose(rows_of(ensemble), rows_of(alone), rtol=1e-3, atol=2e-5)
        found, expected = (e.predict_ensemble(x).members for e in (ensemble, alone))
        assert_allclose(found.mean, expected.mean, rtol=1e-3, atol=1e-4)
    assert len({float(e.target_scaling.mean) for e in together}) == 3
    apart = train_many(x, y, rows, network=MLP((6,)), seed=[5, 6, 5], **{**settings, "max_epochs": 1})
    assert apart[0].history.seeds == apart[2].history.seeds != apart[1].history.seeds
    own = train(x[rows[1]], y[rows[1]], network=MLP((6,)), seed=6, **{**settings, "max_epochs": 1})
    assert_allclose(rows_of(apart[1]), rows_of(own), rtol=1e-3, atol=2e-5)


def test_early_stopping_restores_each_members_best_epoch() -> None:
    x, y = waves(60)
    held = waves(40, seed=3)
    settings = {**FAST, "max_epochs": 80, "patience": 3, "learning_rate": 0.03, "batch_size": 16, "validation": held}
    ensemble = train(x, y, network=MLP((20,)), **settings)
    history = ensemble.history
    inputs = ensemble.input_scaling.apply(torch.tensor(held[0]), torch.float32)
    targets = ensemble.target_scaling.apply(torch.tensor(held[1]), torch.float32)
    with torch.no_grad():
        reached = Natural().validation_loss(ensemble.stack(inputs.expand(3, -1, -1)), targets.expand(3, -1)).mean(1)
    for member, curve in enumerate(history.curves):
        assert history.best_epochs[member] == 1 + int(np.argmin(curve.validation))
        assert len(curve.validation) in (history.best_epochs[member] + 3, 80)
        assert_allclose(reached[member], min(curve.validation), rtol=1e-4)
    assert len({len(curve.validation) for curve in history.curves}) > 1  # they stopped one by one
    assert history.validation_loss.shape == history.training_loss.shape == (max(len(c.training) for c in history.curves), 3)


def test_warm_up_neither_stops_nor_counts_and_without_validation_the_last_epoch_is_kept() -> None:
    x, y = waves(60)
    ensemble = train(x, y, head=WarmUp(epochs=6), **{**FAST, "max_epochs": 8, "patience": 1, "learning_rate": 1e-9})
    assert all(len(curve.training) >= 7 for curve in ensemble.history.curves)

    # Without validation the last epoch is kept.
    history = train(x, y, **FAST, validation_fraction=0.0).history
    assert history.best_epochs == (3, 3, 3)
    assert history.validation_loss.shape == (0, 3)


def test_a_member_that_diverges_is_restarted_with_a_warning() -> None:
    x, y = waves(40)
    settings = {**FAST, "n_members": 6, "network": lambda *_: Explosive(False), "seed": 1}
    with pytest.warns(TrainingWarning, match="diverged in epoch 1 .* restarted with a fresh seed") as warned:
        ensemble = train(x, y, **settings)
    restarted = {event.member for event in ensemble.history.events if event.kind == "restarted"}
    assert 0 < len(restarted) < 6
    assert len(warned) == len(ensemble.history.events)
    seeds = member_seeds(1, 6).tolist()
    assert [a != b for a, b in zip(ensemble.history.seeds, seeds, strict=True)] == [i in restarted for i in range(6)]
    assert np.isfinite(rows_of(ensemble)).all()
    assert all(len(curve.training) == 3 for curve in ensemble.history.curves)
    # The other members are unchanged, and a restarted one is the member of its new seed.
    for member, seed in enumerate(ensemble.history.seeds):
        alone = train(x, y, **{**settings, "n_members": 1, "member_seeds": [seed]})
        assert_allclose(rows_of(ensemble)[member], rows_of(alone)[0], rtol=1e-4, atol=1e-6)


def test_a_member_that_always_diverges_is_an_error() -> None:
    with (
        pytest.warns(TrainingWarning, match="diverged"),
        pytest.raises(up.UqprismError, match=r"member 0 diverged 6 times.*lower learning_rate \(now 0.003\)"),
    ):
        train(*waves(40), **FAST, network=lambda *_: Explosive(True))


def test_an_interrupt_keeps_the_best_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = waves(40)
    cut_off(monkeypatch, 2, KeyboardInterrupt())
    with pytest.warns(TrainingWarning, match="interrupted after 2 epochs"):
        ensemble = train(x, y, **{**FAST, "max_epochs": 10, "schedule": "constant"})
    monkeypatch.undo()
    whole = train(x, y, **{**FAST, "max_epochs": 2, "schedule": "constant"})
    assert_array_equal(rows_of(ensemble), rows_of(whole))
    assert ensemble.history.events[-1].kind == "interrupted"
    cut_off(monkeypatch, 0, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        train(x, y, **FAST)


class Fading(nn.Module):
    """A network whose outputs become infinite after some steps, for some initial weights."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2)
        self.register_buffer("steps", torch.zeros(()))
        self.register_buffer("last", torch.where(torch.rand(()) < 0.4, 12.0, 1e9))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.training:
            self.steps += 1
        return self.layer(x) * torch.where(self.steps > self.last, torch.inf, 1.0)


def test_an_interrupt_after_a_restart_keeps_the_best_of_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Member 0 diverges in its sixth epoch, and the interrupt comes before it finishes an epoch again."""
    x, y = waves(40)
    epoch, calls = Trainer._epoch, []

    def stop(self: Trainer) -> None:
        calls.append(1)
        if self.state.events:
            raise KeyboardInterrupt
        epoch(self)

    monkeypatch.setattr(Trainer, "_epoch", stop)
    settings = {**FAST, "n_members": 6, "max_epochs": 20, "network": Fading, "seed": 1, "batch_size": 18, "patience": None}
    with pytest.warns(TrainingWarning, match="diverged|interrupted"):
        ensemble = train(x, y, **settings)
    assert len(calls) > 5
    assert [event.kind for event in ensemble.history.events][-1] == "interrupted"
    assert all(best >= 1 for best in ensemble.history.best_epochs)
    assert np.isfinite(rows_of(ensemble)).all()


def test_the_same_seed_gives_the_same_members_and_the_generator_of_the_process_is_left_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    train(*waves(30), **FAST, network=MLP((4,), dropout=0.2))
    assert_array_equal(torch.rand(3), expected)
    first, again, other = (rows_of(train(*waves(40), seed=seed, **FAST)) for seed in (4, 4, 5))
    assert_array_equal(first, again)
    assert np.abs(first - other).max() > 0.01
    assert member_seeds(1, 9)[:4].tolist() == member_seeds(1, 4).tolist()


def test_progress_shows_the_mean_loss(capfd: pytest.CaptureFixture[str]) -> None:
    ensemble = train(*waves(40), **{**FAST, "progress": True})
    shown = capfd.readouterr().err
    assert "3/3" in shown
    last = np.mean([min(curve.validation) for curve in ensemble.history.curves])
    assert_allclose(float(shown.split("mean loss")[-1].split(",")[0]), last, rtol=1e-2)
    assert "0 of 3 learning" in shown


def test_counted_random_numbers_are_uniform_and_independent() -> None:
    seeds = member_seeds(0, 50)
    numbers = uniform(seeds[:, None], 1, torch.arange(2000)).numpy()
    counts = np.histogram(numbers, bins=64, range=(0, 1))[0]
    assert abs(((counts - counts.mean()) ** 2 / counts.mean()).sum() - 63) < 4 * np.sqrt(2 * 63)
    correlations = np.corrcoef(numbers)[np.triu_indices(50, 1)]
    assert np.abs(correlations).max() < 5 / np.sqrt(2000)
    drawn = drawn_rows(seeds, 500)
    unique = np.mean([len(np.unique(row)) for row in drawn.numpy()]) / 500
    assert_allclose(unique, 1 - np.exp(-1), atol=0.01)


def test_dropout_leaves_out_the_stated_share_and_keeps_the_mean() -> None:
    for per_row in (True, False):
        draw = DropoutMasks(member_seeds(0, 40), torch.arange(40), per_row=per_row)
        x = torch.ones(40, 8, 500)
        found = draw.apply(x, 0.3, 1)
        assert_allclose((found == 0).double().mean(), 0.3, atol=0.02)
        assert_allclose(found.mean(), 1.0, atol=0.03)
        assert bool((found[:, 0] == found[:, 1]).all()) is not per_row


@pytest.mark.slow
@pytest.mark.parametrize("network", [MLP(), MLP((8, 8), "silu", 0.2)])
def test_the_number_of_threads_changes_nothing(network: MLP) -> None:
    """This is why the clock may choose it."""
    found = []
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            found.append(rows_of(train(*waves(200), **FAST, network=network)))
            assert torch.get_num_threads() == count
    finally:
        torch.set_num_threads(1)
    assert_array_equal(*found)


def test_threads_are_chosen_by_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads are fast, then suddenly slow: after a while one is used; when that has passed, two again."""
    now, cost, used = [0.0], {1: 2.0, 2: 1.0}, []
    monkeypatch.setattr("uqprism.training.device.time.perf_counter", lambda: now[0])

    def step(_: object) -> None:
        used.append(torch.get_num_threads())
        now[0] += cost[used[-1]]

    try:
        torch.set_num_threads(2)
        threads = Threads("matmul")
        for _ in range(120):
            threads(step, None)
        assert used[:10] == [2] * 5 + [1] * 5
        assert set(used[10:]) == {2}
        for two, steps, last in ((100.0, 30, 1), (1.0, 1000, 2)):
            cost[2] = two
            for _ in range(steps):
                threads(step, None)
            assert used[-10:] == [last] * 10
    finally:
        torch.set_num_threads(1)


def test_steps_take_one_thread_while_other_trainings_have_the_cores() -> None:
    used: list[int] = []
    with torch_threads(2):
        threads = Threads("matmul")
        for _ in range(30):
            threads(lambda _: used.append(torch.get_num_threads()), None, 1)
    assert set(used) == {1}


def test_threads_are_not_chosen_where_numbers_depend_on_them() -> None:
    """Convolutions keep their number of threads, or two runs would differ."""
    used: list[int] = []
    with torch_threads(2):
        threads = Threads("loop")
        for _ in range(120):
            threads(lambda _: used.append(torch.get_num_threads()), None)
    assert set(used) == {2}


def test_a_cosine_schedule_is_that_of_pytorch() -> None:
    x, y = waves(50)
    settings = {**FAST, "dtype": "float64", "validation_fraction": 0.0, "batch_size": 16, "max_epochs": 4}
    ensemble = train(x, y, network=MLP((7,), "silu"), member_seeds=SEEDS, schedule="cosine", learning_rate=0.01, **settings)
    inputs, targets = torch.tensor((x - x.mean(0)) / x.std(0)), torch.tensor((y - y.mean()) / y.std())
    for member, seed in enumerate(SEEDS):
        torch.manual_seed(seed)
        module = MLP((7,), "silu")((3,), 2).double()
        optimiser = torch.optim.Adam(module.parameters(), 0.01)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, 16)
        for epoch in range(4):
            order = orders(torch.tensor([seed]), ORDER, epoch, 50)[0]
            for at in np.array_split(order.numpy(), 4):
                optimiser.zero_grad()
                Natural().loss(module(inputs[at]), targets[at], torch.zeros(1)).mean().backward()
                optimiser.step()
                schedule.step()
        expected = torch.cat([p.detach().reshape(-1) for p in module.parameters()])
        assert_allclose(rows_of(ensemble)[member], expected, rtol=1e-9, atol=1e-12)


def test_an_ensemble_may_stop_together() -> None:
    x, y = waves(80)
    settings = {**FAST, "max_epochs": 60, "patience": 3, "learning_rate": 0.003, "batch_size": 16, "stopping": "ensemble"}
    first, second = train_many(x, y, np.arange(80).reshape(2, 40), network=MLP((20,)), **settings)
    for ensemble in (first, second):
        history = ensemble.history
        mean = history.validation_loss.mean(1)
        assert set(history.best_epochs) == {1 + int(np.argmin(mean))}
        assert len({len(curve.training) for curve in history.curves}) == 1
    assert first.history.best_epochs != second.history.best_epochs


def test_a_refit_trains_on_all_rows_for_as_many_epochs_as_were_best() -> None:
    x, y = waves(60)
    settings = {**FAST, "max_epochs": 40, "patience": 3, "learning_rate": 0.03, "network": MLP((20,))}
    kept = train(x, y, **settings)
    refit = train(x, y, refit=True, **settings)
    assert [len(curve.training) for curve in refit.history.curves] == list(kept.history.best_epochs)
    assert len(refit.history.validation_loss) == 0
    assert_array_equal(refit.history.seeds, kept.history.seeds)
    with pytest.raises(up.UqprismError, match="it needs validation_fraction, not validation"):
        train(x, y, refit=True, validation=waves(20), **settings)


def test_members_that_still_improve_at_the_cap_are_told() -> None:
    x, y = waves(200)
    settings = {**FAST, "network": MLP((20,)), "max_epochs": 8, "patience": 5, "learning_rate": 1e-3}
    with pytest.warns(TrainingWarning, match="3 of 3 members were still improving when they reached max_epochs=8"):
        ensemble = train(x, y, schedule="constant", **settings)
    assert ensemble.history.events[-1].kind == "capped"
    assert not train(x, y, schedule="cosine", **settings).history.events  # which is meant to end there


def test_options_follow_from_the_number_of_rows_unless_they_are_given() -> None:
    found = {rows: TrainingOptions().settled(rows) for rows in (10, 300, 2000, 5000, 20_000, 40_000, 1_000_000)}
    assert [one.batch_size for one in found.values()] == [32, 32, 64, 64, 64, 128, 256]
    steps = {rows: one.max_epochs * -(-int(0.9 * rows) // one.batch_size) for rows, one in found.items()}
    assert all(one.max_epochs * max(rows, 1) >= 600 for rows, one in found.items())
    assert 5_000 < steps[300] < 7_000
    assert 6_000 <= steps[2000] < 6_100
    assert 12_000 <= steps[5000] < 12_100
    assert 24_000 <= steps[20_000] < 24_300
    assert 24_000 <= steps[40_000] < 24_300
    assert found[1_000_000].max_epochs == 40
    given = TrainingOptions(max_epochs=10, batch_size=7, patience=None).settled(500)
    assert (given.max_epochs, given.batch_size, given.patience) == (10, 7, None)
    with pytest.raises(up.UqprismError, match="max_epochs must be a positive integer, got 'automatic'"):
        TrainingOptions(max_epochs="automatic")
    with pytest.raises(up.UqprismError, match="did you mean 'cosine'"):
        TrainingOptions(schedule="cosin")
