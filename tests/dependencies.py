"""What is installed with us: is every version pinned, is every licence free of surprises?

``python -m tests.dependencies check`` fails if something that we bring is not in constraints.txt at
its version, or if a package that users get has a licence that is not on our list. ``licences``
lists them. ``audit`` asks pip-audit for known holes, and says so where no service answers.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

OURS = "datadefense"
EXTRAS = ("", "data", "demo", "flower", "flower-simulation", "prometheus")
"""What users can install, less what this environment does not have."""
TOOLS = frozenset(("pip", "setuptools", "wheel"))
TORCH_PINS = ("cuda-", "nvidia-", "triton")
"""Packages that torch brings where there is a GPU, at versions that it names itself."""
FREE = re.compile(
    r"apache|\bbsd\b|bsd-[0-3]|\bmit\b|mit-cmu|\bisc\b|psf|python software foundation|unlicense|"
    r"mozilla public license 2\.0|mpl-2\.0|\bzlib\b|hpnd|cc0|0bsd",
    re.IGNORECASE,
)
COPYLEFT = re.compile(r"\b[al]?gpl|general public|\beupl|\bsspl|commons clause", re.IGNORECASE)
KNOWN = {
    "pycryptodome": "BSD-2-Clause AND Unlicense",
}
"""Licences that a package's own metadata do not tell."""


@cache
def installed() -> dict[str, metadata.Distribution]:
    """Return the packages that are installed, by their canonical names."""
    found = {canonicalize_name(one.metadata["Name"]): one for one in metadata.distributions()}
    return {name: one for name, one in sorted(found.items()) if name not in TOOLS}


def unpinned(constraints: str) -> list[str]:
    """Return what comes with us, our tools included, and is not in the constraints as it is."""
    pins = dict(
        line.split("==") for line in constraints.splitlines() if "==" in line and line[0] != "#"
    )
    pinned = {canonicalize_name(name): version for name, version in pins.items()}
    ours = set(brought_by((*EXTRAS, "dev")))
    return [
        f"{name}=={one.version}"
        for name, one in installed().items()
        if name in ours
        and not name.startswith(TORCH_PINS)
        and pinned.get(name) != one.version.partition("+")[0]
    ]


def for_users() -> list[str]:
    """Return the names of the packages that come with us and our extras."""
    return brought_by(EXTRAS)


def brought_by(extras: Iterable[str]) -> list[str]:
    """Return the names of the installed packages that some of our extras ask for."""
    there, seen = installed(), set()
    waiting = [(OURS, extra) for extra in extras]
    while waiting:
        name, extra = waiting.pop()
        if (name, extra) in seen or name not in there:
            continue
        seen.add((name, extra))
        for text in there[name].requires or ():
            wanted = Requirement(text)
            if wanted.marker is None or wanted.marker.evaluate({"extra": extra}):
                other = canonicalize_name(wanted.name)
                waiting += [(other, ""), *((other, more) for more in wanted.extras)]
    return sorted({name for name, _ in seen} - {OURS})


def licence(name: str) -> str:
    """Return the licence that a package states, in one line."""
    stated = installed()[name].metadata
    classifiers = [
        text.rpartition(" :: ")[2]
        for text in stated.get_all("Classifier") or ()
        if text.startswith("License :: ")
    ]
    texts = [stated["License-Expression"], ", ".join(classifiers), stated["License"]]
    first = next((text for text in texts if text and text != "OSI Approved"), "")
    return KNOWN.get(name) or first.strip().partition("\n")[0][:80]


def surprises(licences: dict[str, str]) -> list[str]:
    """Return the packages whose licence is copyleft, or none that we know."""
    return [
        f"{name}: {stated or 'no licence stated'}"
        for name, stated in licences.items()
        if COPYLEFT.search(stated) or not FREE.search(stated)
    ]


def audit() -> str:
    """Return what pip-audit found; raise SystemExit if that is a hole."""
    command = [sys.executable, "-m", "pip_audit", "--local", "--skip-editable", "--format", "json"]
    command += ["--progress-spinner", "off", "--timeout", "5"]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        found = json.loads(ended.stdout)["dependencies"]
    except (subprocess.TimeoutExpired, json.JSONDecodeError, KeyError):
        return "pip-audit: skipped, no service answered"
    asked = [one for one in found if "vulns" in one]
    if not asked:
        return "pip-audit: skipped, no service knows the packages here"
    holes = [
        f"{one['name']} {one['version']}: {hole['id']}" for one in asked for hole in one["vulns"]
    ]
    if holes:
        raise SystemExit("pip-audit: " + "; ".join(holes))
    return f"pip-audit: no known hole in {len(asked)} of {len(found)} packages"


def main(command: str) -> None:
    if command == "audit":
        say(audit())
        return
    licences = {name: licence(name) for name in for_users()}
    if command == "check":
        constraints = Path(__file__).parents[1].joinpath("constraints.txt").read_text()
        if wrong := unpinned(constraints):
            raise SystemExit(f"not in constraints.txt: {', '.join(wrong)}")
        if wrong := surprises(licences):
            raise SystemExit(f"licences to look at: {'; '.join(wrong)}")
        say(f"{len(installed()) - 1} packages pinned, {len(licences)} licences as expected")
    else:
        for name, stated in licences.items():
            say(f"{name} {installed()[name].version}: {stated}")


def say(text: str) -> None:
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
