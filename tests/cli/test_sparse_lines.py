"""Lines for a pipe: few, and the last."""

import pytest

from datadefense.cli.sparse_lines import SparseLines


@pytest.mark.parametrize(
    ("times", "written"),
    [
        ([], []),
        ([0.0], ["0.0"]),
        ([100.0, 101.0, 102.0], ["102.0"]),
        ([0.0, 4.0, 5.0, 6.0, 9.9, 10.0, 11.0], ["5.0", "10.0", "11.0"]),
        ([0.0, 7.0, 8.0, 12.0], ["7.0", "12.0"]),
    ],
)
def test_at_most_one_line_in_five_seconds_and_the_last(times, written):
    found = []
    lines = SparseLines(found.append, iter(times).__next__)
    for time in times:
        lines.show(str(time))
    lines.close()
    lines.close()
    assert found == written
