// Decode: the page's data, and the numbers in it that are packed (see packing.py).
const data = JSON.parse(find("data").textContent);

function bytesOf(text) {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return bytes;
}

function floatsOf(text) {
  const bytes = bytesOf(text);
  const words = new Uint32Array(bytes.length / 3);
  for (let i = 0, j = 0; i < words.length; i++, j += 3) {
    words[i] = (bytes[j] << 8) | (bytes[j + 1] << 16) | (bytes[j + 2] << 24);
  }
  return new Float32Array(words.buffer);
}

function shortsOf(text) {
  const bytes = bytesOf(text);
  const shorts = new Uint16Array(bytes.length / 2);
  for (let i = 0; i < shorts.length; i++) shorts[i] = bytes[2 * i] | (bytes[2 * i + 1] << 8);
  return shorts;
}

function bitsOf(text, count) {
  const bytes = bytesOf(text);
  const bits = new Uint8Array(count);
  for (let i = 0; i < count; i++) bits[i] = (bytes[i >> 3] >> (7 - (i & 7))) & 1;
  return bits;
}

// What is packed is unpacked when a run is first looked at.
function unpacked(run) {
  const { clients, detector } = run;
  if (clients && !clients.ready) {
    clients.ready = true;
    clients.name = shortsOf(clients.name);
    clients.code = shortsOf(clients.code);
    clients.pattern = shortsOf(clients.pattern);
    clients.verdict = bytesOf(clients.verdict);
    clients.attacks = bitsOf(clients.attacks, clients.verdict.length);
    for (const name of ["weight", "value", "limit"]) {
      if (clients[name]) clients[name] = floatsOf(clients[name]);
    }
    for (const name of Object.keys(clients.evidence)) {
      clients.evidence[name] = floatsOf(clients.evidence[name]);
    }
  }
  if (detector && !detector.ready) {
    detector.ready = true;
    detector.gamma = bytesOf(detector.gamma);
    detector.marked = bitsOf(detector.marked, detector.rounds.length * detector.count);
  }
  return run;
}
