"""Candidates: examples with a label that the server fears, and how each was made."""

from dataclasses import dataclass

from datadefense.core.examples import Examples
from datadefense.core.settings import SettingsError


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Examples that may stand for poison in a defense set.

    Args:
        examples: inputs with the labels that an attacker might want for them.
        origins: how each was made, in a few words.
    """

    examples: Examples
    origins: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(self.origins) != len(self.examples):
            raise SettingsError(
                f"one origin a candidate: got {len(self.origins)} origins, "
                f"{len(self.examples)} candidates"
            )

    def __len__(self) -> int:
        return len(self.examples)
