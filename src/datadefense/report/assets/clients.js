// Clients: what became of one in a round, in words.
const verdictOf = (clients, place) => clients.verdicts[clients.verdict[place] - 1] ?? "";
const isRejected = (clients, place) => verdictOf(clients, place) === "rejected";

const VERDICT_WORDS = {
  counted: "counted",
  reduced: "counted for less",
  excluded: "left out",
  voted: "had a vote, as every client",
  rejected: "turned away by the gate",
};

function clientLines(clients, column, row) {
  const place = column * clients.width + row;
  const attacks = clients.attacks[place] ? "an attacker" : "honest";
  const verdict = verdictOf(clients, place);
  const lines = [
    `Round ${clients.rounds[column]}`,
    `client ${clients.names[clients.name[place]]}, ${attacks}`,
    VERDICT_WORDS[verdict] ?? verdict,
  ];
  const reason = reasonOf(clients, place);
  if (reason) lines.push(`reason: ${reason}`);
  const weight = clients.weight?.[place] ?? NaN;
  if (!Number.isNaN(weight)) lines.push(`weight ${shortNumber(weight)}`);
  for (const [name, values] of Object.entries(clients.evidence)) {
    if (!Number.isNaN(values[place])) lines.push(`${spaced(name)} ${shortNumber(values[place])}`);
  }
  return lines;
}

const spaced = (name) => name.replaceAll("_", " ");

// The words of a reason with its numbers in their places.
function reasonOf(clients, place) {
  if (!clients.code[place]) return "";
  let words = clients.patterns[clients.pattern[place]];
  for (const name of ["value", "limit"]) {
    const number = clients[name]?.[place] ?? NaN;
    if (!Number.isNaN(number)) words = words.replace(`{${name}}`, shortNumber(number));
  }
  return words;
}
