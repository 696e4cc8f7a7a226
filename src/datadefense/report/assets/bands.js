// Bands: median and middle four fifths of gamma by round, for each part of the set.
const BAND_LINES = {
  poisoned: { label: "truly poisoned", tint: "poison", dash: [] },
  others: { label: "others", tint: "other", dash: [8, 4] },
  "known clean": { label: "known clean", tint: "clean", dash: [2, 3] },
  all: { label: "all examples", tint: "other", dash: [] },
};

function startBands() {
  const lines = () =>
    Object.entries(view.run.detector.bands).map(([name, [low, middle, high]]) => ({
      ...BAND_LINES[name],
      values: middle,
      band: [low, high],
    }));
  const build = lineChart(find("bands-chart"), {
    height: 240,
    x: () => view.run.detector.rounds,
    lines,
    range: () => [Math.min(0, view.run.detector.low) - 0.09, view.run.detector.high + 0.03],
    marks: () => view.run.attacked,
    label: () =>
      `Median of gamma by round with the range of the middle four fifths. ${gammaLabel()}`,
  });
  followers.push((run) => {
    if (!run.detector) return;
    lineLegend("bands-legend", lines());
    find("bands-legend").append(
      make("span", { class: "key" }, "line: median; band: middle four fifths"),
    );
    build();
  });
}

function gammaLabel() {
  const { count, rounds, bands } = view.run.detector;
  const middles = Object.entries(bands).map(
    ([name, [, middle]]) =>
      `Median of ${BAND_LINES[name].label} in the last round: ${shortNumber(middle.at(-1))}.`,
  );
  return `Heatmap of gamma of ${count} examples over ${rounds.length} rounds. ${middles.join(" ")}`;
}
