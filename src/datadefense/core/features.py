"""Features: what a model's last dense layer sees of an input."""

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from datadefense.core.errors import InputError


def penultimate(
    module: nn.Module, inputs: Shaped[Tensor, "examples ..."], batch_size: int = 500
) -> Float[Tensor, "examples width"]:
    """Return the input of the module's last `nn.Linear` for each example, in eval mode.

    The paper's fixed encoder FE(x), which attackers cannot reach: give it the model from before
    the first round, with its parameters loaded. Raises if there is no dense layer.
    """
    dense = [part for part in module.modules() if isinstance(part, nn.Linear)]
    if not dense:
        raise InputError(f"{type(module).__name__} has no nn.Linear whose input could be taken")
    caught: list[Tensor] = []
    hook = dense[-1].register_forward_pre_hook(lambda _, given: caught.append(given[0].flatten(1)))
    training = {layer: layer.training for layer in module.modules()}
    try:
        module.eval()
        with torch.no_grad():
            for part in torch.split(inputs, batch_size):
                module(part)
    finally:
        hook.remove()
        for layer, mode in training.items():
            layer.training = mode
    return torch.cat(caught)
