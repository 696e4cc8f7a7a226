"""Launching: hand an experiment to a SuperLink, follow its log, and say how it ended.

Without an address a SuperLink of our own is started, which simulates the nodes; it is in a process
group of its own and ends with the run. All that it starts, Ray too, listens on loopback only.
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx

from datadefense.core.errors import DataDefenseError
from datadefense.core.foreign import sanitize
from datadefense.core.settings import SettingsError
from datadefense.core.storage import write_text
from datadefense.runs.config import Experiment, write_toml

START_SECONDS = 60.0
"""How long a SuperLink of our own may take until it answers."""
CONNECTION = "datadefense"
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
LONGEST_LINE = 2000
"""Characters of a line of the log that are shown."""


class FlowerRunError(DataDefenseError, ChildProcessError):
    """A run that Flower did not bring to its end."""


@dataclass(frozen=True, slots=True)
class Deployment:
    """Where a SuperLink is and how it is spoken to.

    Args:
        address: host:port of its Control API.
        root_certificates: certificate of the authority that its own is signed by; None speaks
            without TLS.
    """

    address: str
    root_certificates: Path | None = None


def run_app(
    experiment: Experiment,
    out: Path,
    data: Path | None,
    *,
    workers: int,
    deployment: Deployment | None,
) -> Iterator[str]:
    """Run an experiment and yield the lines of its log; a run that fails raises.

    ``out`` is a folder of the machine that the ServerApp runs on.
    """
    with TemporaryDirectory(prefix="datadefense-flower-") as name:
        home = Path(name)
        app = write_app(home / "app", experiment, out, data)
        if deployment is not None:
            yield from _submit(app, home, deployment, ())
            return
        nodes = experiment.federation.clients_per_round
        simulated = (
            f"num-supernodes={nodes} client-resources-num-cpus=1 client-resources-num-gpus=0.0 "
            f"init-args-num-cpus={max(1, workers)}"
        )
        with _own_superlink(home) as own:
            yield from _submit(app, home, own, ("--federation-config", simulated))


def write_app(folder: Path, experiment: Experiment, out: Path, data: Path | None) -> Path:
    """Write the Flower app that carries an experiment out; its code is in this package."""
    package = folder / "experiment_app"
    package.mkdir(parents=True)
    values = {
        "experiment": write_toml(experiment),
        "out": str(out.absolute()),
        "data": "" if data is None else str(data.absolute()),
    }
    lines = [
        "[project]",
        'name = "datadefense-experiment"',
        'version = "1.0.0"',
        'license = "Apache-2.0"',
        'description = "An experiment of DataDefense"',
        "dependencies = []",
        "[tool.flwr.app]",
        'publisher = "datadefense"',
        "[tool.flwr.app.components]",
        'serverapp = "experiment_app.app:server_app"',
        'clientapp = "experiment_app.app:client_app"',
        "[tool.flwr.app.config]",
        *(f"{key} = {json.dumps(value)}" for key, value in values.items()),
    ]
    write_text(folder / "pyproject.toml", "\n".join(lines) + "\n")
    write_text(package / "__init__.py", '"""An experiment of DataDefense."""\n')
    write_text(
        package / "app.py",
        '"""The two ends of an experiment; see datadefense.flower.engine."""\n\n'
        "from datadefense.flower.engine import node, server\n\n"
        "client_app = node.client_app\n"
        "server_app = server.server_app\n",
    )
    return folder


def _submit(
    app: Path, home: Path, deployment: Deployment, options: tuple[str, ...]
) -> Iterator[str]:
    """Hand the app in, yield what its run logs, and raise unless it was completed."""
    _write_connection(home, deployment)
    command = [_program("flwr"), "run", str(app), CONNECTION, "--stream", *options]
    last: list[str] = []
    number = ""
    with subprocess.Popen(  # noqa: S603 - our own words, no shell
        command, env=_environment(home), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            for line in map(plain_line, process.stdout or ()):
                last = [*last[-29:], line]
                if found := re.match(r"Successfully started run (\d+)", line):
                    number = found[1]
                yield line
        finally:
            process.terminate()
    status = _status(home, number) if number else "never begun"
    if status != "finished:completed":
        raise FlowerRunError("\n".join([f"the run on Flower ended as {status}:", *last]))


def plain_line(line: str) -> str:
    """Return a line of a log, in which nodes have their say, without what a terminal obeys."""
    return sanitize(COLOURS.sub("", line.rstrip()).expandtabs(), LONGEST_LINE)


def _status(home: Path, number: str) -> str:
    """Return how a run ended: `flwr run` itself ends well either way."""
    command = [_program("flwr"), "list", CONNECTION, "--run-id", number, "--format", "json"]
    answer = subprocess.run(  # noqa: S603 - our own words, no shell
        command, env=_environment(home), capture_output=True, text=True, check=False, timeout=120
    )
    try:
        return str(json.loads(answer.stdout)["runs"][0]["status"])
    except (json.JSONDecodeError, KeyError, IndexError):
        return f"unknown ({plain_line(answer.stderr or answer.stdout):.300})"


@contextmanager
def _own_superlink(home: Path) -> Iterator[Deployment]:
    """Start a SuperLink that simulates nodes, wait until it answers, and end it in the end."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [_program("flower-superlink"), "--insecure", "--simulation"]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    command += ["--disable-runtime-dependency-installation"]
    with (home / "superlink.log").open("w", encoding="utf-8") as log:
        process = subprocess.Popen(  # noqa: S603 - our own words, no shell
            command, env=_environment(home), stdout=log, stderr=log, start_new_session=True
        )
    try:
        _wait_for_health(process, port, home / "superlink.log")
        yield Deployment(f"127.0.0.1:{port}")
    finally:
        _end_group(process)


def _wait_for_health(process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    ends = time.monotonic() + START_SECONDS
    while time.monotonic() < ends and process.poll() is None:
        try:
            if httpx.get(f"http://127.0.0.1:{port}/health", timeout=2).is_success:
                return
        except httpx.HTTPError:
            time.sleep(0.2)
    lines = log.read_text(encoding="utf-8", errors="replace")[-2000:].splitlines()
    words = "\n".join(map(plain_line, lines))
    raise FlowerRunError(f"no SuperLink within {START_SECONDS:g} s:\n{words}")


def _end_group(process: "subprocess.Popen[bytes]") -> None:
    """End a process and all that it has started."""
    for number, seconds in ((signal.SIGTERM, 20.0), (signal.SIGKILL, 5.0)):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            return
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            continue


def _write_connection(home: Path, deployment: Deployment) -> None:
    trust = (
        "insecure = true"
        if deployment.root_certificates is None
        else f"root-certificates = {json.dumps(str(deployment.root_certificates.absolute()))}"
    )
    lines = [
        "[superlink]",
        f"default = {json.dumps(CONNECTION)}",
        f"[superlink.{CONNECTION}]",
        f"address = {json.dumps(deployment.address)}",
        trust,
    ]
    write_text(home / "config.toml", "\n".join(lines) + "\n")


def _environment(home: Path) -> dict[str, str]:
    """Return what Flower's programs are told: where their home is, to be quiet, and to stay here.

    Ray listens on all interfaces unless it is told that it is no cluster, which it calls by the
    systems where that is so by default. Then it is loopback for each of its processes.
    """
    quiet = {
        "FLWR_HOME": str(home),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.2",
        "PATH": _places(),
        "COLUMNS": "200",
        "NO_COLOR": "1",
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    inherited = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
    return {**inherited, **quiet}


def _program(name: str) -> str:
    """Return the path of one of Flower's programs, beside this Python or on the path."""
    found = shutil.which(name, path=_places())
    if found is None:
        raise SettingsError(
            f"engine flower needs {name}: pip install 'datadefense[flower-simulation]'"
        )
    return found


def _places() -> str:
    """Return where programs are looked for: beside this Python first."""
    return os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
