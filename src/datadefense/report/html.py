"""An HTML file that needs no network: a filled template, with a policy that forbids all else."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from importlib.resources import files


def policy(styles: Sequence[str], scripts: Sequence[str]) -> str:
    """Return a policy that lets these styles and scripts work, pictures be in the page, no more."""
    style, script = (" ".join(map(_digest, texts)) for texts in (styles, scripts))
    return (
        f"default-src 'none'; script-src {script}; style-src {style}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def filled(template: str, values: Mapping[str, str]) -> str:
    """Put values into their places; what is put in is not looked at again."""
    pieces = template.split("{{")
    filled = [pieces[0]]
    for piece in pieces[1:]:
        name, _, rest = piece.partition("}}")
        filled += [values[name], rest]
    return "".join(filled)


def asset(name: str) -> str:
    """Return the text of a file among the report's assets."""
    return files(__package__).joinpath("assets", *name.split("/")).read_text(encoding="utf-8")
