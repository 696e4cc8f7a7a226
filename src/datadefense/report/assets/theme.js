// Theme: light or dark, as the system has it until the button is pressed; light on paper.
const systemDark = matchMedia("(prefers-color-scheme: dark)");
const redraws = [];
let chosenTheme = null;
let printing = false;

function isDark() {
  return !printing && (chosenTheme ?? (systemDark.matches ? "dark" : "light")) === "dark";
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

const runTint = (place) => `run-${place % 8}`;
const runDash = (place) => [[], [8, 4], [2, 3], [10, 3, 2, 3]][(place + (place >> 3)) % 4];

function applyTheme() {
  const dark = isDark();
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  find("theme").textContent = dark ? "Light theme" : "Dark theme";
  for (const redraw of redraws) redraw();
}

function startTheme() {
  find("theme").addEventListener("click", () => {
    chosenTheme = isDark() ? "light" : "dark";
    applyTheme();
  });
  systemDark.addEventListener("change", applyTheme);
  addEventListener("beforeprint", () => {
    printing = true;
    document.documentElement.classList.add("printing");
    for (const details of document.querySelectorAll("#details details")) details.open = true;
    applyTheme();
  });
  addEventListener("afterprint", () => {
    printing = false;
    document.documentElement.classList.remove("printing");
    applyTheme();
  });
  applyTheme();
}
