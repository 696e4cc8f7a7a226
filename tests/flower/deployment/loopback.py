"""SuperLinks and SuperNodes on loopback: started on free ports, and gone afterwards.

Each server leads a process group of its own. Flower detaches some of their children from it, so at
the end whatever still runs with this deployment's FLWR_HOME is ended too, by its number. Every wait
has a limit; what a server said is in its log.
"""

import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path

APP = Path(__file__).parents[3] / "examples" / "flower-app"
BIN = Path(sys.executable).parent
PATIENCE = 300
"""Seconds after which something that takes a few is taken to hang: the machine may be busy."""
HERE = "here"
"""Name of the connection."""


def until(condition, what, seconds=PATIENCE):
    """Return the first true answer of ``condition``; fail when the time is over."""
    ends = time.monotonic() + seconds
    while not (answer := condition()):
        if time.monotonic() >= ends:
            raise TimeoutError(f"not within {seconds} s: {what}")
        time.sleep(0.1)
    return answer


def free_port():
    """Return a port that nobody listens on just now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@dataclass
class Server:
    """A process that leads its own group, and its log."""

    process: subprocess.Popen
    log: Path

    def said(self):
        return self.log.read_text(errors="replace")

    def waits_for(self, pattern):
        """Return what matches in the log, or the end of the process if that comes first."""

        def found():
            ended = self.process.poll() is not None  # asked first: all that it said is then there
            return re.search(pattern, self.said()) or ended

        answer = until(found, f"{pattern!r} in {self.log}:\n{self.said()[-2000:]}")
        return None if answer is True else answer

    def signal(self, number):
        """Send a signal to the whole group."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def ends(self):
        """Ask the group to end; where it does not, end it."""
        if self.process.poll() is None:
            self.signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(60)
        self.signal(signal.SIGKILL)
        self.process.wait(60)


@dataclass
class Outcome:
    """What a run came to."""

    status: str
    details: str
    log: str
    folder: Path

    @property
    def rounds(self):
        """MA and ASR by round."""
        found = json.loads((self.folder / "result.json").read_text())
        return {int(index): values for index, values in found.items()}

    @property
    def trail(self):
        """The lines of the audit trail."""
        return [json.loads(one) for one in (self.folder / "audit.jsonl").read_text().splitlines()]


@dataclass(frozen=True)
class Tls:
    """A folder of `certificates.py`."""

    folder: Path

    def for_superlink(self):
        files = {"certfile": "server.crt", "keyfile": "server.key", "ca-certfile": "ca.crt"}
        given = [(f"--ssl-{option}", str(self.folder / name)) for option, name in files.items()]
        return [*(word for pair in given for word in pair), "--enable-supernode-auth"]

    def for_supernode(self, key):
        ca = str(self.folder / "ca.crt")
        key = str(self.folder / key)
        return ["--root-certificates", ca, "--auth-supernode-private-key", key]


class Loopback:
    """One SuperLink with its SuperNodes, and `flwr` to talk to it."""

    def __init__(self, folder, *, tls=None, simulation=False):
        self.folder, self.tls, self.runs = folder, tls, 0
        self.home = folder / "home"
        self.home.mkdir(parents=True)
        self.env = os.environ | {
            "FLWR_HOME": str(self.home),
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
            "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.2",
            "RAY_USAGE_STATS_ENABLED": "0",
            "OMP_NUM_THREADS": "1",
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        }
        self.nodes = {}
        self.stack = ExitStack()
        self.superlink = self._superlink(simulation)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _superlink(self, simulation):
        words = ["--insecure"] if self.tls is None else self.tls.for_superlink()
        words += ["--simulation"] * simulation + ["--disable-runtime-dependency-installation"]
        for attempt in range(3):  # a port that was free may be taken by now
            self.port = free_port()
            place = ["--host", "127.0.0.1", "--port", str(self.port)]
            server = self._start(f"superlink-{attempt}", "flower-superlink", *words, *place)
            until(lambda s=server: s.process.poll() is not None or self._healthy(), server.log)
            if server.process.poll() is None:
                break
        else:
            raise RuntimeError(f"no SuperLink: {server.said()}")
        trust = "insecure = true"
        if self.tls is not None:
            trust = f'root-certificates = "{self.tls.folder / "ca.crt"}"'
        (self.home / "config.toml").write_text(
            f'[superlink]\ndefault = "{HERE}"\n\n'
            f'[superlink.{HERE}]\naddress = "127.0.0.1:{self.port}"\n{trust}\n'
        )
        return server

    def _healthy(self):
        if self.tls is None:
            one = HTTPConnection("127.0.0.1", self.port, timeout=5)
        else:
            trust = ssl.create_default_context(cafile=self.tls.folder / "ca.crt")
            one = HTTPSConnection("127.0.0.1", self.port, timeout=5, context=trust)
        try:
            one.request("GET", "/health")
            return one.getresponse().status == 200
        except OSError:
            return False
        finally:
            one.close()

    def nodes_there(self, *partitions, of=3):
        """Start the SuperNodes that do not run; return all ids, None for one not let in."""
        begun = [one for one in partitions if not self._runs(one)]
        for one in begun:
            self._supernode(one, of)
        ids = {one: self._joined(self.nodes[one]) for one in partitions}
        taken = [one for one in begun if "address already in use" in self.nodes[one].said()]
        return ids if not taken else self.nodes_there(*partitions, of=of)

    def _runs(self, partition):
        return partition in self.nodes and self.nodes[partition].process.poll() is None

    def _supernode(self, partition, of):
        words = ["--insecure"] if self.tls is None else self.tls.for_supernode(f"node{partition}")
        place = ["--superlink", f"127.0.0.1:{self.port}", "--host", "127.0.0.1"]
        place += ["--port", str(free_port())]
        place += ["--node-config", f"partition-id={partition} num-partitions={of}"]
        name = f"supernode-{partition}-{time.monotonic_ns()}"
        self.nodes[partition] = self._start(name, "flower-supernode", *words, *place)

    @staticmethod
    def _joined(server):
        found = server.waits_for(r"SuperNode ID: (\d+)")
        return None if found is None else int(found[1])

    def _start(self, name, command, *words):
        log = self.folder / f"{name}.log"
        with log.open("w") as out:
            process = subprocess.Popen(
                [BIN / command, *words],
                cwd=self.folder,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        server = Server(process, log)
        self.stack.callback(server.ends)
        return server

    def flwr(self, *words):
        """Run a command of flwr to its end and return what it printed."""
        done = subprocess.run(
            [BIN / "flwr", *words],
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def begin(self, out, *words, app=APP, **config):
        """Start a run whose log is followed; return that, to be handed to `finish`."""
        self.runs += 1
        given = {key.replace("_", "-"): value for key, value in config.items()}
        given["out"] = str(self.folder / out)
        text = " ".join(f"{key}={_toml(value)}" for key, value in given.items())
        run = ["run", str(app), HERE, "--stream", "-c", text, *words]
        return self._start(f"run-{self.runs}-{out}", "flwr", *run), self.folder / out

    def finish(self, begun):
        """Wait for a run's end and return what it came to."""
        server, folder = begun
        server.process.wait(PATIENCE)
        number = re.search(r"Successfully started run (\d+)", server.said())
        assert number is not None, server.said()
        text = self.flwr("list", HERE, "--run-id", number[1], "--format", "json")
        run = json.loads(text[text.index("{") :])["runs"][0]
        return Outcome(run["status"], run["status-details"], server.said(), folder)

    def run(self, out, *words, **config):
        """Run the app to its end."""
        return self.finish(self.begin(out, *words, **config))

    def processes(self, name=""):
        """Return the numbers of this deployment's processes whose command names ``name``."""
        mark = f"FLWR_HOME={self.home}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    mine = mark in (entry / "environ").read_bytes().split(b"\0")
                    words = (entry / "cmdline").read_bytes().decode(errors="replace")
                except OSError:  # it is gone, or not ours to look at
                    continue
                if mine and name in words:
                    found.append(int(entry.name))
        return found

    def close(self):
        """End everything, and say so if something would not end."""
        try:
            self.stack.close()
        finally:
            ends = (
                time.monotonic() + 10
            )  # detached children watch their parent and end by themselves
            while (left := self.processes()) and time.monotonic() < ends:
                time.sleep(0.1)
            for one in left:
                with suppress(ProcessLookupError):
                    os.kill(one, signal.SIGKILL)
            until(lambda: not self.processes(), f"the end of {left}", 60)


def _toml(value):
    return f"'{value}'" if isinstance(value, str) else str(value).lower()
