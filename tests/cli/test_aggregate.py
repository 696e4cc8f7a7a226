import json

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from tests import oracles

from datadefense import create, load_state
from datadefense.cli.app import main


@pytest.fixture
def folder(tmp_path):
    """A global model of two tensors and six clients with constant updates 1..6."""
    (tmp_path / "clients").mkdir()
    save_file(model(10.0), tmp_path / "g.safetensors", {"run": "seven"})
    for j in range(1, 7):
        write_client(tmp_path, f"c{j}", model(float(j)), 10 * j)
    return tmp_path


def model(value):
    return {"layer.weight": torch.full((2, 3), value), "layer.bias": torch.full((2,), -value)}


def said(row):
    """Return a client's verdict and the gate's words, as one text."""
    return f"{row['verdict']}: {row['reason']['text']}" if "reason" in row else row["verdict"]


def write_client(folder, name, tensors, count):
    metadata = None if count is None else {"num_examples": str(count)}
    save_file(tensors, folder / "clients" / f"{name}.safetensors", metadata)


@pytest.fixture
def run(folder, monkeypatch, capsys):
    def call(*arguments, defense="median", sends="updates"):
        monkeypatch.chdir(folder)
        monkeypatch.setenv("COLUMNS", "160")
        argv = [
            "datadefense",
            "aggregate",
            "--global",
            "g.safetensors",
            "--updates",
            "clients",
            "--defense",
            defense,
            "--out",
            "new.safetensors",
            "--report",
            "report.json",
            *(() if sends is None else ("--sends", sends)),
            *arguments,
        ]
        monkeypatch.setattr("sys.argv", argv)
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code, capsys.readouterr()

    return call


def test_a_round_of_files(folder, run):
    code, out = run(defense="median")
    assert code == 0
    new = load_file(folder / "new.safetensors")
    assert torch.equal(new["layer.weight"], torch.full((2, 3), 13.5))
    assert torch.equal(new["layer.bias"], torch.full((2,), -13.5))
    report = json.loads((folder / "report.json").read_text())
    assert report["defense"] == "median"
    assert [row["client"] for row in report["clients"]] == ["c1", "c2", "c3", "c4", "c5", "c6"]
    assert report["clients"][1]["num_examples"] == 20
    assert report["clients"][1]["evidence"]["norm"] == pytest.approx(2 * 8**0.5)
    assert report["clients"][1]["verdict"] == "voted"
    for word in ("client", "examples", "norm", "weight", "verdict", "reason", "voted", "c6"):
        assert word in out.out
    with safe_open(folder / "new.safetensors", "pt") as file:
        assert file.metadata() == {"run": "seven"}


def test_updates_may_lie_in_a_file(folder, run):
    code, _ = run(defense="krum")
    assert code == 0
    plain = load_file(folder / "new.safetensors")
    before = {path.name for path in folder.iterdir()}
    code, _ = run("--spill", ".", "--spill-above", "0", defense="krum")
    assert code == 0
    spilled = load_file(folder / "new.safetensors")
    assert all(torch.equal(spilled[name], tensor) for name, tensor in plain.items())
    assert {path.name for path in folder.iterdir()} == before
    code, out = run("--spill", "nowhere", "--spill-above", "0")
    assert code == 2
    assert "No such file or directory" in out.err


def test_weights_norms_and_verdicts(folder, run):
    code, out = run("--set", "norm_bound=6", defense="ndc")
    assert code == 0
    report = json.loads((folder / "report.json").read_text())
    last = report["clients"][-1]
    assert last["verdict"] == "reduced"
    assert last["reason"] == {"code": "norm", "value": 16.9706, "limit": 6.0}
    assert "norm 17, clipped to 6" in out.out
    assert last["weight"] == pytest.approx(60 / 210 * 6 / (6 * 8**0.5), rel=1e-5)
    assert report["settings"] == {"norm_bound": 6.0}
    rows = [[float(j)] * 8 for j in range(1, 7)]
    expected = oracles.ndc(rows, [10 * j for j in range(1, 7)], 6.0)[0]
    new = load_file(folder / "new.safetensors")["layer.weight"]
    assert float(new[0, 0]) == pytest.approx(10 + expected, rel=1e-6)


def spoil(folder):
    clients = folder / "clients"
    whole = (clients / "c1.safetensors").read_bytes()
    (clients / "cut.safetensors").write_bytes(whole[:-7])
    (clients / "notes.txt").write_text("hello")
    (clients / "pickle.safetensors").write_bytes(
        b"\x80\x04\x95\x05\x00\x00\x00\x00\x00\x00\x00K\x01."
    )
    (clients / "empty.safetensors").write_bytes(b"")
    (clients / ".hidden").write_text("not a client")
    (clients / "subfolder").mkdir()
    write_client(folder, "nan", {**model(1.0), "layer.bias": torch.tensor([1.0, float("nan")])}, 5)
    write_client(folder, "shape", {**model(1.0), "layer.bias": torch.zeros(3)}, 5)
    write_client(folder, "dtype", {k: v.double() for k, v in model(1.0).items()}, 5)
    write_client(folder, "keys", {"layer.weight": torch.zeros(2, 3)}, 5)
    write_client(folder, "lie", model(1.0), 10**12)
    write_client(folder, "word", model(1.0), "many")
    write_client(folder, "silent", model(1.0), None)


REASONS = {
    "cut": "not a readable safetensors file",
    "notes.txt": "not a readable safetensors file",
    "pickle": "not a readable safetensors file",
    "empty": "not a readable safetensors file",
    "nan": "1 of 8 values are not finite",
    "shape": "layer.bias has shape (3,), expected (2,)",
    "dtype": "dtype torch.float64",
    "keys": "missing tensors: 'layer.bias'",
    "lie": "num_examples must be in 1..1000000, got 1000000000000",
    "word": "num_examples must be an integer, got 'many'",
    "silent": "num_examples is missing",
}


def test_bad_files_are_named_and_do_not_stop_it(folder, run):
    code, _ = run(defense="fedavg")
    assert code == 0
    expected = load_file(folder / "new.safetensors")
    spoil(folder)
    code, out = run(defense="fedavg")
    assert code == 0
    actual = load_file(folder / "new.safetensors")
    assert all(torch.equal(actual[name], expected[name]) for name in expected)
    report = json.loads((folder / "report.json").read_text())
    verdicts = {row["client"]: said(row) for row in report["clients"]}
    for client, reason in REASONS.items():
        assert verdicts[client].startswith("rejected: ")
        assert reason in verdicts[client]
        assert client in out.out
    assert len(verdicts) == 6 + len(REASONS)


def test_nobody_left_writes_nothing(folder, run):
    spoil(folder)
    for j in range(1, 7):
        (folder / "clients" / f"c{j}.safetensors").unlink()
    code, out = run(defense="krum")
    assert code == 2
    assert "no update was admitted: nothing was written" in out.err
    assert not (folder / "new.safetensors").exists()
    assert not (folder / "report.json").exists()


@pytest.mark.parametrize("sends", ["models", None])
def test_whole_models_are_the_default(folder, run, sends):
    for j in range(1, 7):
        write_client(folder, f"c{j}", model(10.0 + j), 1)
    code, _ = run(sends=sends)
    assert code == 0
    assert load_file(folder / "new.safetensors")["layer.weight"][0, 0] == 13.5


def test_a_minority_of_the_other_kind_is_noted(folder, run):
    for j in range(1, 7):
        write_client(folder, f"c{j}", model((10 if j > 2 else 0) + j / 10), 1)
    code, out = run(sends=None)
    assert code == 0
    assert "note: 2 of 6 files look like updates\n" in out.out
    assert "look like" not in run("--no-check-sends", sends=None)[1].out


@pytest.mark.parametrize(
    ("sends", "base", "message"),
    [
        ("updates", 10.0, "6 of 6 clients seem to send models, not updates"),
        (None, 0.0, "6 of 6 clients seem to send updates, not models"),
    ],
)
def test_files_of_the_other_kind_are_refused(folder, run, sends, base, message):
    for j in range(1, 7):
        write_client(folder, f"c{j}", model(base + j / 10), 1)
    code, out = run("--state", "state.safetensors", sends=sends)
    assert code == 2
    assert out.err.startswith(f"error: {message}")
    other = "models" if sends == "updates" else "updates"
    assert out.err.endswith(
        f"If so, say --sends {other}; if not, switch this check off: --no-check-sends\n"
    )
    assert len(out.err.strip().splitlines()) == 1
    written = {path.name for path in folder.iterdir()}
    assert written == {"g.safetensors", "clients"}
    assert run("--no-check-sends", sends=sends)[0] == 0


@pytest.mark.parametrize("hostile", [0.0, 1e-3, 10.0, 1e30])
@pytest.mark.parametrize(("sends", "base"), [("updates", 0.0), ("models", 10.0)])
def test_two_hostile_files_of_the_other_kind_do_not_stop_it(folder, run, sends, base, hostile):
    for j in range(1, 5):
        write_client(folder, f"c{j}", model(base + j / 10), 1)
    for j in (5, 6):
        write_client(folder, f"c{j}", model(hostile), 1)
    assert run(sends=sends)[0] == 0


def test_counts_for_files_that_name_none(folder, run):
    for j in range(1, 7):
        write_client(folder, f"c{j}", model(float(j)), None)
    assert run(defense="fedavg")[0] == 2
    assert run("--num-examples", "1", defense="fedavg")[0] == 0
    assert load_file(folder / "new.safetensors")["layer.weight"][0, 0] == 13.5


def test_state_goes_from_round_to_round(folder, run):
    extra = ("--state", "state.safetensors", "--set", "top_fraction=0.25")
    assert run(*extra, defense="sparsefed")[0] == 0
    defense = create("sparsefed", {"top_fraction": "0.25"})
    like = defense.init(None, torch.zeros(8))
    first = load_state(folder / "state.safetensors", like=like)
    assert (first.error != 0).sum() == 6
    assert run(*extra, defense="sparsefed")[0] == 0
    second = load_state(folder / "state.safetensors", like=like)
    assert second.error.abs().sum() > first.error.abs().sum()
    before = (folder / "state.safetensors").read_bytes()
    for changed, defense, message in (
        (("--state", "state.safetensors"), "sparsefed", "setting 'top_fraction' is 0.25 there"),
        (("--state", "state.safetensors"), "median", "its defense is 'sparsefed', this one's"),
    ):
        (folder / "new.safetensors").unlink(missing_ok=True)
        code, out = run(*changed, defense=defense)
        assert code == 2
        assert f"{folder}/state.safetensors is no state of this run: " in out.err
        assert message in out.err
        assert not (folder / "new.safetensors").exists()
        assert (folder / "state.safetensors").read_bytes() == before
    (folder / "state.safetensors").write_bytes(b"broken")
    code, out = run(*extra, defense="sparsefed")
    assert code == 2
    assert "state.safetensors is not a readable state file" in out.err


def test_buffers_are_aggregated_kept_or_refused(folder, run):
    state = {
        "bn.weight": torch.ones(2),
        "bn.running_mean": torch.zeros(2),
        "bn.num_batches_tracked": torch.tensor(7),
    }
    save_file(state, folder / "g.safetensors")
    for j in range(1, 7):
        write_client(folder, f"c{j}", {k: v + 1 for k, v in state.items()}, 1)
    code, out = run("--buffers", "refuse")
    assert code == 2
    assert "the model has 2 buffers ('bn.num_batches_tracked', 'bn.running_mean')" in out.err
    code, out = run("--no-check-sends")
    assert code == 0
    assert "note: buffers of the model: 1 are aggregated with the parameters" in out.out
    assert "1 stay as the server has them ('bn.num_batches_tracked')" in out.out
    new = load_file(folder / "new.safetensors")
    assert new["bn.running_mean"].tolist() == [1.0, 1.0]
    assert new["bn.num_batches_tracked"].item() == 7
    assert run("--no-check-sends", "--buffers", "keep")[0] == 0
    new = load_file(folder / "new.safetensors")
    assert new["bn.weight"].tolist() == [3.0, 3.0]
    assert new["bn.running_mean"].tolist() == [0.0, 0.0]
    assert new["bn.num_batches_tracked"].item() == 7
    assert run("--no-check-sends", "--buffers", "aggregate")[0] == 0
    assert load_file(folder / "new.safetensors")["bn.running_mean"].tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("arguments", "defense", "message"),
    [
        ((), "krumm", "no defense is called 'krumm', did you mean 'krum'?"),
        (("--set", "f=1"), "krum", "defense krum has no setting 'f'"),
        (("--set", "num_malicious=x"), "krum", "num_malicious must be an integer, got 'x'"),
        ((), "bulyan", "bulyan needs n >= 4f + 3, got n=6, f=1"),
        ((), "fltrust", "fltrust needs a model and clean examples on the server"),
        (("--global", "nowhere"), "median", "nowhere is not a file"),
        (("--updates", "nowhere"), "median", "nowhere is not a folder"),
        (("--global", "clients/notes.txt"), "median", "not a readable safetensors file"),
        (("--out", "no/such/new.safetensors"), "median", "no/such is not a folder"),
        (("--sends", "gradients"), "median", "sends must be one of updates, models"),
        (("--buffers", "drop"), "median", "buffers must be one of"),
        (("--max-examples", "0"), "median", "max_examples must be >= 1, got 0"),
        (("--spill-above", "-1"), "median", "spill_above must be >= 0, got -1"),
    ],
)
def test_a_users_mistake_is_one_line(folder, run, arguments, defense, message):
    (folder / "clients" / "notes.txt").write_text("hello") if "notes" in str(arguments) else None
    code, out = run(*arguments, defense=defense)
    assert code == 2
    assert message in out.err
    assert out.err.startswith("error: ")
    assert len(out.err.strip().splitlines()) == 1
    assert not (folder / "new.safetensors").exists()


def test_a_broken_global_model_is_refused(folder, run):
    save_file(
        {**model(1.0), "layer.bias": torch.tensor([1.0, float("inf")])}, folder / "g.safetensors"
    )
    code, out = run()
    assert code == 2
    assert "holds values that are not finite" in out.err


def test_a_model_without_parameters_is_one_line(folder, run):
    save_file({"steps": torch.tensor(3)}, folder / "g.safetensors")
    code, out = run()
    assert code == 2
    assert out.err == "error: the model has no parameters\n"


def test_fewer_left_than_the_rule_needs_falls_back(folder, run):
    for j in (1, 2, 3):
        write_client(folder, f"c{j}", model(float("nan")), 1)
    code, out = run(defense="krum")
    assert code == 0
    assert "krum needs n >= f + 3, got n=3, f=1: took the median" in out.out
    assert load_file(folder / "new.safetensors")["layer.weight"][0, 0] == 15.0


def test_a_composed_defense_with_settings_of_its_parts(folder, run):
    """And with a state of all of them between two calls."""
    name = "nnm+multi-krum+server-momentum"
    settings = ("--set", "nnm.num_malicious=2", "--set", "momentum=0.5")
    code, _ = run(*settings, "--state", "state.safetensors", defense=name)
    assert code == 0
    report = json.loads((folder / "report.json").read_text())
    assert report["defense"] == name
    assert report["settings"]["nnm.num_malicious"] == 2
    assert create(name, report["settings"]) == create(
        name, {"nnm.num_malicious": 2, "momentum": 0.5}
    )
    assert set(report["clients"][0]["evidence"]) == {"nnm.rows", "mixed.score", "norm"}
    first = load_file(folder / "new.safetensors")["layer.weight"]
    code, _ = run(*settings, "--state", "state.safetensors", defense=name)
    second = load_file(folder / "new.safetensors")["layer.weight"]
    assert torch.allclose(second - 10, 1.5 * (first - 10))


def test_what_it_cannot_give_is_said_before_any_file_is_read(run):
    code, out = run("--global", "nowhere", defense="clip+datadefense")
    assert code == 2
    assert out.err.strip() == (
        "error: clip+datadefense needs a model and a defense set on the server: aggregate has only "
        "files: use dd.Guard in Python, the Flower strategy, or datadefense run, see "
        "docs/defenses.md"
    )
