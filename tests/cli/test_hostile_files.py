"""Files made to hurt: what a client can do to the server that reads its folder."""

import json
import os

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.cli.test_aggregate import folder, model, run, write_client

from datadefense import Gate, Layout
from datadefense.files import FileError, payload, read_submissions, read_tensors

__all__ = ["folder", "run"]


def test_a_file_cut_while_it_is_read_is_only_a_bad_file(folder):
    """A mapped file that shrinks kills the process with SIGBUS: files are read, not mapped."""
    whole = read_tensors(folder / "g.safetensors")
    layout = Layout.of_state_dict(whole.tensors)
    submissions = read_submissions(folder / "clients", whole, layout)
    first = next(submissions)
    for path in (folder / "clients").iterdir():
        os.truncate(path, 20)
    admission = Gate(layout).admit(1, torch.zeros(8), [first, *submissions])
    assert admission.round.client_ids == ("c1",)
    assert len(admission.rejected) == 5


def test_the_order_of_tensors_is_the_files(tmp_path):
    """Read again and again: a hash table's order would scramble vectors and states."""
    names = [f"layer-{j}" for j in range(40)]
    save_file({name: torch.full((2,), float(j)) for j, name in enumerate(names)}, tmp_path / "m")
    orders = {tuple(read_tensors(tmp_path / "m").tensors) for _ in range(10)}
    assert len(orders) == 1


def test_oversized_files_and_headers_are_not_read(folder):
    whole = read_tensors(folder / "g.safetensors")
    path = folder / "clients" / "big.safetensors"
    with path.open("wb") as file:
        file.truncate(10**12)
    with pytest.raises(FileError, match="file has 1000000000000 bytes, expected <= 1000"):
        read_tensors(path, 1000)
    path.write_bytes((5_000_000).to_bytes(8, "little") + b" " * 5_000_000)
    with pytest.raises(FileError, match="header of 5000000 bytes, expected <= 1000"):
        read_tensors(path, None, 1000)
    assert payload(Layout.of_state_dict(whole.tensors)) == 32


def test_a_reason_cannot_command_the_terminal_or_forge_the_log(folder, run, datadefense_log):
    header = json.dumps(
        {
            "x": {
                "dtype": "\x1b[2JF32\nround 1: client 'c1' rejected: forged",
                "shape": [1],
                "data_offsets": [0, 4],
            }
        }
    ).encode()
    evil = folder / "clients" / "evil.safetensors"
    evil.write_bytes(len(header).to_bytes(8, "little") + header + b"0000")
    code, out = run()
    assert code == 0
    assert "\x1b[2J" not in out.out
    assert len(datadefense_log.text.strip().splitlines()) == 1
    verdict = json.loads((folder / "report.json").read_text())["clients"][-1]["verdict"]
    assert len(verdict) < 300
    assert "\n" not in verdict


def test_empty_junk_costs_no_memory(folder, run, monkeypatch):
    for j in range(200):
        (folder / "clients" / f"junk-{j}").write_bytes(b"")
    sizes = []
    original = torch.empty

    def spy(*shape, **options):
        sizes.append(shape)
        return original(*shape, **options)

    monkeypatch.setattr(torch, "empty", spy)
    code, _ = run()
    assert code == 0
    assert (7, 8) in sizes


def test_half_precision_that_overflows_is_held(folder, run):
    halves = {name: tensor.half() for name, tensor in model(60_000.0).items()}
    save_file(halves, folder / "g.safetensors")
    for j in range(1, 7):
        write_client(folder, f"c{j}", halves, 1)
    code, out = run(defense="fedavg")
    assert code == 1
    assert "the aggregate is not finite" in out.err
    assert not (folder / "new.safetensors").exists()


def test_a_state_of_another_model_is_refused(folder, run):
    assert run("--state", "state", defense="sparsefed")[0] == 0
    smaller = {"layer.weight": torch.ones(1, 1)}
    save_file(smaller, folder / "g.safetensors")
    for j in range(1, 7):
        write_client(folder, f"c{j}", smaller, 1)
    code, out = run("--state", "state", defense="sparsefed")
    assert code == 2
    assert "expected torch.float32 (1,)" in out.err


def test_results_have_places_of_their_own(folder, run):
    code, out = run("--report", "new.safetensors")
    assert code == 2
    assert "must be different files" in out.err
    code, out = run("--report", "clients")
    assert code == 2
    assert "clients is a folder" in out.err
    assert not (folder / "new.safetensors").exists()


def test_noise_is_new_each_time_unless_a_seed_is_given(folder, run):
    noises = []
    for extra in ((), (), ("--seed", "3"), ("--seed", "3")):
        assert run(*extra, defense="weak-dp")[0] == 0
        noises.append(load_file(folder / "new.safetensors")["layer.weight"])
    assert not torch.equal(noises[0], noises[1])
    assert torch.equal(noises[2], noises[3])


def test_a_buffer_by_name(folder, run):
    code, _ = run("--buffers", "keep", "--buffer-name", "layer.bias")
    assert code == 0
    assert torch.equal(load_file(folder / "new.safetensors")["layer.bias"], torch.full((2,), -10.0))
