// The page: start every part, then choose the run that has most to show.
const runs = data.runs;
document.querySelector(".toolbar").hidden = !runs.some((run) => run.rounds.length);
const most = runs.findIndex((run) => run.detector !== null);
view.run = unpacked(runs[Math.max(0, most)]);
startView(runs);
startSummary(runs);
if (runs.some((run) => run.rounds.length)) {
  startCurves(runs);
  startWeights();
  startBands();
  startGamma();
  startGallery();
  startEvidence();
  startTheta();
  startTiming();
}
startDetails(runs);
startTheme();
chooseRun(Math.max(0, most));
