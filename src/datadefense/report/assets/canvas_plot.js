// A plot on a canvas: rounds from left to right; hover, drag, double click and keys.
const LEFT = 66;
const RIGHT = 22;
const BOTTOM = 34;
const TOP = 10;

// options: height(), rounds(), rows(), draw(context, area), cellAt(x, y, area),
// placeOf(cell, area), lines(cell), picture(cell), label(), left()
function canvasPlot(host, options) {
  const canvas = make("canvas", { tabindex: "0", role: "img" });
  const selection = make("div", { class: "selection", hidden: true });
  host.replaceChildren(make("div", { class: "plot" }, canvas, selection));
  const area = { left: LEFT, top: TOP, width: 0, height: 0 };
  let cell = null;
  let start = null;
  let stale = false;

  function draw() {
    stale = false;
    const ratio = Math.min(devicePixelRatio || 1, 2);
    const width = host.clientWidth;
    if (!width) return;
    const height = options.height();
    area.left = options.left?.() ?? LEFT;
    area.width = Math.max(20, width - area.left - RIGHT);
    area.height = height - TOP - BOTTOM;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.height = `${height}px`;
    canvas.setAttribute("aria-label", options.label());
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    context.font = "12px system-ui, sans-serif";
    options.draw(context, area, ratio);
    drawRoundAxis(context, area);
    if (cell && document.activeElement === canvas) drawFocus(context);
  }

  function drawFocus(context) {
    const place = options.placeOf(cell, area);
    context.strokeStyle = colour("ink");
    context.lineWidth = 2;
    context.strokeRect(
      place.x - place.width / 2,
      place.y - place.height / 2,
      place.width,
      place.height,
    );
  }

  function redraw() {
    if (printing) draw();
    else if (!stale) requestAnimationFrame(draw);
    stale = !printing;
  }

  function inside(event) {
    const box = canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top, event };
  }

  function hover(point) {
    const { x, y, event } = point;
    const within =
      x >= area.left && x <= area.left + area.width && y >= 0 && y <= area.top + area.height;
    const found = within ? options.cellAt(x, y, area) : null;
    if (!found) return hideTooltip();
    showTooltip(options.lines(found), event.clientX, event.clientY, options.picture?.(found));
  }

  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    start = inside(event).x;
    if (event.pointerType !== "mouse") hover(inside(event));
  });
  canvas.addEventListener("pointermove", (event) => {
    const point = inside(event);
    if (start !== null && Math.abs(point.x - start) > 6) {
      canvas.setPointerCapture(event.pointerId);
      hideTooltip();
      const [low, high] = clamped(start, point.x);
      selection.hidden = false;
      selection.style.left = `${low}px`;
      selection.style.width = `${high - low}px`;
      selection.style.top = `${area.top}px`;
      selection.style.height = `${area.height}px`;
    } else hover(point);
  });
  canvas.addEventListener("pointerup", (event) => {
    if (!selection.hidden) {
      const [low, high] = clamped(start, inside(event).x);
      setView(Math.ceil(roundAt(low, area) - 0.25), Math.floor(roundAt(high, area) + 0.25));
    }
    stop();
  });
  canvas.addEventListener("pointercancel", stop);
  canvas.addEventListener("pointerleave", () => start === null && hideTooltip());
  canvas.addEventListener("dblclick", resetView);
  canvas.addEventListener("blur", () => {
    cell = null;
    hideTooltip();
    redraw();
  });
  canvas.addEventListener("keydown", (event) => {
    const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (zoomByKey(event.key)) cell = null;
    else if (steps[event.key]) move(...steps[event.key]);
    else return;
    event.preventDefault();
  });

  function clamped(one, other) {
    const low = Math.max(area.left, Math.min(one, other));
    const high = Math.min(area.left + area.width, Math.max(one, other));
    return [low, high];
  }

  function stop() {
    start = null;
    selection.hidden = true;
  }

  function move(across, down) {
    const rounds = options.rounds();
    const first = rounds.findIndex((round) => round >= view.from);
    const last = rounds.findLastIndex((round) => round <= view.to);
    if (first < 0 || last < first) return;
    const wanted = cell
      ? { column: cell.column + across, row: cell.row + down }
      : { column: first, row: 0 };
    cell = {
      column: Math.min(last, Math.max(first, wanted.column)),
      row: Math.min(options.rows() - 1, Math.max(0, wanted.row)),
    };
    draw();
    const place = options.placeOf(cell, area);
    const box = canvas.getBoundingClientRect();
    const lines = options.lines(cell);
    showTooltip(lines, box.left + place.x, box.top + place.y, options.picture?.(cell), true);
  }

  redraws.push(redraw);
  watchers.push(redraw);
  new ResizeObserver(redraw).observe(host);
  return redraw;
}

const visibleRounds = () => view.to - view.from + 1;
const xOf = (round, area) => area.left + ((round - view.from + 0.5) / visibleRounds()) * area.width;
const roundAt = (x, area) => view.from - 0.5 + ((x - area.left) / area.width) * visibleRounds();

// Steps that are easy to read: 1, 2 or 5 times a power of ten.
function niceStep(span, most) {
  const rough = span / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= rough);
}

function drawRoundAxis(context, area) {
  const step = Math.max(1, niceStep(visibleRounds(), area.width / 60));
  context.fillStyle = colour("faint");
  context.textAlign = "center";
  context.textBaseline = "top";
  const ticks = [];
  for (let round = Math.ceil(view.from / step) * step; round <= view.to; round += step)
    ticks.push(round);
  if (!ticks.length) ticks.push(view.from);
  for (const round of ticks) {
    const x = xOf(round, area);
    context.fillRect(x - 0.5, area.top + area.height + 1, 1, 4);
    context.fillText(String(round), x, area.top + area.height + 7);
  }
  context.textAlign = "right";
  context.fillText("round", area.left + area.width, area.top + area.height + 21);
}
