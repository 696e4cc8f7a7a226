"""Flower: every defense as a strategy that one puts around one's own.

>>> from datadefense.flower import DefendedStrategy
"""

from datadefense.flower.nodes import TooFewNodesError
from datadefense.flower.strategy import DefendedStrategy

__all__ = ["DefendedStrategy", "TooFewNodesError"]
