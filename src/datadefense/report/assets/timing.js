// Timing: seconds a round of the selected run, by part.
function startTiming() {
  const parts = [
    ["training", "run-1", [], false],
    ["attack", "run-0", [2, 3], true],
    ["defense", "run-2", [8, 4], false],
    ["evaluation", "run-4", [10, 3, 2, 3], true],
  ];
  const on = parts.map(() => true);
  const lines = () =>
    parts.map(([name, tint, dash, apart], place) => ({
      label: name,
      values: view.run.seconds[name].map((time) => time || null),
      tint,
      dash,
      apart,
      shown: on[place],
    }));
  const build = lineChart(find("timing-chart"), {
    unit: " s",
    height: 220,
    x: () => view.run.rounds,
    lines,
    range: (_, high) => [0, (high || 1) * 1.08],
    label: () => `Seconds a round by part. ${parts.map(([name]) => meanOf(name)).join(" ")}`,
  });
  followers.push(() => {
    if (!show("timing", view.run.rounds.length > 0)) return;
    lineLegend("timing-legend", lines(), (place) => {
      on[place] = !on[place];
      build();
      return on[place];
    });
    build();
  });
}

function meanOf(part) {
  return `${part}: mean ${shortNumber(view.run.figures?.[`seconds_${part}`])} seconds.`;
}
