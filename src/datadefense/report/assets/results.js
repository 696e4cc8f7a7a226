// The page of all studies: tables that sort and search, and light or dark.
"use strict";
const numberIn = (text) => (/^[-\u2212]?\d/.test(text) ? parseFloat(text.replace("\u2212", "-")) : null);

function compared(one, other, sign) {
  if (one === "" || other === "") return (one === "") - (other === "");
  const [a, b] = [numberIn(one), numberIn(other)];
  return sign * (a !== null && b !== null ? a - b : one.localeCompare(other));
}

function sorts(table) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, place) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const each of heads) each.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...table.tBodies[0].rows];
      const text = (row) => row.cells[place].textContent.trim();
      rows.sort((a, b) => compared(text(a), text(b), down ? -1 : 1));
      table.tBodies[0].append(...rows);
    });
  });
}

function searches(table, wide) {
  const rows = [...table.tBodies[0].rows];
  if (rows.length < 12) return;
  const field = document.createElement("input");
  field.type = "search";
  field.className = "find";
  field.placeholder = "Show only lines with these words";
  field.setAttribute("aria-label", field.placeholder);
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/[\s,]+/).filter(Boolean);
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    }
  });
  wide.before(field);
}

for (const table of document.querySelectorAll("table")) {
  const wide = document.createElement("div");
  wide.className = "wide";
  wide.tabIndex = 0;
  table.replaceWith(wide);
  wide.append(table);
  for (const row of table.tBodies[0].rows) {
    const own = [...row.cells].some((cell) => cell.textContent.trim() === "datadefense");
    row.classList.toggle("own", own);
  }
  sorts(table);
  searches(table, wide);
}

const systemDark = matchMedia("(prefers-color-scheme: dark)");
let dark = systemDark.matches;
const toggle = document.getElementById("theme");
function show(printing) {
  document.documentElement.dataset.theme = dark && !printing ? "dark" : "light";
  toggle.textContent = dark ? "Light theme" : "Dark theme";
}
function choose(wanted) {
  dark = wanted;
  show(false);
}
toggle.addEventListener("click", () => choose(!dark));
systemDark.addEventListener("change", () => choose(systemDark.matches));
addEventListener("beforeprint", () => show(true));
addEventListener("afterprint", () => show(false));
show(false);
