// Curves: attack success and main accuracy by round, a line a run.
function startCurves(runs) {
  const on = runs.map(() => true);
  const x = [];
  for (let round = view.first; round <= view.last; round++) x.push(round);
  const spread = (run, values) => {
    const line = new Array(x.length).fill(null);
    run.rounds.forEach((round, place) => (line[round - view.first] = values[place]));
    return line;
  };
  const spreads = runs.map((run) => ({ asr: spread(run, run.asr), ma: spread(run, run.ma) }));
  const line = (run, place, name) => ({
    label: run.label,
    values: spreads[place][name],
    tint: runTint(place),
    dash: runDash(place),
    width: runs.length > 1 && view.run === run ? 3 : null,
    shown: on[place],
  });
  const floors = [
    ...new Set(runs.map((run) => run.figures?.asr_floor_percent).filter((floor) => floor != null)),
  ];
  const floorLines = floors.map((floor) => ({
    label: "floor",
    values: x.map(() => floor),
    tint: "ink",
    dash: [1, 4],
    width: 1.5,
  }));
  const marks = () => [
    ...new Set(runs.filter((_, place) => on[place]).flatMap((run) => run.attacked)),
  ];
  const charts = ["asr", "ma"].map((name) => {
    const title = name === "asr" ? "Attack success rate" : "Main accuracy";
    return lineChart(find(`${name}-chart`), {
      title,
      unit: " %",
      x: () => x,
      lines: () => [
        ...(name === "asr" ? floorLines : []),
        ...runs.map((run, place) => line(run, place, name)),
      ],
      range: () => [-9, 103],
      splits: () => [0, 25, 50, 75, 100],
      marks,
      label: () => `${title} by round. ${runs.map((run) => ends(run, name)).join(" ")}`,
    });
  });
  const rebuild = () => charts.forEach((build) => build());
  const legend = runs.map((run, place) => line(run, place, "asr"));
  const toggle = (place) => {
    on[place] = !on[place];
    rebuild();
    return on[place];
  };
  lineLegend("curve-legend", legend, runs.length > 1 && toggle);
  if (floorLines.length) find("curve-legend").append(lineKey(floorLines[0]));
  find("curve-legend").append(symbolKey("triangle", "attacked round"));
  followers.push(rebuild);
  show("curves", true);
}

function ends(run, name) {
  const known = run[name].filter((value) => value != null);
  if (!known.length) return `${run.label}: not evaluated yet.`;
  const [least, greatest] = [Math.min(...known), Math.max(...known)].map(percent);
  const [first, last] = [known[0], known.at(-1)].map(percent);
  return `${run.label}: from ${first} to ${last}, between ${least} and ${greatest}.`;
}
