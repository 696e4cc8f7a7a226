// Summary: notes, the table of all runs with the selected one, and the selected one's main figures.
function startSummary(runs) {
  if (runs.length > 1) {
    const hint = make(
      "p",
      { class: "hint" },
      "Choose a run to see it below. Means over the last 10 evaluated rounds.",
    );
    fill(
      "comparison",
      hint,
      make(
        "div",
        { class: "scroll", tabindex: "0", role: "region", "aria-label": "The runs compared" },
        comparison(runs),
      ),
    );
    fill("run", ...runs.map((run, place) => make("option", { value: String(place) }, run.label)));
    find("run").addEventListener("change", () => chooseRun(Number(find("run").value)));
    show("chosen", true);
  }
  followers.push(showRun);
}

function comparison(runs) {
  const heads = data.headings.map((heading) => make("th", { scope: "col" }, heading));
  const rows = runs.map((run, place) => {
    const radio = make("input", {
      type: "radio",
      name: "chosen-run",
      id: `choose-${place}`,
      change: () => chooseRun(place),
    });
    const [label, ...cells] = run.cells;
    const name = make(
      "th",
      { scope: "row" },
      make("label", { for: `choose-${place}` }, radio, signOf(run), label),
    );
    const values = cells.map((cell) => make("td", {}, cell || "-"));
    return make("tr", { class: outcomeClass(run), click: () => chooseRun(place) }, name, ...values);
  });
  return make(
    "table",
    { class: "comparison" },
    make("thead", {}, make("tr", {}, ...heads)),
    make("tbody", {}, ...rows),
  );
}

function signOf(run) {
  const signs = { "kept out": "\u2713", damaged: "!", partly: "~", "got in": "\u2717", unclear: "?" };
  const sign = signs[run.outcome] ?? "";
  return make(
    "span",
    { class: "sign", title: run.outcome, role: "img", "aria-label": run.outcome },
    sign,
  );
}

const outcomeClass = (run) => run.outcome.replaceAll(" ", "-");

function showRun(run) {
  find("verdict").className = data.runs.length > 1 ? "verdict" : `verdict ${outcomeClass(run)}`;
  fill("notes", ...run.notes.map((note) => make("p", { class: "note" }, note)));
  fill("tiles", ...tiles(run));
}

function tiles(run) {
  const { figures } = run;
  if (data.runs.length > 1) {
    const own = make(
      "p",
      { class: `verdict ${outcomeClass(run)}` },
      make("strong", {}, `${run.label}: `),
      run.verdict,
    );
    return figures ? [own, ...tilesOf(run)] : [own];
  }
  return figures ? tilesOf(run) : [];
}

function tilesOf({ figures }) {
  const tile = (name, value, more) =>
    make(
      "div",
      { class: "tile" },
      make("span", { class: "name" }, name),
      make("span", { class: "value" }, value),
      make("span", { class: "more" }, more),
    );
  const {
    calm_ma_percent: calm,
    attacker_weight_mean: weight,
    honest_excluded_percent: excluded,
    detector_hits_percent: hits,
    evasion_budget: budget,
  } = figures;
  return [
    tile(
      "Attack success",
      percent(figures.asr_percent),
      `floor ${percent(figures.asr_floor_percent)}, peak ${percent(figures.peak_asr_percent)}`,
    ),
    tile(
      "Main accuracy",
      percent(figures.ma_percent),
      calm == null
        ? `at the end ${percent(figures.final_ma_percent)}`
        : `without any attack ${percent(calm)}`,
    ),
    weight == null
      ? null
      : tile("Attackers' weight", weight.toFixed(3), "mean share of the new model"),
    excluded == null
      ? null
      : tile("Honest clients shut out", percent(excluded), "lost all weight in a round"),
    hits == null
      ? null
      : tile("Poison found", percent(hits), "of the poisoned examples were marked"),
    budget == null
      ? null
      : tile("Evasion budget", shortNumber(budget), "largest step that got through"),
    tile("Time", `${shortNumber(figures.seconds_per_round)} s`, "a round"),
  ].filter(Boolean);
}
