// Legends: what lines, colours and symbols stand for, and switches beside them.

// What the lines are; buttons where toggle(place) switches a line and says whether it is on now.
function lineLegend(id, lines, toggle = null) {
  const keys = lines.map((line, place) => {
    if (!toggle) return lineKey(line);
    const press = (event) =>
      event.currentTarget.setAttribute("aria-pressed", String(toggle(place)));
    const pressed = String(line.shown !== false);
    return make(
      "button",
      { type: "button", class: "key", "aria-pressed": pressed, click: press },
      sampleOf(line),
      line.label,
    );
  });
  fill(id, ...keys);
}

const lineKey = (line) => make("span", { class: "key" }, sampleOf(line), line.label);

function sampleOf(line) {
  const name = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(name, "svg");
  const stroke = document.createElementNS(name, "line");
  const put = (element, values) =>
    Object.entries(values).forEach(([key, value]) => element.setAttribute(key, value));
  put(svg, { viewBox: "0 0 28 8", width: 28, height: 8, "aria-hidden": "true" });
  put(stroke, {
    x1: 0,
    x2: 28,
    y1: 4,
    y2: 4,
    "stroke-width": line.width ?? 2,
    "stroke-dasharray": (line.dash ?? []).join(" "),
  });
  stroke.style.stroke = `var(--${line.tint})`;
  svg.append(stroke);
  return svg;
}

const rampKey = (name, low, high, text) =>
  make(
    "span",
    { class: "key" },
    `${text} ${low} `,
    make("span", { class: `ramp ${name}` }),
    ` ${high}`,
  );

const symbolKey = (kind, text) =>
  make(
    "span",
    { class: "key" },
    make("span", { class: `symbol ${kind}`, "aria-hidden": "true" }),
    text,
  );

function checkbox(text, change) {
  const box = make("input", { type: "checkbox", change: () => change(box.checked) });
  return make("label", { class: "key" }, box, text);
}
