// Details: what was out of the ordinary, all figures of all runs, the configuration.
function startDetails(runs) {
  followers.push((run) => {
    fill("events", run.events.length ? eventList(run.events) : null);
    fill("figures", figuresTable(runs));
    find("config").textContent = run.config || "There is none.";
  });
  show("details", true);
}

function eventList(events) {
  const items = events.map(([round, text]) => make("li", {}, `Round ${round}: ${text}`));
  return make(
    "details",
    { open: events.length <= 10 },
    make("summary", {}, `Out of the ordinary (${events.length})`),
    make("ul", {}, ...items),
  );
}

function figuresTable(runs) {
  const named = runs.filter((run) => run.figures);
  if (!named.length) return make("p", {}, "There are none yet.");
  const names = Object.keys(named[0].figures);
  const value = (figure) =>
    figure === null ? "-" : typeof figure === "number" ? shortNumber(figure, 4) : String(figure);
  const heads = named.map((run) =>
    make("th", { scope: "col", class: run === view.run ? "current" : null }, run.label),
  );
  const rows = names.map((name) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, spaced(name)),
      ...named.map((run) => make("td", {}, value(run.figures[name]))),
    ),
  );
  return make(
    "table",
    {},
    make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "figure"), ...heads)),
    make("tbody", {}, ...rows),
  );
}
