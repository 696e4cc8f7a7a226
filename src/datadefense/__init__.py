"""DataDefense: keep a federated model free of backdoors.

A round is a matrix of client updates; a defense turns it into a new global model. The public names
are those of ``__init__.pyi``; they are imported on first use, so that ``import datadefense`` is
quick.
"""

import logging

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

logging.getLogger(__name__).addHandler(logging.NullHandler())
