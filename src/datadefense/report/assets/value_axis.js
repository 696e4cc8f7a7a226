// A value axis: linear, or logarithmic but for what is small, so that 0 has a place on it.

// The range of finite values, and the size below which a logarithmic scale is linear.
function extentOf(values) {
  const finite = Array.from(values).filter(Number.isFinite);
  const sizes = finite
    .map(Math.abs)
    .filter((size) => size > 0)
    .sort((one, other) => one - other);
  const low = finite.reduce((least, value) => Math.min(least, value), 0);
  const high = finite.reduce((most, value) => Math.max(most, value), 0);
  return {
    low,
    high: high === low ? low + 1 : high,
    unit: sizes[Math.floor(sizes.length / 4)] || 1,
  };
}

const scaled = (value, { logarithmic, unit }) =>
  logarithmic ? Math.sign(value) * Math.log1p(Math.abs(value) / unit) : value;

function yOf(value, area, state) {
  const [low, high] = [scaled(state.low, state), scaled(state.high, state)];
  const share =
    (scaled(Math.max(state.low, Math.min(state.high, value)), state) - low) / (high - low);
  return area.top + 6 + (area.height - 12) * (1 - share);
}

function drawValueAxis(context, area, state) {
  context.textAlign = "right";
  context.textBaseline = "middle";
  let before = Infinity;
  for (const tick of ticksOf(state)) {
    const y = yOf(tick, area, state);
    if (before - y < 18) continue;
    before = y;
    context.fillStyle = colour("line");
    context.fillRect(area.left, y - 0.5, area.width, 1);
    context.fillStyle = colour("faint");
    context.fillText(shortNumber(tick), area.left - 6, y);
  }
}

function ticksOf({ low, high, logarithmic, unit }) {
  const ticks = [];
  if (!logarithmic) {
    const step = niceStep(high - low, 6);
    for (let tick = Math.ceil(low / step) * step; tick <= high + step / 1e6; tick += step)
      ticks.push(+tick.toPrecision(6));
    return ticks;
  }
  const first = Math.floor(Math.log10(unit));
  for (let power = Math.ceil(Math.log10(Math.max(-low, high))); power >= first; power--) {
    for (const factor of [5, 2, 1]) ticks.push(-factor * 10 ** power);
  }
  ticks.push(0);
  for (let power = first; 10 ** power <= high; power++) {
    for (const factor of [1, 2, 5]) ticks.push(factor * 10 ** power);
  }
  return ticks.filter((tick) => tick >= low && tick <= high);
}
