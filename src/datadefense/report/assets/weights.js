// Weights: who counted how much, a cell a client and round; attackers on top, outlined, and a
// triangle above their round.
function startWeights() {
  const state = { edges: [], most: 1 };
  const at = (column, row) => column * view.run.clients.width + row;
  const redraw = canvasPlot(find("weights-chart"), {
    height: () => TOP + BOTTOM + rowsHeight(view.run.clients.width),
    rounds: () => view.run.clients.rounds,
    rows: () => view.run.clients.width,
    draw: (context, area, ratio) => drawWeights(context, area, ratio, state),
    cellAt: (x, y, area) => {
      const { width, verdict } = view.run.clients;
      const column = columnAt(state.edges, roundAt(x, area));
      const row = Math.floor(((y - area.top) / area.height) * width);
      return row >= 0 && row < width && verdict[at(column, row)] ? { column, row } : null;
    },
    placeOf: ({ column, row }, area) =>
      cellPlace(state.edges, column, row, view.run.clients.width, area),
    lines: ({ column, row }) => clientLines(view.run.clients, column, row),
    label: () => weightsLabel(view.run),
  });
  followers.push((run) => {
    const { clients } = run;
    if (!show("weights", clients !== null)) return;
    const weighs = clients.weight !== null;
    find("weights-chart").hidden = !weighs;
    find("weights-legend").hidden = !weighs;
    show("weights-text", weighs);
    show("weightless-text", !weighs);
    fill("weights-thinned", weighs ? thinnedText(clients.rounds) : "");
    if (!weighs) return;
    state.edges = edgesOf(clients.rounds);
    state.most = clients.weight.reduce((most, weight) => (weight > most ? weight : most), 0) || 1;
    const most = shortNumber(state.most);
    fill(
      "weights-legend",
      rampKey("honest", "0", most, "honest client"),
      rampKey("malicious", "0", most, "attacker"),
      symbolKey("triangle", "attacked round"),
      symbolKey("outline", "outlined: attacker"),
      symbolKey("cross", "weight 0 or less"),
      clients.verdict.some((_, place) => isRejected(clients, place))
        ? symbolKey("hatch", "turned away by the gate")
        : null,
    );
    redraw();
  });
}

const rowsHeight = (rows) => rows * Math.max(4, Math.min(22, Math.floor(400 / rows)));

function weightsLabel(run) {
  const { attacker_weight_mean: weight, honest_excluded_percent: excluded } = run.figures ?? {};
  const said = [`Heatmap of clients' weights over ${run.rounds.length} rounds.`];
  said.push(`${run.attacked.length} of them were attacked.`);
  if (weight != null) said.push(`Attackers had a mean weight of ${weight.toFixed(3)}.`);
  if (excluded != null)
    said.push(`Honest clients lost all weight in ${percent(excluded)} of the cases.`);
  return said.join(" ");
}

function drawWeights(context, area, ratio, { edges, most }) {
  const { clients } = view.run;
  const { width: rows, verdict, attacks, weight } = clients;
  const ramps = { honest: rampOf("honest"), malicious: rampOf("malicious") };
  const [nothing, none, rejected] = [
    pixel(colour("paper")),
    pixel(colour("none")),
    pixel(colour("rejected")),
  ];
  const attackersIn = (column) => {
    let count = 0;
    while (count < rows && attacks[column * rows + count]) count++;
    return count;
  };
  drawMatrix(context, area, ratio, {
    edges,
    rows,
    colourOf: (column, row) => {
      const place = column * rows + row;
      if (!verdict[place]) return nothing;
      if (isRejected(clients, place)) return rejected;
      if (!(weight[place] > 0)) return none;
      const level = Math.max(1, Math.round((255 * weight[place]) / most));
      return ramps[attacks[place] ? "malicious" : "honest"][level];
    },
    preferred: (low, high) => {
      for (let column = low; column <= high; column++) if (attackersIn(column)) return column;
      return low;
    },
  });
  drawGaps(context, area, edges, rows);
  drawSymbols(context, area, edges, attackersIn);
  drawRowNames(context, area);
}

// A cross where a weight is 0, a stroke where a client was turned away, a frame around attackers.
function drawSymbols(context, area, edges, attackersIn) {
  const { clients } = view.run;
  const { width: rows, verdict, weight, rounds } = clients;
  const height = area.height / rows;
  const narrow = area.width / visibleRounds();
  for (let column = 0; column < rounds.length; column++) {
    if (edges[column + 1] < view.from - 0.5 || edges[column] > view.to + 0.5) continue;
    const left = xOf(edges[column], area);
    const wide = xOf(edges[column + 1], area) - left;
    for (let row = 0; row < rows && Math.min(wide, height) >= 7; row++) {
      const place = column * rows + row;
      const middle = { x: left + wide / 2, y: area.top + (row + 0.5) * height };
      if (isRejected(clients, place))
        stroke(context, [[middle.x - 3, middle.y + 3, middle.x + 3, middle.y - 3]], "ink");
      else if (verdict[place] && !(weight[place] > 0)) cross(context, middle, "faint");
    }
    const count = attackersIn(column);
    if (!count) continue;
    drawAttack(context, left + wide / 2, area.top - 2, Math.max(1, Math.min(4, wide / 2)));
    if (narrow < 3) continue;
    context.strokeStyle = colour("ink");
    context.lineWidth = narrow < 8 ? 1 : 2;
    context.strokeRect(left + 0.5, area.top, wide - 1, count * height);
  }
}

function drawAttack(context, x, y, half) {
  context.fillStyle = colour("attack");
  context.beginPath();
  context.moveTo(x, y - 7);
  context.lineTo(x - half, y);
  context.lineTo(x + half, y);
  context.fill();
}

function cross(context, { x, y }, tint) {
  stroke(
    context,
    [
      [x - 2.5, y - 2.5, x + 2.5, y + 2.5],
      [x - 2.5, y + 2.5, x + 2.5, y - 2.5],
    ],
    tint,
  );
}

function stroke(context, lines, tint) {
  context.strokeStyle = colour(tint);
  context.lineWidth = 1;
  context.beginPath();
  for (const [x1, y1, x2, y2] of lines) {
    context.moveTo(x1, y1);
    context.lineTo(x2, y2);
  }
  context.stroke();
}

function drawRowNames(context, area) {
  context.fillStyle = colour("faint");
  context.textAlign = "right";
  context.textBaseline = "top";
  context.fillText("attackers", area.left - 6, area.top);
  context.textBaseline = "bottom";
  context.fillText("lightest", area.left - 6, area.top + area.height);
}
