"""The latest model of a run: the parameters of its last checkpoint."""

import json
from pathlib import Path

from jaxtyping import Float
from torch import Tensor

from datadefense.core import tensor_file
from datadefense.core.foreign import error_text
from datadefense.core.predictor import Layout
from datadefense.core.round_files import FileError
from datadefense.core.storage import FORMAT
from datadefense.runs.files import CHECKPOINT


def run_model(folder: Path, layout: Layout) -> Float[Tensor, " dim"]:
    """Return the parameters of a run's last checkpoint, whatever its defense remembers."""
    path = folder / CHECKPOINT
    if not path.is_file():
        raise FileError(f"{folder} holds no run with a checkpoint: there is no {CHECKPOINT}")
    try:
        content = tensor_file.read_content(path)
        file = tensor_file.parse(content)
        if file.metadata.get("format") == FORMAT:
            tensor_file.check_seal(content, file.metadata)
        name = json.loads(file.metadata["tree"])["fields"]["params"]["tensor"]
        params = file.tensors[name].clone()
    except Exception as error:
        raise FileError(f"{path} is not a readable checkpoint: {error_text(error)}") from error
    if params.shape != (layout.dim,) or not bool(params.isfinite().all()):
        raise FileError(
            f"{path} must hold {layout.dim} finite parameters, as this task's model has; it has "
            f"a tensor {list(params.shape)}"
        )
    return params.to(layout.dtype)
