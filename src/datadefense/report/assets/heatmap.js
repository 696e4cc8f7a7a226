// Heatmap: a matrix drawn cell by cell; where rounds are narrower than a pixel, one stands for all.
function ramp(stops) {
  const bytes = new Uint8Array(256 * 4);
  for (let level = 0; level < 256; level++) {
    const at = (level / 255) * (stops.length - 1);
    const low = Math.min(stops.length - 2, Math.floor(at));
    for (let part = 0; part < 3; part++) {
      const [one, other] = [channel(stops[low], part), channel(stops[low + 1], part)];
      bytes[4 * level + part] = Math.round(one + (other - one) * (at - low));
    }
    bytes[4 * level + 3] = 255;
  }
  return new Uint32Array(bytes.buffer);
}

const channel = (hex, part) => parseInt(hex.slice(1 + 2 * part, 3 + 2 * part), 16);
const pixel = (hex) => ramp([hex, hex])[0];
const rampOf = (name) => ramp(rampStops(name));
const rampStops = (name) => [0, 1, 2, 3].map((place) => colour(`${name}-${place}`));

// Where the cells of these rounds begin and end: halfway to their neighbours.
function edgesOf(rounds) {
  const edges = [rounds[0] - 0.5];
  for (let i = 1; i < rounds.length; i++) edges.push((rounds[i - 1] + rounds[i]) / 2);
  edges.push(rounds.at(-1) + 0.5);
  return edges;
}

function columnAt(edges, round) {
  let low = 0;
  let high = edges.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (edges[middle] <= round) low = middle;
    else high = middle;
  }
  return low;
}

// colourOf(column, row) is a pixel; preferred(low, high) is the column that stands for the others.
function drawMatrix(context, area, ratio, { edges, rows, colourOf, preferred }) {
  const width = Math.max(1, Math.round(area.width * ratio));
  const height = Math.max(1, Math.round(area.height * ratio));
  const sheet = make("canvas", { width, height });
  const image = new ImageData(width, height);
  const pixels = new Uint32Array(image.data.buffer);
  const column = new Uint32Array(rows);
  let drawn = -1;
  for (let x = 0; x < width; x++) {
    const from = roundAt(area.left + x / ratio, area);
    const to = roundAt(area.left + (x + 1) / ratio, area);
    if (to < edges[0] || from > edges.at(-1)) continue;
    const low = columnAt(edges, from + 1e-9);
    const high = columnAt(edges, to - 1e-9);
    const wanted = low === high ? low : preferred(low, high);
    if (wanted !== drawn) {
      for (let row = 0; row < rows; row++) column[row] = colourOf(wanted, row);
      drawn = wanted;
    }
    for (let y = 0; y < height; y++)
      pixels[y * width + x] = column[Math.floor((y * rows) / height)];
  }
  sheet.getContext("2d").putImageData(image, 0, 0);
  context.imageSmoothingEnabled = false;
  context.drawImage(sheet, area.left, area.top, area.width, area.height);
}

// Thin lines between cells that are wide enough for them.
function drawGaps(context, area, edges, rows) {
  context.fillStyle = colour("paper");
  if (area.width / visibleRounds() >= 6) {
    for (const edge of edges) {
      const x = xOf(edge, area);
      if (x > area.left && x < area.left + area.width)
        context.fillRect(x - 0.5, area.top, 1, area.height);
    }
  }
  if (area.height / rows >= 6) {
    for (let row = 1; row < rows; row++) {
      context.fillRect(area.left, area.top + (row * area.height) / rows - 0.5, area.width, 1);
    }
  }
}

// Where a cell is, for the frame around the one that has the focus.
function cellPlace(edges, column, row, rows, area) {
  const left = Math.max(area.left, xOf(edges[column], area));
  const right = Math.min(area.left + area.width, xOf(edges[column + 1], area));
  const height = area.height / rows;
  return {
    x: (left + right) / 2,
    y: area.top + (row + 0.5) * height,
    width: Math.max(4, right - left),
    height: Math.max(4, height),
  };
}

// What to say where not all rounds of the run are drawn.
function thinnedText(rounds) {
  const all = view.run.rounds.length;
  if (rounds.length === all) return "";
  return `${rounds.length} of ${all} rounds are shown, attacked ones rather than others.`;
}
