"""Updates in a file: the same tensors, the same bits, little memory, nothing left behind."""

import errno
import gc
import json
import os
import subprocess
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from tests import oracles
from tests.resident_memory import IN_MEMORY

from datadefense import DEFENSES, Gate, Layout, Spill, Submission, create, defend
from datadefense.kernels import passes
from datadefense.kernels.spill import is_spilled, release
from datadefense.kernels.sums import norms, weighted_sum
from datadefense.testing import TOY_DIM, toy_round, toy_server

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="spilling needs Linux")
DATA_FREE = [name for name in DEFENSES if not name.startswith(("datadefense", "fltrust"))]


def spilled_copy(matrix, folder):
    copy = Spill(folder, 0).empty(*matrix.shape, matrix.dtype)
    copy.copy_(matrix)
    release(copy)
    return copy


def mappings(folder):
    return [line for line in Path("/proc/self/maps").read_text().splitlines() if folder in line]


def test_what_fits_stays_in_memory(tmp_path):
    assert not is_spilled(Spill(tmp_path, 24).empty(2, 3, torch.float32))
    assert is_spilled(Spill(tmp_path, 23).empty(2, 3, torch.float32))
    assert is_spilled(Spill(tmp_path, 24).empty(2, 3, torch.float64))


def test_letting_go_loses_nothing(tmp_path):
    values = torch.randn(5, 4001)
    matrix = spilled_copy(values, tmp_path)
    assert torch.equal(matrix, values)
    matrix[3, 7:10] = 1.5
    release(matrix[:, 8:])
    assert matrix[3, 7:10].tolist() == [1.5] * 3
    assert is_spilled(matrix[2, 5:].view(-1))
    assert not is_spilled(matrix + 0)


@pytest.mark.parametrize("shared", [True, False])
def test_other_tensors_are_left_alone(tmp_path, shared):
    (tmp_path / "file").write_bytes(bytes(4096))
    mapped = torch.from_file(str(tmp_path / "file"), shared=shared, size=1024)
    for tensor in (torch.empty(1024), torch.empty(1024).share_memory_(), mapped):
        tensor.fill_(2.0)
        release(tensor)
        assert not is_spilled(tensor)
        assert bool((tensor == 2).all())


def test_the_file_has_no_name_and_goes_with_its_last_tensor(tmp_path):
    matrix = Spill(tmp_path, 0).empty(3, 5000, torch.float32)
    row = matrix[1]
    assert list(tmp_path.iterdir()) == []
    del matrix
    gc.collect()
    row.fill_(3.0)
    assert mappings(str(tmp_path))
    del row
    gc.collect()
    assert not mappings(str(tmp_path))


def test_a_disk_that_is_too_small_is_an_error(tmp_path):
    with pytest.raises(OSError, match=r"need 4000000000000000 bytes, \d+ are free") as raised:
        Spill(tmp_path, 0).empty(10**9, 10**6, torch.float32)
    assert raised.value.errno == errno.ENOSPC
    assert raised.value.filename == str(tmp_path)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_so_is_one_that_fills_up_meanwhile(tmp_path, monkeypatch, number):
    def full(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("os.posix_fallocate", full)
    with pytest.raises(OSError, match=r"need 80 bytes, \d+ are free: \w+ .*") as raised:
        Spill(tmp_path, 0).empty(4, 5, torch.float32)
    assert raised.value.errno == number


@pytest.mark.slow
def test_the_place_on_the_disk_is_taken_at_once(tmp_path):
    matrix = Spill(tmp_path, 0).empty(64, 4096, torch.float32)
    (line,) = mappings(str(tmp_path))
    start, stop = line.split()[0].split("-")
    assert int(stop, 16) - int(start, 16) == matrix.nbytes
    code = (
        "import errno, resource, sys, torch\n"
        "from pathlib import Path\n"
        "from datadefense import Spill\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try: Spill(Path(sys.argv[1]), 0).empty(64, 4096, torch.float32)\n"
        "except OSError as error: sys.exit(0 if error.errno == errno.EFBIG else str(error))\n"
        "sys.exit('a file larger than allowed')"
    )
    subprocess.run([sys.executable, "-c", code, tmp_path], check=True)


def test_wrong_settings(tmp_path):
    with pytest.raises(ValueError, match="above must be >= 0, got -1"):
        Spill(tmp_path, -1)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        Spill(tmp_path / "nowhere", 0).empty(1, 1, torch.float32)


def through_the_gate(round, spill):
    layout = Layout.of_state_dict({"params": round.global_params})
    submissions = [
        Submission(client, update, int(count))
        for client, update, count in zip(
            round.client_ids, round.updates, round.num_examples, strict=True
        )
    ]
    bad = Submission("bad", torch.full_like(round.global_params, torch.nan), 3)
    return Gate(layout, spill=spill).admit(1, round.global_params, [bad, *submissions])


def leaves(value):
    """Everything in a result, in order, to be compared by its bits."""
    if isinstance(value, torch.Tensor):
        yield value.dtype, value.numpy().tobytes()
    elif is_dataclass(value):
        for field in fields(value):
            yield from leaves(getattr(value, field.name))
    elif isinstance(value, dict):
        yield tuple(value)
        yield from leaves(tuple(value.values()))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from leaves(part)
    else:
        yield value


@pytest.mark.parametrize("most_resident", [4_000, 15_000, passes.MOST_RESIDENT])
@pytest.mark.parametrize("name", DEFENSES)
def test_every_defense_gives_the_same_bits(name, most_resident, tmp_path, monkeypatch):
    monkeypatch.setattr(passes, "MOST_RESIDENT", most_resident)
    defense, server, start = create(name), toy_server(), toy_round().global_params
    kept, spilled = (defense.init(server, start) for _ in range(2))
    for seed in range(2):
        round = toy_round(seed=seed)
        plain, file = (through_the_gate(round, place) for place in (None, Spill(tmp_path, 0)))
        assert is_spilled(file.round.updates)
        assert not is_spilled(plain.round.updates)
        assert plain.rejected == file.rejected
        first = defend(defense, kept, plain, round.global_params, server)
        second = defend(defense, spilled, file, round.global_params, server)
        assert list(leaves(first)) == list(leaves(second))
        assert not is_spilled(second.params)
        kept, spilled = first.state, second.state


def hard_matrices():
    """Rows that send the kernels along every path."""
    draw = torch.Generator().manual_seed(0)
    plain = torch.randn(15, 70_001, generator=draw)
    clones = plain.clone()
    clones[4:9] = clones[2]
    near = plain.clone()
    near[5:9] = near[1] * (1 + 1e-3 * torch.rand(4, 1, generator=draw))
    nearest = plain.clone()
    nearest[5:9] = nearest[1]
    nearest[5:9, 3] += torch.tensor([1e-3, 2e-3, 3e-3, 4e-3])
    huge, tiny, far = plain.clone(), plain * 1e-30, plain.clone()
    huge[3:5] *= 1e30
    tiny[7] = 0
    far[6] *= 1e7
    return {
        "plain": plain,
        "clones": clones,
        "near": near,
        "nearest": nearest,
        "huge": huge,
        "tiny": tiny,
        "far": far,
        "double": plain.double(),
        "aligned": plain[:, :65_536].contiguous(),
    }


@pytest.mark.parametrize("case", hard_matrices())
@pytest.mark.parametrize("name", DATA_FREE)
def test_so_do_hard_matrices(name, case, tmp_path, monkeypatch):
    monkeypatch.setattr(passes, "MOST_RESIDENT", 400_000)
    updates = hard_matrices()[case]
    round = toy_round(15)
    values = (1, torch.zeros_like(updates[0]), updates, round.num_examples, round.client_ids)
    plain = type(round)(*values)
    spilled = type(round)(*values[:2], spilled_copy(updates, tmp_path), *values[3:])
    defense, server = create(name), toy_server()
    first, second = (
        defense.aggregate(defense.init(server, one.global_params), one, server)
        for one in (plain, spilled)
    )
    assert list(leaves(first)) == list(leaves(second))
    assert torch.equal(spilled.updates, updates)


@pytest.mark.slow
def test_narrow_parts_and_two_threads_are_within_rounding(tmp_path, monkeypatch):
    """BLAS may divide a narrow part between threads in another way than the whole."""
    monkeypatch.setattr(passes, "MOST_RESIDENT", 4_000_000)
    draw = torch.Generator().manual_seed(0)
    updates, weights = torch.randn(1000, 20_011, generator=draw), torch.full((1000,), 1e-3)
    spilled = spilled_copy(updates, tmp_path)
    torch.set_num_threads(2)
    try:
        plain, parts = (weighted_sum(weights, matrix) for matrix in (updates, spilled))
        assert float((plain - parts).abs().max()) <= 1e-6
        assert torch.equal(norms(updates), norms(spilled))
    finally:
        torch.set_num_threads(1)


def test_against_loops(tmp_path, monkeypatch):
    monkeypatch.setattr(passes, "MOST_RESIDENT", 4_000)
    round = toy_round(9)
    admission = through_the_gate(round, Spill(tmp_path, 0))
    rows, counts = round.updates.tolist(), round.num_examples.tolist()
    for name, expected in {
        "fedavg": oracles.mean_of(rows, counts),
        "median": oracles.median_of(rows),
        "krum": oracles.krum(rows, 1),
        "trimmed-mean": oracles.trimmed_mean_of(rows, 1),
        "bulyan": oracles.bulyan(rows, 1),
    }.items():
        result = defend(create(name), None, admission, round.global_params, toy_server())
        update = (result.params - round.global_params).tolist()
        assert update == pytest.approx(expected, abs=1e-6), name
    assert len(expected) == TOY_DIM


def test_flowers_rounds_can_be_spilled(tmp_path):
    pytest.importorskip("flwr")
    from tests.flower.fake_grid import FakeGrid, record, shifted

    from datadefense.flower import DefendedStrategy

    start = {"w": np.arange(6, dtype=np.float32).reshape(2, 3)}

    def model(spill):
        grid = FakeGrid({node: shifted(0.1 * node, count=10 * node) for node in range(1, 6)})
        strategy = DefendedStrategy("krum", wait_seconds=0, spill=spill)
        return strategy.start(grid, record(start), 2).arrays["w"].numpy()

    assert model(Spill(tmp_path, 0)).tobytes() == model(None).tobytes()
    with pytest.raises(FileNotFoundError):
        model(Spill(tmp_path / "nowhere", 0))


def test_a_part_is_the_columns_that_it_says(tmp_path, monkeypatch):
    matrix = torch.randn(7, 2001)
    copy = spilled_copy(matrix, tmp_path)
    for most in (1, 30_000, 60_000, 10**9):
        monkeypatch.setattr(passes, "MOST_RESIDENT", most)
        for width in (1, 512, 700, 5000):
            seen = 0
            for part, columns in passes.column_parts(copy, 1900, width):
                assert (part.start, columns.shape[1]) == (seen, min(width, 1900 - seen))
                assert torch.equal(columns, matrix[:, part])
                seen = part.stop
            assert seen == 1900
        assert torch.equal(torch.cat([c for _, c in passes.whole_columns(matrix)], 1), matrix)
        rows = [matrix[part] for part in passes.whole_rows(copy)]
        assert torch.equal(torch.cat(rows), matrix)
        assert torch.equal(passes.last_columns(copy, 1999), matrix[:, 1999:])


@pytest.mark.slow
def test_a_round_of_400_mb_takes_little_memory(tmp_path):
    """8 MB of the file and as much of a copy at a time; the rest is what the kernels need."""
    names = ("fedavg", "median", "krum", "datadefense", "bulyan", "rfa", IN_MEMORY)
    command = [sys.executable, "-m", "tests.resident_memory", "100", str(tmp_path), *names]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    found = {line["defense"]: line for line in map(json.loads, done.stdout.splitlines())}
    assert {name: line["matrix"] for name, line in found.items()} == dict.fromkeys(names, 400)
    assert found.pop(IN_MEMORY)["peak"] > 400
    assert {name: line["peak"] for name, line in found.items() if line["peak"] >= 120} == {}
