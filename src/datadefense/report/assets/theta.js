// Theta: how much each piece of evidence counts against a client, by round.
function startTheta() {
  const tints = [
    ["run-1", []],
    ["run-0", [8, 4]],
    ["run-2", [2, 3]],
    ["run-4", [10, 3, 2, 3]],
  ];
  const lines = () =>
    Object.entries(view.run.theta).map(([name, values], place) => ({
      label: spaced(name),
      values,
      tint: tints[place % 4][0],
      dash: tints[place % 4][1],
    }));
  const build = lineChart(find("theta-chart"), {
    height: 200,
    x: () => view.run.rounds,
    lines,
    range: (low, high) => [Math.min(0, low ?? 0), (high || 1) * 1.08],
    label: () =>
      `Theta by round. ${lines()
        .map((line) => `${line.label}: ${shortNumber(line.values.at(-1))} at the end.`)
        .join(" ")}`,
  });
  followers.push((run) => {
    if (!show("theta", Object.keys(run.theta).length > 0)) return;
    lineLegend("theta-legend", lines());
    build();
  });
}
