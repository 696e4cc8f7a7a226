import subprocess
import sys
from pathlib import Path

CODE = """
import sys
from multiprocessing import forkserver

from datadefense.simulation.preload import prepare_workers

prepare_workers("json")
assert "torch" not in sys.modules
server = forkserver._forkserver._forkserver_pid
assert server is not None

from tests.simulation.tiny import tiny_federation
from datadefense.simulation.pool import Pool
from datadefense.simulation.rounds import evaluate

federation = tiny_federation()
with Pool(federation, 1) as pool:
    print(evaluate(federation, pool, federation.start))
assert forkserver._forkserver._forkserver_pid == server
"""


def test_a_pool_finds_the_server_that_was_started_before_torch_was_imported():
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", CODE], cwd=root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("{'ma_percent': ")
