// Gallery: the examples themselves: what the detector flagged, missed, and accused wrongly.
const PAGE = innerWidth < 520 ? 12 : 24;
const CHOICES = [
  [
    "flagged",
    "Flagged",
    (one) => one.marked,
    "marked as suspect in the last round, highest gamma first",
  ],
  [
    "missed",
    "Missed",
    (one) => one.truth === 2 && !one.marked,
    "poisoned, but not marked in the last round, lowest gamma first",
  ],
  [
    "wrong",
    "False alarms",
    (one) => one.truth === 1 && one.marked,
    "clean, but marked in the last round, highest gamma first",
  ],
  ["known", "Known clean", (one) => one.known, "known clean, highest gamma first"],
  ["all", "All", () => true, "all examples, highest gamma first"],
];

function startGallery() {
  let chosen = "flagged";
  let shown = PAGE;
  let everything = [];

  function draw() {
    const [, , wanted, words] = CHOICES.find(([name]) => name === chosen);
    const found = everything.filter(wanted);
    if (chosen === "missed") found.reverse();
    fill("gallery-text", `${found.length} of ${everything.length} examples: ${words}.`);
    fill("gallery", ...found.slice(0, shown).map(card));
    find("more").hidden = found.length <= shown;
  }

  function choose(name) {
    chosen = name;
    shown = PAGE;
    draw();
  }

  find("more").addEventListener("click", () => {
    shown += 4 * PAGE;
    draw();
  });
  followers.push((run) => {
    if (!run.detector) return;
    const { examples } = run.detector;
    for (const id of ["gallery-heading", "gallery-choice", "gallery"]) find(id).hidden = !examples;
    find("more").hidden = true;
    if (!examples)
      return fill("gallery-text", "The examples themselves were not kept with this run.");
    everything = orderOf(run.detector, false).map((place) => exampleOf(run.detector, place));
    const known = examples.truth.some((truth) => truth === 2);
    const choices = CHOICES.filter(([name]) => known || !["missed", "wrong"].includes(name));
    if (!choices.some(([name]) => name === chosen)) chosen = "flagged";
    find("gallery").classList.toggle(
      "texts",
      examples.text.some((text) => text !== null),
    );
    fill(
      "gallery-choice",
      ...choices.map(([name, text, wanted]) => {
        const radio = make("input", {
          type: "radio",
          name: "gallery-choice",
          value: name,
          change: () => choose(name),
        });
        radio.checked = name === chosen;
        return make(
          "label",
          { class: "key" },
          radio,
          `${text} (${everything.filter(wanted).length})`,
        );
      }),
    );
    choose(chosen);
  });
}

function exampleOf({ examples, final, share, marked, rounds, count }, place) {
  return {
    place,
    id: examples.id[place],
    label: examples.label[place],
    known: examples.known[place] === 1,
    truth: examples.truth[place],
    origin: examples.origin[place],
    text: examples.text[place],
    gamma: final[place],
    share: share[place],
    marked: marked[(rounds.length - 1) * count + place] === 1,
  };
}

function card(one) {
  const bar = make("span", { class: "meter", "aria-hidden": "true" }, make("span"));
  bar.firstChild.style.width = `${100 * Math.max(0, Math.min(1, one.gamma ?? 0))}%`;
  const badge = (kind, text) => make("span", { class: `badge ${kind}` }, text);
  return make(
    "figure",
    { class: "card" },
    pictureOf(one.place, `Example ${one.id}, label ${one.label}`),
    one.text === null ? null : make("blockquote", {}, one.text || "(no words)"),
    make(
      "figcaption",
      {},
      make("span", { class: "label" }, `label ${one.label}`),
      make("span", {}, `gamma ${one.gamma == null ? "none" : one.gamma.toFixed(2)}`),
      bar,
      make("span", {}, `marked in ${one.share}\u00a0% of rounds`),
      one.truth === 2 ? badge("poisoned", "poisoned") : null,
      one.truth === 1 && one.marked ? badge("wrong", "clean") : null,
      one.known ? badge("known", "known clean") : null,
      one.origin ? make("span", { class: "origin" }, one.origin) : null,
      make("code", {}, one.id),
    ),
  );
}
