// Clients: what is known of one in a round, in words.
const ATTACKS = 2;
const REJECTED = 4;

function clientLines(clients, column, row) {
  const place = column * clients.width + row;
  const kind = clients.kind[place];
  const attacks = kind & ATTACKS ? "an attacker" : "honest";
  const lines = [
    `Round ${clients.rounds[column]}`,
    `client ${clients.names[clients.name[place]]}, ${attacks}`,
  ];
  if (kind & REJECTED) lines.push("turned away by the gate");
  else if (clients.weight) lines.push(`weight ${shortNumber(clients.weight[place])}`);
  for (const [name, values] of Object.entries(clients.evidence)) {
    if (!Number.isNaN(values[place])) lines.push(`${spaced(name)} ${shortNumber(values[place])}`);
  }
  const reason = reasonOf(clients, place);
  if (reason) lines.push(`reason: ${reason}`);
  return lines;
}

const spaced = (name) => name.replaceAll("_", " ");

// A reason is a text of its own, or the name of the evidence that it repeats.
function reasonOf(clients, place) {
  const code = clients.reason[place];
  const names = Object.keys(clients.evidence);
  if (!code) return "";
  if (code > names.length) return clients.reasons[code - 1 - names.length];
  const name = names[code - 1];
  return `${spaced(name)} ${shortNumber(clients.evidence[name][place])}`;
}
