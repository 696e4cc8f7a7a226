// Evidence: one number a client and round; attackers are triangles, the others dots.
const NEAR = 14;

function startEvidence() {
  const state = { name: "", logarithmic: true, low: 0, high: 1, unit: 1 };
  const clients = () => view.run.clients;
  const redraw = canvasPlot(find("evidence-chart"), {
    height: () => 300,
    rounds: () => clients().rounds,
    rows: () => clients().width,
    draw: (context, area) => drawEvidence(context, area, state),
    cellAt: (x, y, area) => nearest(x, y, area, state),
    placeOf: ({ column, row }, area) => ({
      ...pointOf(column, row, area, state),
      width: 12,
      height: 12,
    }),
    lines: ({ column, row }) => clientLines(clients(), column, row),
    label: () => evidenceLabel(state.name),
  });
  const choice = make("select", {
    id: "evidence-name",
    change: () => {
      state.name = choice.value;
      measure();
    },
  });
  const measure = () => {
    Object.assign(state, extentOf(clients().evidence[state.name]));
    redraw();
  };
  const logarithmic = checkbox("Logarithmic", (on) => {
    state.logarithmic = on;
    redraw();
  });
  logarithmic.firstChild.checked = true;
  followers.push((run) => {
    const names = Object.keys(run.clients?.evidence ?? {});
    if (!show("evidence", names.length > 0)) return;
    choice.replaceChildren(...names.map((name) => make("option", { value: name }, spaced(name))));
    state.name = names.includes(state.name) ? state.name : mostCited(run.clients, names);
    choice.value = state.name;
    fill(
      "evidence-legend",
      make("label", { class: "key" }, "Show ", choice),
      logarithmic,
      symbolKey("triangle", "attacker"),
      symbolKey("dot", "honest client"),
      symbolKey("shade", "attacked round"),
    );
    measure();
  });
}

// The evidence that was most often the reason against an attacker.
function mostCited({ attacks, code, codes }, names) {
  const times = names.map(() => 0);
  attacks.forEach((one, place) => {
    const cited = one && code[place] ? names.indexOf(codes[code[place] - 1]) : -1;
    if (cited >= 0) times[cited]++;
  });
  return names[times.lastIndexOf(Math.max(...times))];
}

function pointOf(column, row, area, state) {
  const { rounds, width, evidence } = view.run.clients;
  const value = evidence[state.name][column * width + row];
  const room = area.width / visibleRounds();
  const aside = room > 8 ? ((row + 0.5) / width - 0.5) * room * 0.7 : 0;
  return {
    x: xOf(rounds[column], area) + aside,
    y: yOf(Number.isNaN(value) ? 0 : value, area, state),
  };
}

function eachPoint(area, state, act, from = view.from, to = view.to) {
  const { rounds, width, evidence, verdict, attacks } = view.run.clients;
  const values = evidence[state.name];
  for (let column = 0; column < rounds.length; column++) {
    if (rounds[column] < from || rounds[column] > to) continue;
    for (let row = 0; row < width; row++) {
      const place = column * width + row;
      if (!verdict[place] || Number.isNaN(values[place])) continue;
      act(pointOf(column, row, area, state), attacks[place], { column, row });
    }
  }
}

function drawEvidence(context, area, state) {
  const room = area.width / visibleRounds();
  context.fillStyle = colour("soft");
  for (const round of room < 6 ? [] : view.run.attacked) {
    if (round >= view.from && round <= view.to)
      context.fillRect(xOf(round - 0.5, area), area.top, room, area.height);
  }
  drawValueAxis(context, area, state);
  const size = Math.max(1.2, Math.min(3, room / 5));
  context.fillStyle = colour("dot");
  context.globalAlpha = room < 4 ? 0.35 : 0.75;
  eachPoint(area, state, ({ x, y }, attacks) => {
    if (attacks) return;
    context.beginPath();
    context.arc(x, y, size, 0, 2 * Math.PI);
    context.fill();
  });
  context.globalAlpha = 1;
  const arm = Math.max(3, Math.min(6, room / 3));
  context.strokeStyle = colour("paper");
  context.fillStyle = colour("attack");
  context.lineWidth = 1;
  eachPoint(area, state, ({ x, y }, attacks) => {
    if (!attacks) return;
    context.beginPath();
    context.moveTo(x, y - arm);
    context.lineTo(x + arm, y + 0.8 * arm);
    context.lineTo(x - arm, y + 0.8 * arm);
    context.closePath();
    context.fill();
    context.stroke();
  });
}

function nearest(x, y, area, state) {
  const reach = (NEAR / area.width) * visibleRounds() + 0.5;
  const round = roundAt(x, area);
  let best = null;
  let least = NEAR;
  eachPoint(
    area,
    state,
    (point, attacks, cell) => {
      const distance = Math.hypot(point.x - x, point.y - y) - (attacks ? 2 : 0);
      if (distance < least) [best, least] = [cell, distance];
    },
    round - reach,
    round + reach,
  );
  return best;
}

function evidenceLabel(name) {
  const { evidence, verdict, attacks } = view.run.clients;
  const mean = (wanted) => {
    let [sum, count] = [0, 0];
    evidence[name].forEach((value, place) => {
      if (verdict[place] && Boolean(attacks[place]) === wanted && Number.isFinite(value))
        [sum, count] = [sum + value, count + 1];
    });
    return count ? shortNumber(sum / count) : "none";
  };
  const means = `Mean of attackers: ${mean(true)}; of honest clients: ${mean(false)}.`;
  return `${spaced(name)} of each client by round. ${means}`;
}
