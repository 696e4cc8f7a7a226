"""Files made to hurt: what a client can do to the server that reads its folder."""

import json
import os
import stat
import struct

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.cli.test_aggregate import folder, model, run, said, write_client

from datadefense import Gate, Layout
from datadefense.cli import aggregate
from datadefense.core import round_files as files
from datadefense.core.round_files import (
    FileError,
    client_files,
    payload,
    read_submissions,
    read_tensors,
)
from datadefense.kernels.memory import peak_memory_mb

__all__ = ["folder", "run"]


def test_a_file_cut_while_it_is_read_is_only_a_bad_file(folder):
    """A mapped file that shrinks kills the process with SIGBUS: files are read, not mapped."""
    whole = read_tensors(folder / "g.safetensors")
    layout = Layout.of_state_dict(whole.tensors)
    submissions = read_submissions(client_files(folder / "clients"), whole, layout)
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
    verdict = said(json.loads((folder / "report.json").read_text())["clients"][-1])
    assert len(verdict) < 300
    assert "\n" not in verdict


def file_of(header, data=bytes(32)):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


ENTRY = {"dtype": "F32", "shape": [8], "data_offsets": [0, 32]}
HEADERS = {
    "metadata null": {"__metadata__": None, "w": ENTRY},
    "metadata list": {"__metadata__": [], "w": ENTRY},
    "metadata of numbers": {"__metadata__": {"num_examples": 5}, "w": ENTRY},
    "metadata of null": {"__metadata__": {"num_examples": None}, "w": ENTRY},
    "nested": b"[" * 100_000,
    "nested entry": b'{"w":' * 50_000,
    "twice": b'{"w":{"dtype":"F32","shape":[8],"data_offsets":[0,32]},"w":{}}',
    "list": [],
    "null": None,
    "huge number": b'{"w":{"dtype":"F32","shape":[' + b"9" * 5000 + b'],"data_offsets":[0,32]}}',
    "not utf-8": b"\xff\xfe",
}


@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS)
def test_no_header_ends_the_round_of_the_others(folder, run, header):
    (folder / "clients" / "evil.safetensors").write_bytes(file_of(header))
    code, _ = run("--num-examples", "1")
    assert code == 0
    rows = admitted_first(folder)
    assert [row["client"] for row in rows] == ["c1", "c2", "c3", "c4", "c5", "c6", "evil"]
    assert said(rows[-1]).startswith("rejected: evil.safetensors is not a readable")


class UnheardOfError(Exception):
    def __str__(self):
        raise RuntimeError("not even this can be told")


def test_an_error_that_nobody_foresaw_is_a_rejection(folder, run, monkeypatch):
    original = files.parse

    def parse(content):
        if b"evil" in content:
            raise UnheardOfError
        return original(content)

    write_client(folder, "evil", {"evil": torch.zeros(8)}, 1)
    monkeypatch.setattr(files, "parse", parse)
    assert run()[0] == 0
    last = json.loads((folder / "report.json").read_text())["clients"][-1]
    assert said(last).endswith("not a readable safetensors file: UnheardOfError")


def test_a_file_that_goes_after_the_listing_is_its_clients_loss(folder, run, monkeypatch):
    original = aggregate.client_files

    def listed(path):
        found = original(path)
        (path / "c2.safetensors").unlink()
        with (path / "c3.safetensors").open("ab") as file:
            file.truncate(10**12)
        return found

    monkeypatch.setattr(aggregate, "client_files", listed)
    assert run()[0] == 0
    rows = admitted_first(folder)
    verdicts = {row["client"]: said(row) for row in rows}
    assert verdicts["c2"] == "rejected: clients/c2.safetensors is not a file"
    assert "file has 1000000000000 bytes, expected <= " in verdicts["c3"]
    assert [name for name in verdicts if not verdicts[name].startswith("rejected")] == [
        "c1",
        "c4",
        "c5",
        "c6",
    ]


def test_who_grows_or_comes_after_the_listing_takes_nobodys_place(folder, run, monkeypatch):
    """Places are counted by the listing: an attacker's later files come first by name."""
    for j in range(6):
        (folder / "clients" / f"a{j}.safetensors").write_bytes(b"")
    original = aggregate.client_files

    def listed(path):
        found = original(path)
        for j in range(12):
            write_client(folder, f"a{j}", model(1e6), 1)
        return found

    monkeypatch.setattr(aggregate, "client_files", listed)
    assert run(defense="fedavg")[0] == 0
    rows = admitted_first(folder)
    assert [row["client"] for row in rows[:6]] == ["c1", "c2", "c3", "c4", "c5", "c6"]
    assert all("had 0 when listed" in said(row) for row in rows[6:])


def test_entries_that_are_no_plain_files(folder, run):
    clients = folder / "clients"
    os.mkfifo(clients / "pipe")
    (clients / "device").symlink_to("/dev/zero")
    (clients / "loop").symlink_to("loop")
    (clients / "long").symlink_to("x" * 300)
    (clients / "broken").symlink_to("nowhere")
    (clients / "outside").symlink_to(folder)
    (clients / "evil\x1b[2J\n.safetensors").write_bytes(b"")
    (clients / "evil\udcff").write_bytes(b"")
    code, out = run()
    assert code == 0
    assert "\x1b[2J" not in out.out
    rows = admitted_first(folder)
    assert [row["client"] for row in rows[:6]] == ["c1", "c2", "c3", "c4", "c5", "c6"]
    assert len(rows) == 6 + 8
    assert all(said(row).startswith("rejected: ") for row in rows[6:])
    assert all(row["client"].isprintable() for row in rows)


def test_an_id_in_the_report_is_fit_to_be_shown(folder, run):
    """A whole and good model under a name that a terminal would obey."""
    good = (folder / "clients" / "c1.safetensors").read_bytes()
    (folder / "clients" / "c1\x1b[2J.safetensors").write_bytes(good)
    assert run()[0] == 0
    report = json.loads((folder / "report.json").read_text())
    assert len(report["clients"]) == 7
    for row in report["clients"]:
        assert row["client"].isprintable()


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


def test_thousands_of_sparse_files_end_nobodys_round(folder, run):
    """Whole files by their size, 10 GB of them, of which the first eight bytes are read."""
    wide = {"w": torch.zeros(10**6)}
    save_file(wide, folder / "g.safetensors")
    for j in range(1, 7):
        write_client(folder, f"c{j}", {"w": torch.full((10**6,), float(j))}, 1)
    for j in range(2_500):
        with (folder / "clients" / f"a{j}").open("wb") as file:
            file.truncate(4 * 10**6 + 200)
    before = peak_memory_mb("self")
    assert run()[0] == 0
    assert peak_memory_mb("self") < before + 500
    rows = admitted_first(folder)
    assert [row["client"] for row in rows[:6]] == ["c1", "c2", "c3", "c4", "c5", "c6"]
    assert len(rows) == 2_506
    assert "header of 0 bytes in a file of 4000200" in said(rows[-1])


def test_a_file_under_many_names_counts_once_and_for_its_owner(folder, run):
    """Names that come before the owner's, too."""
    clients = folder / "clients"
    for j in range(1000):
        (clients / f"a{j}").symlink_to("c3.safetensors")
    os.link(clients / "c4.safetensors", clients / "d")
    assert run(defense="fedavg")[0] == 0
    rows = admitted_first(folder)
    assert [row["client"] for row in rows[:6]] == ["c1", "c2", "c3", "c4", "c5", "c6"]
    assert len(rows) == 6 + 1001
    reasons = {row["client"]: said(row) for row in rows[6:]}
    assert reasons["a0"] == "rejected: a0 is the same file as c3.safetensors"
    assert reasons["d"] == "rejected: d is the same file as c4.safetensors"


def test_a_name_is_shown_as_it_is(folder, run):
    """No emoji and no markup: a client cannot look like another, or end the command."""
    for name in (":skull:", "[red]c1[/red]", "[/nothing]"):
        write_client(folder, name.replace("/", "|"), model(1.0), 1)
        (folder / "clients" / f"{name.replace('/', '|')}-broken").write_bytes(b"")
    code, out = run()
    assert code == 0
    for name in (":skull:", "[red]c1[|red]", "[|nothing]", ":skull:-broken"):
        assert name in out.out


def test_a_round_has_a_most_of_clients(folder, run):
    (folder / "clients" / "a-broken").write_bytes(bytes(100))
    code, _ = run("--max-clients", "4")
    assert code == 0
    rows = admitted_first(folder)
    assert [row["client"] for row in rows[:4]] == ["c1", "c2", "c3", "c4"]
    assert said(rows[-1]) == "rejected: round is full: expected at most 4 updates"
    code, out = run("--max-clients", "0")
    assert code == 2
    assert "max_clients must be >= 1, got 0" in out.err


def test_half_precision_that_overflows_is_held(folder, run):
    halves = {name: tensor.half() for name, tensor in model(60_000.0).items()}
    save_file(halves, folder / "g.safetensors")
    for j in range(1, 7):
        write_client(folder, f"c{j}", halves, 1)
    code, out = run("--no-check-sends", defense="fedavg")
    assert code == 2
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
    assert "tensor 'layer.weight' is float32 [2, 3] there, float32 [1, 1] here" in out.err


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


def test_a_drawn_seed_is_in_no_report(folder, run, monkeypatch):
    drawn = 1234567890123456789
    monkeypatch.setattr("secrets.randbits", lambda bits: drawn)
    assert run("--state", "state", defense="weak-dp")[0] == 0
    noisy = load_file(folder / "new.safetensors")["layer.weight"]
    written = [path for path in folder.iterdir() if path.is_file()]
    assert not any(str(drawn).encode() in path.read_bytes() for path in written)
    assert json.loads((folder / "report.json").read_text())["seed"] is None
    assert run("--seed", str(drawn), defense="weak-dp")[0] == 0
    assert json.loads((folder / "report.json").read_text())["seed"] == drawn
    assert torch.equal(load_file(folder / "new.safetensors")["layer.weight"], noisy)


def test_a_state_is_for_its_owner_alone(folder, run):
    before = os.umask(0)
    try:
        assert run("--state", "state", defense="sparsefed")[0] == 0
    finally:
        os.umask(before)
    assert stat.S_IMODE((folder / "state").stat().st_mode) == 0o600
    assert stat.S_IMODE((folder / "new.safetensors").stat().st_mode) == 0o666


def test_the_same_round_writes_the_same_bytes(folder, run):
    metadata = {f"key-{j}": str(j) for j in range(20)}
    save_file(model(10.0), folder / "g.safetensors", metadata)
    written = set()
    for _ in range(3):
        assert run("--state", "state", "--set", "top_fraction=0.25", defense="sparsefed")[0] == 0
        names = ("new.safetensors", "state", "report.json")
        written.add(tuple((folder / name).read_bytes() for name in names))
        (folder / "state").unlink()
    assert len(written) == 1


def test_a_report_is_strict_json(folder, run):
    for j in range(1, 7):
        write_client(folder, f"c{j}", model((-1.0) ** j * 3e38), 1)

    def refuse(text):
        raise AssertionError(f"{text} is not JSON")

    for defense in ("median", "krum", "ndc", "rfa"):
        run(defense=defense)
        json.loads((folder / "report.json").read_text(), parse_constant=refuse)


def test_a_buffer_by_name(folder, run):
    code, _ = run("--buffers", "keep", "--buffer-name", "layer.bias")
    assert code == 0
    assert torch.equal(load_file(folder / "new.safetensors")["layer.bias"], torch.full((2,), -10.0))


def admitted_first(folder):
    """The report's rows, in the order of the files, but with those that were rejected last."""
    rows = json.loads((folder / "report.json").read_text())["clients"]
    return sorted(rows, key=lambda row: row["verdict"] == "rejected")
