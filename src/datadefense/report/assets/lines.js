// Lines by round: uPlot with our axes, marks of attacked rounds, tooltip, keys and linked zoom.
// options: title, unit, lines() -> [{label, values, tint, dash, width, shown, band, apart}], x(),
// range(low, high), splits, marks(), height, label(). The tint is a colour's name in the styles; a
// band, [low, high], is drawn around its line; values apart are points, not joined over gaps.
function lineChart(host, options) {
  const frame = make("div", { class: "chart", tabindex: "0", role: "img" });
  host.replaceChildren(options.title ? make("h3", {}, options.title) : "", frame);
  let chart = null;
  let place = -1;

  function build() {
    chart?.destroy();
    frame.setAttribute("aria-label", options.label());
    const lines = options.lines();
    const series = [{}];
    const columns = [options.x()];
    const bands = [];
    for (const line of lines) {
      if (line.band) {
        for (const edge of line.band) {
          series.push({
            stroke: "transparent",
            width: 0,
            show: line.shown !== false,
            points: { show: false },
            spanGaps: true,
          });
          columns.push(edge);
        }
        bands.push({
          series: [columns.length - 1, columns.length - 2],
          fill: () => `${colour(line.tint)}30`,
        });
      }
      series.push(seriesOf(line, columns[0].length));
      columns.push(line.values);
    }
    chart = new uPlot(settings(lines, series, bands), columns, frame);
    chart.over.addEventListener("dblclick", resetView);
  }

  const size = () => ({ width: Math.max(200, host.clientWidth), height: options.height ?? 260 });

  function settings(lines, series, bands) {
    return {
      ...size(),
      padding: [8, RIGHT, 0, 0],
      legend: { show: false },
      series,
      bands,
      scales: {
        x: { time: false, range: () => [view.from - 0.5, view.to + 0.5] },
        y: { range: (_, low, high) => options.range(low, high) },
      },
      axes: [
        axis({
          size: BOTTOM,
          space: 60,
          gap: 3,
          incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000],
          values: (_, ticks) => ticks.map(String),
        }),
        axis({
          size: LEFT,
          space: 34,
          splits: options.splits,
          values: (_, ticks) => ticks.map((tick) => `${shortNumber(tick)}${options.unit ?? ""}`),
        }),
      ],
      cursor: {
        drag: { x: true, y: false, setScale: false, dist: 6 },
        sync: { key: "rounds", scales: ["x", null] },
        points: { size: 7 },
        bind: { dblclick: () => null },
      },
      hooks: {
        draw: [drawMarks],
        setSelect: [select],
        setCursor: [(self) => follow(self, lines)],
      },
    };
  }

  function drawMarks(self) {
    const { ctx, bbox } = self;
    const ratio = uPlot.pxRatio;
    ctx.fillStyle = colour("faint");
    ctx.font = `${12 * ratio}px system-ui, sans-serif`;
    ctx.textAlign = "right";
    ctx.textBaseline = "top";
    ctx.fillText("round", bbox.left + bbox.width, bbox.top + bbox.height + 21 * ratio);
    const rounds = options.marks?.() ?? [];
    const room =
      (bbox.width / visibleRounds()) * Math.min(1, visibleRounds() / Math.max(1, rounds.length));
    ctx.fillStyle = colour("attack");
    for (const round of rounds) {
      if (round < view.from || round > view.to) continue;
      const x = self.valToPos(round, "x", true);
      const y = bbox.top + bbox.height;
      if (room < 4 * ratio) ctx.fillRect(x - ratio / 2, y - 7 * ratio, ratio, 7 * ratio);
      else {
        ctx.beginPath();
        ctx.moveTo(x, y - 8 * ratio);
        ctx.lineTo(x + 4 * ratio, y - ratio);
        ctx.lineTo(x - 4 * ratio, y - ratio);
        ctx.fill();
      }
    }
  }

  function select(self) {
    const { left, width } = self.select;
    if (width > 6) {
      const low = self.posToVal(left, "x");
      const high = self.posToVal(left + width, "x");
      self.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
      setView(Math.ceil(low - 0.25), Math.floor(high + 0.25));
    }
  }

  function follow(self, lines) {
    const { idx, left, top } = self.cursor;
    const own = self.over.matches(":hover") || document.activeElement === frame;
    if (!own) return;
    if (idx == null || left < 0) return hideTooltip();
    const round = self.data[0][idx];
    const words = lines
      .filter((line) => line.shown !== false && line.values[idx] != null)
      .map((line) => `${line.label}: ${shortNumber(line.values[idx])}${options.unit ?? ""}`);
    const attacked = options.marks?.().includes(round) ? ", attacked" : "";
    const box = self.over.getBoundingClientRect();
    const spoken = document.activeElement === frame && !self.over.matches(":hover");
    showTooltip(
      [`Round ${round}${attacked}`, ...words],
      box.left + left,
      box.top + top,
      null,
      spoken,
    );
  }

  frame.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step) {
      const x = chart.data[0];
      const first = x.findIndex((round) => round >= view.from);
      const last = x.findLastIndex((round) => round <= view.to);
      place = Math.min(last, Math.max(first, place < 0 ? first : place + step));
      chart.setCursor({ left: chart.valToPos(x[place], "x"), top: chart.over.clientHeight / 3 });
    } else if (!zoomByKey(event.key)) return;
    event.preventDefault();
  });
  frame.addEventListener("blur", () => {
    place = -1;
    hideTooltip();
  });
  frame.addEventListener("pointerleave", hideTooltip);

  const visible = () => chart !== null && host.clientWidth > 0;
  const resize = () => visible() && chart.setSize(size());
  watchers.push(
    () => visible() && chart.setScale("x", { min: view.from - 0.5, max: view.to + 0.5 }),
  );
  redraws.push(() => {
    resize();
    if (visible()) chart.redraw(true, true);
  });
  new ResizeObserver(resize).observe(host);
  return build;
}

function seriesOf(line, count) {
  return {
    label: line.label,
    stroke: () => colour(line.tint),
    width: line.width ?? (count > 400 ? 1.25 : 2),
    dash: line.dash,
    show: line.shown !== false,
    spanGaps: !line.apart,
    points: {
      show: line.apart || line.values.filter((value) => value != null).length <= 2,
      size: count > 400 ? 3 : 6,
    },
  };
}

function axis(options) {
  const faint = () => colour("faint");
  const line = () => colour("line");
  return {
    stroke: faint,
    font: "12px system-ui, sans-serif",
    grid: { stroke: line, width: 1 },
    ticks: { stroke: line, width: 1, size: 4 },
    ...options,
  };
}
