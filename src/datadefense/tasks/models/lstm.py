"""A two-layer LSTM that classifies rows of word numbers by its last state.

The paper's model for tweets (setup 6): embedding 200, two layers of 200, dropout 0.5 between them
and before the head. Differs in the head: the authors have one sigmoid output and a binary
cross-entropy; here there is a logit a class, so that cross-entropy, softmax and every defense work
as with the other models (two logits z give the sigmoid of z_1 - z_0). And each batch begins with a
zero state, while theirs hands the state on from batch to batch.
"""

from jaxtyping import Float, Int
from torch import Tensor, nn

from datadefense.core.settings import check_float, check_int

PADDING = 0
"""The number of padding in `datadefense.data.text`."""


class LstmClassifier(nn.Module):
    """Embedding, LSTM, dropout, dense layer.

    Rows are padded on the left, so the last step has read every word. Padding has the zero vector,
    which is not trained, but it is read like a word.

    Args:
        num_words: numbers there are, padding and unknown included: ``len(vocabulary)``.
        classes: number of logits.
        embedding: length of a word's vector.
        hidden: length of a layer's state.
        layers: number of LSTM layers.
        dropout: share that is dropped between layers and before the head.
    """

    def __init__(
        self,
        num_words: int,
        *,
        classes: int = 2,
        embedding: int = 200,
        hidden: int = 200,
        layers: int = 2,
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        for name, value in (
            ("num_words", num_words),
            ("classes", classes),
            ("embedding", embedding),
            ("hidden", hidden),
            ("layers", layers),
        ):
            check_int(name, value, 1)
        check_float("dropout", dropout, minimum=0, below=1)
        self.embedding = nn.Embedding(num_words, embedding, padding_idx=PADDING)
        self.lstm = nn.LSTM(
            embedding,
            hidden,
            num_layers=layers,
            batch_first=True,
            dropout=dropout if layers > 1 else 0.0,
        )
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(hidden, classes)

    def forward(self, words: Int[Tensor, "texts length"]) -> Float[Tensor, "texts classes"]:
        """Return the logits of each row."""
        states, _ = self.lstm(self.embedding(words))
        logits: Tensor = self.head(self.dropout(states[:, -1]))
        return logits
