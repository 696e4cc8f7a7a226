"""The guard: three lines for a server with a loop of its own, whatever its clients send."""

import copy
import stat

import numpy as np
import pytest
import torch
from tests.small_resnet import SmallResNet
from torch import nn

import datadefense as dd
from datadefense.core.outcomes import Verdict


def model(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 3))


def moved(module, by, seed=0):
    """A client's whole model: the module's state dict, floats shifted at random."""
    draw = torch.Generator().manual_seed(seed)
    return {
        name: value + by * torch.randn(value.shape, generator=draw)
        if value.is_floating_point()
        else value + 7
        for name, value in module.state_dict().items()
    }


def sent(module, clients=6, by=0.01):
    return [moved(module, by, seed) for seed in range(clients)]


def by_hand(module, defense, whole, counts):
    """The same round with the parts of the library."""
    layout = dd.Layout.of_module(module)
    params = layout.flatten(module.state_dict())
    server = dd.Server(seed=1)
    rows = [dd.Submission(j, one, counts[j]) for j, one in enumerate(whole)]
    admission = dd.Gate(layout, sends="models").admit(1, params, rows)
    state = defense.init(server, params)
    return layout, dd.defend(defense, state, admission, params, server)


@pytest.mark.parametrize("name", ["fedavg", "multi-krum", "median", "weak-dp", "sparsefed"])
def test_a_step_is_gate_and_defend(name):
    module, counts = model(), [10, 20, 30, 40, 50, 60]
    whole = sent(module)
    layout, expected = by_hand(module, dd.create(name), whole, counts)
    guard = dd.Guard(module, name, seed=1)
    result = guard.step(whole, counts)
    assert torch.equal(guard.state.params, expected.params)
    module.load_state_dict(result.state_dict, strict=True)
    assert torch.equal(layout.flatten(module.state_dict()), expected.params)
    assert result.report == expected.report
    assert guard.state.round == 1


@pytest.mark.parametrize("buffers", ["aggregate", "keep"])
def test_batch_norm_loads_strictly(buffers):
    module = SmallResNet()
    module(torch.randn(8, 1, 8, 8))  # statistics that are not fresh
    before = copy.deepcopy(module.state_dict())
    guard = dd.Guard(module, "fedavg", buffers=buffers)
    result = guard.step(sent(module, 3), 5)
    assert list(result.state_dict) == list(before)
    assert not module.load_state_dict(result.state_dict, strict=True).missing_keys
    after = module.state_dict()
    assert after["bn1.num_batches_tracked"] == before["bn1.num_batches_tracked"] == 1
    same = torch.equal(after["bn1.running_mean"], before["bn1.running_mean"])
    assert same == (buffers == "keep")
    assert not torch.equal(after["fc.weight"], before["fc.weight"])


def test_tied_weights_load_strictly():
    module = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    module[1].weight = module[0].weight
    result = dd.Guard(module, "fedavg").step(sent(module, 2))
    module.load_state_dict(result.state_dict, strict=True)
    assert torch.equal(result.state_dict["0.weight"], result.state_dict["1.weight"])


class Extra(nn.Linear):
    """A module with a state that is no tensor."""

    def get_extra_state(self):
        return {"version": 3}

    def set_extra_state(self, state):
        assert state == {"version": 3}


def test_extra_state_is_complete_too():
    module = Extra(3, 2)
    content = {name: module.state_dict()[name] + 0.01 for name in ("weight", "bias")}
    result = dd.Guard(module, "fedavg").step([content] * 3)
    module.load_state_dict(result.state_dict, strict=True)


def test_kinds_of_content_are_the_same_round():
    module = model()
    layout = dd.Layout.of_module(module)
    start = layout.flatten(module.state_dict())
    whole = sent(module)
    flat = [layout.flatten(one) for one in whole]
    rounds = {
        "dicts": ("models", whole),
        "arrays": ("models", [{k: v.numpy() for k, v in one.items()} for one in whole]),
        "vectors": ("models", flat),
        "a matrix": ("models", torch.stack(flat)),
        "by id": ("models", {f"clinic {j}": one for j, one in enumerate(whole)}),
        "updates": ("updates", [one - start for one in flat]),
        "named updates": ("updates", [layout.unflatten(one - start) for one in flat]),
    }
    models = {
        kind: dd.Guard(module, "multi-krum", sends=sends).step(content, 9).state_dict
        for kind, (sends, content) in rounds.items()
    }
    for kind, found in models.items():
        for name, tensor in found.items():
            assert torch.allclose(tensor, models["dicts"][name], atol=1e-6), (kind, name)


def test_counts_by_id_by_place_for_all_or_none():
    module = model()
    whole = {"a": moved(module, 0.1, 1), "b": moved(module, 0.1, 2)}

    def weights(counts):
        return dd.Guard(module, "fedavg").step(whole, counts).aggregate.weights.tolist()

    assert weights({"b": 30, "a": 10}) == weights([10, 30]) == [0.25, 0.75]
    assert weights(np.array([10, 30])) == [0.25, 0.75]
    assert weights(None) == weights(7) == [0.5, 0.5]
    with pytest.raises(dd.InputError, match="one count a client: got 2 updates, 3 counts"):
        weights([1, 2, 3])
    result = dd.Guard(module, "fedavg").step(whole, {"a": 10})
    assert str(result.outcomes[1].reason) == "num_examples is missing"


def test_garbage_is_a_rejection_with_a_reason():
    module = model()
    whole = dict(enumerate(sent(module)))
    guard = dd.Guard(module, "multi-krum", max_examples=100, known_clients=[*range(6), "x", "y"])
    nan = {**moved(module, 0.1), "0.bias": torch.full((4,), torch.nan)}
    odd = {"x": nan, "y": b"\x80\x04.", 99: whole[0]}
    counts = {**dict.fromkeys([*whole, *odd], 10), 5: 10**9}
    result = guard.step({**whole, **odd}, counts)
    said = {one.client: (one.verdict, str(one.reason)) for one in result.outcomes}
    assert len(said) == 9
    assert said[5] == ("rejected", "num_examples must be in 1..100, got 1000000000")
    assert said["x"] == ("rejected", "4 of 43 values are not finite")
    assert said["y"][1].startswith("expected a numeric array or named arrays, got bytes")
    assert said[99] == ("rejected", "unknown client")
    assert [said[j][0] for j in range(5)].count("counted") == 4
    assert [one.weight for one in result.outcomes if one.verdict == "excluded"] == [0.0]


def test_nobody_left_and_the_model_stays():
    module = model()
    guard = dd.Guard(module, "krum")
    for content in ([], ["garbage"], [{}]):
        result = guard.step(content)
        assert result.report["held"] == "no update was admitted"
        for name, tensor in module.state_dict().items():
            assert torch.equal(result.state_dict[name], tensor)
    assert guard.state.round == 3


def test_a_model_that_is_held_uses_nobody():
    module = nn.Linear(2, 1)
    module.weight.data.fill_(3e38)
    update = torch.full((3,), 3e38)
    result = dd.Guard(module, "fedavg", sends="updates", check_sends=False).step([update] * 3)
    assert result.report["held"] == "the aggregate is not finite"
    assert {one.verdict for one in result.outcomes} == {"excluded"}
    assert {one.reason.code for one in result.outcomes} == {"model_kept"}


@pytest.mark.parametrize(("sends", "other"), [("models", "updates"), ("updates", "models")])
def test_the_other_kind_is_refused_in_the_first_round_and_nothing_changes(sends, other):
    module = model()
    layout = dd.Layout.of_module(module)
    start = layout.flatten(module.state_dict())
    whole = [layout.flatten(one) for one in sent(module)]
    less = [one - start for one in whole]
    right, wrong = (whole, less) if sends == "models" else (less, whole)
    guard = dd.Guard(module, "fedavg", sends=sends)
    with pytest.raises(dd.WrongKindError, match=f"6 of 6 clients seem to send {other}"):
        guard.step(wrong)
    assert guard.state.round == 0
    assert torch.equal(guard.state.params, start)
    guard.step([])  # nobody: the kind is not known yet
    with pytest.raises(dd.WrongKindError):
        guard.step(wrong)
    guard.step([*right[:4], *wrong[4:]])
    guard.step(wrong)  # a majority of attackers later on does not end the loop
    dd.Guard(module, "fedavg", sends=sends, check_sends=False).step(wrong)


def test_what_happens_to_the_model_later_changes_nothing():
    module = model()
    guard = dd.Guard(module, "fedavg")
    whole = sent(module)
    module[0].weight.data.fill_(99)
    result = guard.step(whole)
    module.load_state_dict(result.state_dict, assign=True)
    before = guard.state.params.clone()
    module[0].weight.data.fill_(99)
    assert torch.equal(guard.state.params, before)
    assert float(guard.state_dict["0.weight"].abs().max()) < 2


def rounds(guard, module, first, last):
    for index in range(first, last):
        result = guard.step([moved(module, 0.01, 10 * index + j) for j in range(6)])
        module.load_state_dict(result.state_dict)
    return guard


@pytest.mark.parametrize("name", ["sparsefed", "weak-dp"])
def test_it_goes_on_after_a_restart_to_the_same_bits(tmp_path, name):
    """Sparsefed has a memory, weak-dp a secret seed."""
    module = model()
    guard = rounds(dd.Guard(module, name), module, 0, 2)
    guard.save(tmp_path / "guard")
    assert stat.S_IMODE((tmp_path / "guard").stat().st_mode) == 0o600
    again_module = model(seed=5)  # drawn anew: the parameters are those of the file
    again = dd.Guard(again_module, name)
    again.restore(tmp_path / "guard")
    again_module.load_state_dict(again.state_dict)
    assert again.state.round == 2
    assert again.state.seed == guard.state.seed
    rounds(guard, module, 2, 4)
    rounds(again, again_module, 2, 4)
    assert torch.equal(again.state.params, guard.state.params)


def test_a_seed_is_secret_or_given_and_one_that_is_given_stays(tmp_path):
    module = model()
    assert dd.Guard(module, "weak-dp").state.seed != dd.Guard(module, "weak-dp").state.seed
    dd.Guard(module, "weak-dp").save(tmp_path / "guard")
    guard = dd.Guard(module, "weak-dp", seed=7)
    guard.restore(tmp_path / "guard")
    assert guard.state.seed == 7


@pytest.mark.parametrize(
    ("other", "difference"),
    [
        ({"defense": "median"}, "its defense is 'krum'"),
        ({"settings": {"num_malicious": 2}}, "setting 'num_malicious' is 1 there, 2 here"),
        ({"run": "b"}, "its run is 'a', this one's 'b'"),
        ({"model": nn.Linear(2, 1)}, "tensor 'weight' is only in this run"),
    ],
)
def test_the_state_of_another_run_is_refused(tmp_path, other, difference):
    dd.Guard(model(), "krum", run="a").save(tmp_path / "guard")
    guard = dd.Guard(**{"model": model(), "defense": "krum", "run": "a", **other})
    with pytest.raises(dd.StateError, match=difference):
        guard.restore(tmp_path / "guard")
    assert guard.state.round == 0


def test_datadefense_has_all_it_needs():
    module = nn.Linear(6, 2)
    examples = dd.Examples(torch.randn(40, 6), torch.randint(2, (40,)))
    owned = dd.DefenseSet(examples, torch.arange(40) < 15, dd.penultimate(module, examples.inputs))
    for name in ("datadefense", "fltrust"):
        guard = dd.Guard(module, name, defense_set=owned)
        result = guard.step(sent(module, 5))
        assert len(result.outcomes) == 5
        module.load_state_dict(result.state_dict)
    assert all(one.verdict in {*Verdict} for one in result.outcomes)


def test_mistakes_of_the_caller():
    with pytest.raises(dd.SettingsError, match="did you mean 'krum'"):
        dd.Guard(model(), "krumm")
    with pytest.raises(dd.SettingsError, match="settings go with a name"):
        dd.Guard(model(), dd.create("krum"), settings={"num_malicious": 2})
    with pytest.raises(dd.SettingsError, match="sends must be one of updates, models"):
        dd.Guard(model(), "krum", sends="gradients")
    with pytest.raises(dd.InputError, match="needs a model and a defense set"):
        dd.Guard(model(), "datadefense")
    broken = model()
    broken[0].weight.data[0, 0] = torch.nan
    with pytest.raises(dd.InputError, match="the model holds values that are not finite"):
        dd.Guard(broken, "krum")


def test_a_rule_that_could_not_be_applied_is_logged(datadefense_log):
    result = dd.Guard(model(), "bulyan").step(sent(model(), 3))
    assert "bulyan needs n >= 4f + 3, got n=3, f=1" in result.report["fallback"]
    assert "round 1: bulyan needs n >= 4f + 3" in datadefense_log.text


def test_slips_in_handing_over_are_said_and_change_nothing():
    module = model()
    guard = dd.Guard(module, "fedavg")
    for wrong in (module.state_dict(), None):
        with pytest.raises(dd.InputError, match=r"one client's state dict|must be a list"):
            guard.step(wrong)
    assert guard.state.round == 0
    with pytest.raises(dd.InputError, match="model must be an nn.Module, got a OrderedDict"):
        dd.Guard(module.state_dict(), "fedavg")
    counted = guard.step(sent(module, 3), torch.tensor([1, 2, 1]))
    assert counted.aggregate.weights.tolist() == [0.25, 0.5, 0.25]


def test_what_a_defense_needs_is_given_to_the_guard():
    with pytest.raises(dd.InputError) as caught:
        dd.Guard(model(), "datadefense")
    assert str(caught.value) == (
        "datadefense needs a model and a defense set on the server: "
        "Guard(model=..., defense_set=...), see docs/defenses.md"
    )
