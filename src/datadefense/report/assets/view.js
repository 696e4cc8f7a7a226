// View: the range of rounds that all charts show, and the run that some of them are about.
const view = { first: 1, last: 1, from: 1, to: 1, run: null };
const watchers = [];
const followers = [];

function chooseRun(place) {
  view.run = unpacked(data.runs[place]);
  find("run").value = String(place);
  const radio = find(`choose-${place}`);
  if (radio) radio.checked = true;
  for (const follower of followers) follower(view.run);
  for (const watcher of watchers) watcher();
}

function setView(from, to) {
  const low = Math.max(view.first, Math.min(Math.round(Math.min(from, to)), view.last));
  const high = Math.min(view.last, Math.max(Math.round(Math.max(from, to)), view.first));
  view.from = low;
  view.to = Math.max(low, high);
  find("from").value = view.from;
  find("to").value = view.to;
  for (const watcher of watchers) watcher();
}

const resetView = () => setView(view.first, view.last);

function zoomView(factor) {
  const middle = (view.from + view.to) / 2;
  const half = ((view.to - view.from + 1) * factor) / 2;
  setView(Math.ceil(middle - half), Math.floor(middle + half));
}

// Keys that every chart obeys; true if this was one.
function zoomByKey(key) {
  if (key === "+" || key === "=") zoomView(0.5);
  else if (key === "-") zoomView(2);
  else if (key === "0" || key === "Escape") resetView();
  else return false;
  return true;
}

function startView(runs) {
  const rounds = runs.flatMap((run) => [run.rounds[0] ?? 1, run.rounds.at(-1) ?? 1]);
  view.first = Math.min(...rounds);
  view.last = Math.max(...rounds);
  for (const id of ["from", "to"]) {
    find(id).min = view.first;
    find(id).max = view.last;
    find(id).addEventListener("change", () => {
      setView(Number(find("from").value) || view.first, Number(find("to").value) || view.last);
    });
  }
  find("all").addEventListener("click", resetView);
  resetView();
}
