// Curves: each score of the model by round, a chart a score and a line a run.
function startCurves(runs) {
  const on = runs.map(() => true);
  const x = [];
  for (let round = view.first; round <= view.last; round++) x.push(round);
  const spread = (run, values) => {
    const line = new Array(x.length).fill(null);
    run.rounds.forEach((round, place) => (line[round - view.first] = values[place]));
    return line;
  };
  const spreads = runs.map((run) =>
    Object.fromEntries(data.scores.map(({ name }) => [name, spread(run, run.scores[name])])),
  );
  const line = (run, place, name) => ({
    label: run.label,
    values: spreads[place][name],
    tint: runTint(place),
    dash: runDash(place),
    width: runs.length > 1 && view.run === run ? 3 : null,
    shown: on[place],
  });
  const floorLines = ({ floor: figure }) => {
    const floors = runs.map((run) => run.figures?.[figure]).filter((floor) => floor != null);
    return [...new Set(floors)].map((floor) => ({
      label: "floor",
      values: x.map(() => floor),
      tint: "ink",
      dash: [1, 4],
      width: 1.5,
    }));
  };
  const marks = () => [
    ...new Set(runs.filter((_, place) => on[place]).flatMap((run) => run.attacked)),
  ];
  const hosts = data.scores.map(({ id }) => make("div", { id: `${id}-chart` }));
  find("curve-charts").replaceChildren(...hosts);
  const charts = data.scores.map((score, place) => {
    const { name, title, unit } = score;
    const [low, high] = score.range;
    const span = high - low;
    return lineChart(hosts[place], {
      title,
      unit: ` ${unit}`,
      x: () => x,
      lines: () => [...floorLines(score), ...runs.map((run, place) => line(run, place, name))],
      range: () => [low - 0.09 * span, high + 0.03 * span],
      splits: () => [0, 0.25, 0.5, 0.75, 1].map((share) => low + share * span),
      marks,
      label: () => `${title} by round. ${runs.map((run) => ends(run, score)).join(" ")}`,
    });
  });
  const rebuild = () => charts.forEach((build) => build());
  const legend = runs.map((run, place) => line(run, place, data.scores[0].name));
  const toggle = (place) => {
    on[place] = !on[place];
    rebuild();
    return on[place];
  };
  lineLegend("curve-legend", legend, runs.length > 1 && toggle);
  const floors = data.scores.flatMap(floorLines);
  if (floors.length) find("curve-legend").append(lineKey(floors[0]));
  find("curve-legend").append(symbolKey("triangle", "attacked round"));
  followers.push(rebuild);
  show("curves", true);
}

function ends(run, { name, unit }) {
  const known = run.scores[name].filter((value) => value != null);
  if (!known.length) return `${run.label}: not evaluated yet.`;
  const shown = (value) => `${value.toFixed(1)}\u00a0${unit}`;
  const [least, greatest] = [Math.min(...known), Math.max(...known)].map(shown);
  const [first, last] = [known[0], known.at(-1)].map(shown);
  return `${run.label}: from ${first} to ${last}, between ${least} and ${greatest}.`;
}
