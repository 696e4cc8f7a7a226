// Elements: text from data enters the page here only, and always as text.
function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child != null));
  return element;
}

const find = (id) => document.getElementById(id);

function fill(id, ...children) {
  find(id).replaceChildren(...children.filter((child) => child != null));
}

function show(id, wanted) {
  find(id).hidden = !wanted;
  return wanted;
}

function shortNumber(value, digits = 3) {
  if (value == null || Number.isNaN(value)) return "none";
  if (!Number.isFinite(value)) return value > 0 ? "infinite" : "-infinite";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e5 || size < 1e-4) return value.toExponential(digits - 1);
  return size >= 10 ** digits ? value.toFixed(0) : String(+value.toPrecision(digits));
}

const percent = (value) => (value == null ? "not known" : `${value.toFixed(1)}\u00a0%`);
