"""The contact sheet: every example of a defense set on one page, the strangest first."""

import base64
import hashlib
import shlex
from collections.abc import Sequence
from html import escape
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from datadefense.data.image_files import to_png
from datadefense.defense_sets.folder import DefenseSetSource

STYLE = """
:root { color-scheme: light dark; --ink: #1a202c; --paper: #fff; --faint: #667080; --line: #d5dae1;
  --clean: #2f7d4f; }
@media (prefers-color-scheme: dark) { :root { --ink: #e7ebf0; --paper: #14181d; --faint: #93a0b0;
  --line: #39424d; --clean: #6cc492; } }
body { font: 15px/1.4 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  margin: 2rem auto; max-width: 1200px; padding: 0 1rem 4rem; }
h1 { font-size: 1.4rem; } p { max-width: 70ch; }
main { display: grid; gap: .6rem; grid-template-columns: repeat(auto-fill, minmax(8.2rem, 1fr)); }
main.texts { grid-template-columns: 1fr; }
label { border: 1px solid var(--line); border-top: 3px solid var(--line); border-radius: 4px;
  padding: .4rem; font-size: .8rem; overflow-wrap: anywhere; cursor: pointer; position: relative; }
label.clean { border-top-color: var(--clean); } label:has(:checked) { outline: 2px solid; }
img { width: 100%; image-rendering: pixelated; display: block; margin-bottom: .3rem; }
b, i, .text, meter, label code { display: block; } b { color: var(--clean); }
code, i { color: var(--faint); } code { font-size: .75rem; }
.text { font-size: .95rem; margin: 0 2rem .3rem 0; } .texts meter { max-width: 8rem; }
meter { margin: .2rem 0; height: .5rem; width: 100%; }
input { position: absolute; right: .6rem; top: .6rem; margin: 0; }
footer { position: fixed; inset: auto 0 0; background: var(--paper); padding: .6rem 1rem;
  border-top: 1px solid var(--line); overflow-wrap: anywhere; max-height: 30vh; overflow: auto; }
"""
SCRIPT = """
const shown = document.querySelector("footer code"), command = shown.textContent;
const quote = id => /^[\\w.-]+$/.test(id) ? id : "'" + id.replaceAll("'", "'\\\\''") + "'";
document.querySelector("main").addEventListener("change", () => {
  const chosen = [...document.querySelectorAll("main :checked")].map(box => quote(box.value));
  shown.textContent = [command, ...chosen].join(" ");
});
"""


def render(
    source: DefenseSetSource,
    folder: Path,
    scores: Float[Tensor, " examples"] | None = None,
    texts: Sequence[str] | None = None,
) -> str:
    """Return the page; it opens from disk and needs no network.

    Args:
        source: the set.
        folder: where it lies, for the command that marks what was ticked.
        scores: gamma of each example; with them, the highest come first.
        texts: what to show for tokens, instead of their numbers.
    """
    order = torch.arange(len(source))
    if scores is not None:
        order = scores.sort(descending=True, stable=True).indices
    cards = "\n".join(_card(source, place, scores, texts) for place in order.tolist())
    known = int(source.known_clean.sum())
    ranked = (
        "in the order of the folder"
        if scores is None
        else "the highest gamma (the strangest) first"
    )
    name = escape(folder.resolve().name)
    layout = "images" if source.kind == "image" else "texts"
    return f"""<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="{_policy()}">
<title>{name}: defense set</title><style>{STYLE}</style>
<h1>Defense set {name}</h1>
<p>{len(source)} examples, {known} known clean (green), {ranked}. Tick what you have looked at and
found clean, and run the command below.</p>
<main class="{layout}">
{cards}
</main>
<footer><code>datadefense defense-set mark -- {escape(shlex.quote(str(folder)))}</code></footer>
<script>{SCRIPT}</script>
</html>
"""


def _card(
    source: DefenseSetSource,
    place: int,
    scores: Float[Tensor, " examples"] | None,
    texts: Sequence[str] | None,
) -> str:
    known, name = bool(source.known_clean[place]), escape(source.ids[place])
    score = "" if scores is None else _score(float(scores[place]))
    mark = "<b>known clean</b>" if known else ""
    remarks = "".join(
        f"<i>{escape(text)}</i>" for text in (source.provenance[place], source.notes[place]) if text
    )
    return (
        f'<label class="{"clean" if known else "unknown"}">'
        f'<input type="checkbox" value="{name}">{_content(source, place, texts)}'
        f"label {int(source.labels[place])}{score}{mark}{remarks}<code>{name}</code></label>"
    )


def _score(score: float) -> str:
    return f'<br>gamma {score:.2f}<meter value="{score:.2f}"></meter>'


def _policy() -> str:
    """Return a policy that lets the page's own style and script work, and its pictures, no more."""
    script, style = (
        f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
        for text in (SCRIPT, STYLE)
    )
    return (
        f"default-src 'none'; script-src {script}; style-src {style}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _content(source: DefenseSetSource, place: int, texts: Sequence[str] | None) -> str:
    inputs = source.inputs
    if isinstance(inputs, Tensor) and source.kind == "image":
        data = base64.b64encode(to_png(inputs[place])).decode()
        return f'<img alt="" src="data:image/png;base64,{data}">'
    if texts is not None:
        text = texts[place]
    elif isinstance(inputs, tuple):
        text = inputs[place]
    else:
        text = " ".join(str(number) for number in inputs[place].tolist() if number)
    return f'<span class="text">{escape(text)}</span>'
