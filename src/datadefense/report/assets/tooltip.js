// Tooltip: what is under the pointer, in words; spoken where it was found with the keyboard.
const tooltip = make("div", { class: "tooltip", hidden: true, "aria-hidden": "true" });
document.body.append(tooltip);

function showTooltip(lines, left, top, picture = null, spoken = false) {
  const [heading, ...rest] = lines;
  tooltip.replaceChildren(
    ...[picture, make("strong", {}, heading), ...rest.map((line) => make("span", {}, line))].filter(
      Boolean,
    ),
  );
  tooltip.hidden = false;
  const { width, height } = tooltip.getBoundingClientRect();
  const room = document.documentElement.clientWidth;
  const x = left + 14 + width < room ? left + 14 : Math.max(4, left - 14 - width);
  const y = top + 14 + height < innerHeight ? top + 14 : Math.max(4, top - 14 - height);
  tooltip.style.left = `${x + scrollX}px`;
  tooltip.style.top = `${y + scrollY}px`;
  if (spoken) find("spoken").textContent = lines.join(", ");
}

function hideTooltip() {
  tooltip.hidden = true;
}
