"""FLTrust: the server trains on clean data and weights clients by the cosine with its update."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from datadefense.core.defense import Defense, Promise
from datadefense.core.examples import Examples
from datadefense.core.local_training import Sgd
from datadefense.core.needs import Need, NeedsError, wanted
from datadefense.core.reasons import Reason
from datadefense.core.round import Aggregate, Round
from datadefense.core.server import Predict, Server
from datadefense.core.settings import setting
from datadefense.kernels.sums import add_weighted, dots, norms

LARGEST_STRETCH = 1e30
"""An update that would have to be scaled up by more than this gets no weight."""


def model_and_root_set(server: Server) -> tuple[Predict, Examples]:
    """Return what FLTrust needs of a server, or raise."""
    if server.predict is None or server.clean is None or not len(server.clean):
        raise NeedsError(wanted(FlTrust.name, FlTrust.needs))
    return server.predict, server.clean


@dataclass(frozen=True, slots=True)
class FlTrust(Defense[None]):
    r"""Weight each update by its cosine with the server's own step on clean examples.

    With the server's update :math:`u_0`, trained on ``Server.clean`` as a client would:

    .. math::
        T_j = \mathrm{ReLU}(\cos(u_j, u_0)), \qquad
        u = \frac{1}{\sum_j T_j} \sum_j T_j \frac{\lVert u_0 \rVert}{\lVert u_j \rVert} u_j

    Any number of clients. Where no client is trusted, or the server's step is zero or not finite,
    the model stays.

    Reference: Cao et al., *FLTrust: Byzantine-robust Federated Learning via Trust Bootstrapping*,
    NDSS 2021, algorithm 2 with a global learning rate of 1.
    """

    epochs: int = setting(1, "passes of the server over its clean examples")
    batch_size: int = setting(32, "examples a step of the server")
    learning_rate: float = setting(0.01, "step size of the server")
    momentum: float = setting(0.9, "momentum of the server's steps")

    name: ClassVar[str] = "fltrust"
    promises: ClassVar[Promise] = Promise.SYMMETRIC | Promise.WEIGHTED | Promise.BOUNDED
    needs: ClassVar[Need] = Need.MODEL | Need.CLEAN_EXAMPLES

    def __post_init__(self) -> None:
        self._training()

    def _training(self) -> Sgd:
        return Sgd(self.epochs, self.batch_size, self.learning_rate, self.momentum)

    def init(self, server: Server, params: Float[Tensor, " dim"]) -> None:
        """Check that the server has a model and clean examples."""
        model_and_root_set(server)

    def aggregate(self, state: None, round: Round, server: Server) -> Aggregate[None]:
        """Train on the clean examples, then weight clients by trust."""
        predict, root_set = model_and_root_set(server)
        generator = server.generator(self.name, round.index)
        trained = self._training().train(predict, round.global_params, root_set, generator)
        own = trained - round.global_params
        own_norm = float(norms(own[None])[0])
        lengths = norms(round.updates)
        cosines = dots(round.updates, own) / (lengths * own_norm)
        usable = (lengths > own_norm / LARGEST_STRETCH) & cosines.isfinite()
        cosines = torch.where(usable, cosines, 0.0)
        trust = cosines.clamp(min=0)
        total = float(trust.sum())
        evidence = {"cosine": cosines, "norm": lengths}
        reasons = [
            None if cosine > 0 else Reason("cosine", cosine, 0.0) for cosine in cosines.tolist()
        ]
        if not total > 0:
            return Aggregate(
                round.global_params.clone(),
                None,
                torch.zeros_like(trust).to(round.updates.dtype),
                evidence,
                {
                    "fallback": "fltrust trusts no client: kept the model",
                    "server_norm": own_norm if math.isfinite(own_norm) else None,
                },
                reasons,
            )
        factors = torch.where(trust > 0, trust / total * own_norm / lengths, 0.0)
        weights = factors.to(round.updates.dtype)
        return Aggregate(
            add_weighted(round.global_params, weights, round.updates),
            None,
            weights,
            evidence,
            {"server_norm": own_norm},
            reasons,
        )
