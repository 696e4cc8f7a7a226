// Gamma: how poisoned each example looked by round, a row an example, the highest on top.
const LANES = 3;
const LANE = 9;
const NO_GAMMA = 255;

function startGamma() {
  const state = { edges: [], order: [], grouped: false, marksOnly: false };
  const detector = () => view.run.detector;
  const redraw = canvasPlot(find("gamma-chart"), {
    height: () => TOP + BOTTOM + Math.max(160, Math.min(480, detector().count)),
    left: () => LEFT + (detector().examples ? LANES * LANE + 4 : 0),
    rounds: () => detector().rounds,
    rows: () => detector().count,
    draw: (context, area, ratio) => drawGamma(context, area, ratio, state),
    cellAt: (x, y, area) => {
      const row = Math.floor(((y - area.top) / area.height) * detector().count);
      if (row < 0 || row >= detector().count) return null;
      return { column: columnAt(state.edges, roundAt(x, area)), row };
    },
    placeOf: ({ column, row }, area) => cellPlace(state.edges, column, row, detector().count, area),
    lines: ({ column, row }) => gammaLines(column, state.order[row]),
    picture: ({ row }) => pictureOf(state.order[row]),
    label: gammaLabel,
  });
  const arrange = () => {
    state.order = orderOf(detector(), state.grouped);
    redraw();
  };
  const grouped = checkbox("Group by kind", (on) => {
    state.grouped = on;
    arrange();
  });
  const marksOnly = checkbox("Marks only", (on) => {
    state.marksOnly = on;
    redraw();
  });
  followers.push((run) => {
    if (!show("detector", run.detector !== null)) return;
    state.edges = edgesOf(run.detector.rounds);
    fill("gamma-text", gammaText(run));
    fill(
      "gamma-legend",
      rampKey("unmarked", "0", "1", "gamma"),
      rampKey("marked", "0", "1", "gamma, marked as suspect"),
      ...(run.detector.examples ? [...laneKeys(), grouped] : []),
      marksOnly,
    );
    arrange();
  });
}

const laneKeys = () => [
  symbolKey("lane poisoned", "truly poisoned"),
  symbolKey("lane other", "others"),
  symbolKey("lane known", "known clean"),
];

// Which lane an example is in: 0 truly poisoned, 1 others, 2 known clean.
function laneOf(examples, place) {
  if (examples.truth[place] === 2) return 0;
  return examples.known[place] ? 2 : 1;
}

function orderOf({ count, final, examples }, grouped) {
  const order = Array.from({ length: count }, (_, place) => place);
  const lane = (place) => (grouped && examples ? laneOf(examples, place) : 0);
  return order.sort(
    (one, other) =>
      lane(one) - lane(other) || (final[other] ?? -1) - (final[one] ?? -1) || one - other,
  );
}

function gammaText({ detector }) {
  const { count, rounds, examples } = detector;
  const lanes = examples ? "The three lanes on the left say what is known of it." : "";
  return [
    `A row is one of ${count} examples, a column a round;`,
    "the highest gamma of the last round is on top.",
    lanes,
    thinnedText(rounds),
  ].join(" ");
}

function gammaLines(column, example) {
  const { rounds, count, gamma, marked, low, high, examples, share } = view.run.detector;
  const place = column * count + example;
  const level = gamma[place];
  const value =
    level === NO_GAMMA ? "none" : (low + ((high - low) * level) / (NO_GAMMA - 1)).toFixed(2);
  const lines = [
    `Round ${rounds[column]}`,
    `gamma ${value}${marked[place] ? ", marked as suspect" : ""}`,
    `marked in ${share[example]} % of the rounds`,
  ];
  return examples
    ? [...lines, ...exampleWords(examples, example)]
    : [...lines, `example ${example + 1}`];
}

function exampleWords(examples, place) {
  const truth = ["", "truly clean", "truly poisoned"][examples.truth[place]];
  const known = examples.known[place] ? "known clean" : "";
  const text = examples.text[place];
  return [
    `label ${examples.label[place]}`,
    known,
    truth,
    examples.origin[place],
    text ? `"${text}"` : "",
    `example ${examples.id[place]}`,
  ].filter(Boolean);
}

function pictureOf(example, alternative = "") {
  const picture = view.run.detector.examples?.picture[example];
  if (picture == null) return null;
  return make("img", { src: `data:image/png;base64,${data.pictures[picture]}`, alt: alternative });
}

function drawGamma(context, area, ratio, { edges, order, marksOnly }) {
  const { count, gamma, marked, examples } = view.run.detector;
  const [unmarked, suspect] = [rampOf("unmarked"), rampOf("marked")];
  const [nothing, plain, full] = [
    pixel(colour("paper")),
    pixel(colour("none")),
    pixel(colour("ink")),
  ];
  drawMatrix(context, area, ratio, {
    edges,
    rows: count,
    colourOf: (column, row) => {
      const place = column * count + order[row];
      if (gamma[place] === NO_GAMMA) return nothing;
      if (marksOnly) return marked[place] ? full : plain;
      return (marked[place] ? suspect : unmarked)[gamma[place]];
    },
    preferred: (_, high) => high,
  });
  if (examples) drawLanes(context, area, order, examples);
  context.fillStyle = colour("faint");
  context.textAlign = "right";
  context.textBaseline = "top";
  const left = area.left - (examples ? LANES * LANE + 10 : 6);
  context.fillText("highest", left, area.top);
  context.textBaseline = "bottom";
  context.fillText("lowest", left, area.top + area.height);
}

function drawLanes(context, area, order, examples) {
  const height = area.height / order.length;
  const tints = ["poison", "other", "clean"].map(colour);
  order.forEach((example, row) => {
    const lane = laneOf(examples, example);
    context.fillStyle = tints[lane];
    context.fillRect(
      area.left - (LANES - lane) * LANE - 3,
      area.top + row * height,
      LANE - 2,
      Math.max(1, height),
    );
  });
}
