"""A Flower strategy that lets a defense decide what the next model is."""

import copy
import dataclasses
import secrets
import time
from collections.abc import Callable, Collection, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg, Result, Strategy
from torch import Tensor, nn

from datadefense.core.buffers import BufferPolicy
from datadefense.core.defend import Defended, defend, model_to_send
from datadefense.core.defense import Defense
from datadefense.core.defense_set import DefenseSet
from datadefense.core.examples import Examples
from datadefense.core.fingerprint import Fingerprint
from datadefense.core.gate import Gate, Sends
from datadefense.core.outcomes import Verdict
from datadefense.core.predictor import Layout, predictor
from datadefense.core.round import ClientId
from datadefense.core.run_state import RunState
from datadefense.core.sent_kind import wrong_kind
from datadefense.core.server import Server
from datadefense.core.settings import check_choice, check_float, check_int
from datadefense.defenses import create
from datadefense.flower.arrays import make_record, read_record
from datadefense.flower.audit import audit_line
from datadefense.flower.cost import Cost
from datadefense.flower.folder import keep_round, one_writer, take_up
from datadefense.flower.metrics import agreeing, averaged, first_contents
from datadefense.flower.needs import check_strategy
from datadefense.flower.nodes import Present, content_with, logger, wait_for_nodes, wanted_nodes
from datadefense.flower.post import Post
from datadefense.flower.replies import Reply, addresses, by_node, submission_of
from datadefense.flower.resumed import app_name, log_what_is_left, renumbered
from datadefense.kernels.memory import peak_memory_mb
from datadefense.kernels.spill import Spill


@dataclass(slots=True, eq=False)
class Desk:
    """What the strategy works with in a run, made from the first model that is sent."""

    gate: Gate
    server: Server
    buffers: dict[str, Tensor]
    kept: RunState
    fingerprint: Fingerprint
    sent_params: Tensor
    sent: list[Message]
    evaluated: list[Message]


class DefendedStrategy(Strategy):
    """Put a defense in the place where another strategy averages.

    Sampling, configuration, metrics and evaluation stay those of ``inner``. The model that was sent
    is remembered, every reply passes the gate on its own, and one bad reply never ends a run. The
    node id is the identity of a reply; it is not trusted, and no defense depends on it.

    Args:
        defense: a defense, or the name of one.
        inner: the strategy whose averaging is replaced; by default Flower's FedAvg.
        model: the architecture, for defenses that try models out on the server.
        defense_set: the server's examples, for DataDefense.
        clean: examples known to be clean, for FLTrust; by default those of the defense set.
        seed: root of the defense's randomness. None, the default, draws a secret one, which the
            state remembers: who knows it can foresee noise and first weights.
        buffers: what happens to BatchNorm's statistics and to integer arrays: ``aggregate`` the
            floating ones (integer ones stay), ``keep`` the server's, or ``refuse`` the model; see
            `datadefense.core.buffers`. The log says which.
        sends: what nodes reply with: their whole ``models``, as Flower's own strategies expect, or
            ``updates``, which loses no bits to a sum and a difference.
        max_examples: greatest number of examples that a node may claim.
        min_nodes: fewest nodes that a round is run with; below, the run ends with an error.
        wait_seconds: how long to wait for the nodes that ``inner`` wants, each round.
        folder: where state and audit trail are kept; None keeps nothing. A run that finds a state
            there goes on from it; a folder that another strategy is at work in is refused, and so
            is the state of another run: other defense, settings, tensors, or name of the run.
        run: name of the run; None, the default, is the name of the app, as Flower knows it.
        tell: called with each line of the audit trail, for a dashboard; see
            `datadefense.flower.prometheus`. Whatever it raises is logged, and the run goes on.
        spill: where a matrix of updates goes that is too large for memory; None keeps it there.
            Flower itself holds the replies of a round in memory, which this does not change.
    """

    def __init__(
        self,
        defense: Defense[Any] | str,
        *,
        inner: Strategy | None = None,
        model: nn.Module | None = None,
        defense_set: DefenseSet | None = None,
        clean: Examples | None = None,
        seed: int | None = None,
        buffers: BufferPolicy = "aggregate",
        sends: Sends = "models",
        max_examples: int = 1_000_000,
        min_nodes: int = 2,
        wait_seconds: float = 60.0,
        folder: Path | str | None = None,
        run: str | None = None,
        tell: Callable[[dict[str, Any]], None] | None = None,
        spill: Spill | None = None,
    ) -> None:
        self.defense = create(defense) if isinstance(defense, str) else defense
        self.inner = FedAvg() if inner is None else inner
        self.model, self.defense_set, self.clean = model, defense_set, clean
        if clean is None and defense_set is not None:
            self.clean = defense_set.examples.take(defense_set.known_clean.nonzero().flatten())
        check_strategy(self.defense, model, self.clean, defense_set)
        self.seed, self.buffers, self.max_examples = seed, buffers, max_examples
        self.sends = sends
        check_choice("sends", sends, get_args(Sends))
        self.min_nodes, self.wait_seconds = min_nodes, wait_seconds
        check_int("min_nodes", min_nodes, 1)
        check_int("max_examples", max_examples, 1)
        check_float("wait_seconds", wait_seconds, minimum=0)
        self.folder = None if folder is None else Path(folder)
        self.run = run
        self.tell, self.spill = tell, spill
        self.arrays_key = str(getattr(self.inner, "arrayrecord_key", "arrays"))
        self.count_key = str(getattr(self.inner, "weighted_by_key", "num-examples"))
        self._desk: Desk | None = None
        self._held = ExitStack()
        self._before = 0

    def summary(self) -> None:
        """Log which defense runs, then what the inner strategy has to say."""
        logger.info("defense: %s", self.defense)
        self.inner.summary()

    def start(  # noqa: PLR0917 - the signature is Flower's
        self,
        grid: Grid,
        initial_arrays: ArrayRecord,
        num_rounds: int = 3,
        timeout: float = 3600,
        train_config: ConfigRecord | None = None,
        evaluate_config: ConfigRecord | None = None,
        evaluate_fn: Callable[[int, ArrayRecord], MetricRecord | None] | None = None,
    ) -> Result:
        """Run the rounds as Flower does; with a state in the folder, those that are left."""
        self.close()
        try:
            return self._started(
                Post(grid),
                initial_arrays,
                num_rounds,
                timeout,
                train_config,
                evaluate_config,
                evaluate_fn,
            )
        finally:
            self.close()

    def close(self) -> None:
        """Let others have the folder. `start` does so by itself in the end."""
        self._desk = None
        self._held.close()

    def _started(  # noqa: PLR0917 - the signature is Flower's
        self,
        grid: Grid,
        initial_arrays: ArrayRecord,
        num_rounds: int,
        timeout: float,
        train_config: ConfigRecord | None,
        evaluate_config: ConfigRecord | None,
        evaluate_fn: Callable[[int, ArrayRecord], MetricRecord | None] | None,
    ) -> Result:
        self._desk = self._open(initial_arrays, grid)
        before = self._before
        arrays = initial_arrays if before == 0 else self._record(self._desk, self._desk.kept.params)
        log_what_is_left(self.folder, before, num_rounds)

        def evaluate(index: int, current: ArrayRecord) -> MetricRecord | None:
            return None if evaluate_fn is None else evaluate_fn(index + before, current)

        result = Strategy.start(
            self,
            grid,
            arrays,
            max(0, num_rounds - before),
            timeout,
            train_config,
            evaluate_config,
            evaluate,
        )
        if before >= num_rounds:
            result.arrays = arrays
        return renumbered(result, before)

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Choose nodes as the inner strategy does, among those that are there in time."""
        desk = self._desk or self._open(arrays, grid)
        self._desk = desk
        nodes = self._nodes(grid)
        inner = content_with(self.inner, len(nodes))
        index = server_round + self._before
        kept, layout = desk.kept, desk.gate.layout
        desk.sent_params = model_to_send(
            self.defense, kept.state, kept.params, desk.server, index=index, layout=layout
        )
        if desk.sent_params is not kept.params:
            arrays = self._record(desk, desk.sent_params)
        messages = inner.configure_train(index, arrays, config, Present(grid, nodes))
        desk.sent = list(messages)
        return desk.sent

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Let the gate and the defense make the next model of the replies."""
        desk = self._desk
        if desk is None:
            raise RuntimeError("aggregate_train was called before configure_train")
        began = time.perf_counter()
        index = server_round + self._before
        came = by_node(replies, addresses(desk.sent))
        submissions = (submission_of(reply, self.arrays_key, self.count_key) for reply in came)
        admission = desk.gate.admit(index, desk.sent_params, submissions, expected=len(desk.sent))
        if index == 1 and (problem := wrong_kind(admission, self.sends)):
            logger.warning("round 1: %s", problem)
        result = defend(self.defense, desk.kept.state, admission, desk.kept.params, desk.server)
        cost = Cost(time.perf_counter() - began, peak_memory_mb())
        for one in admission.rejected:
            logger.warning("round %d: node %s rejected: %s", index, one.client_id, one.reason)
        desk.kept = RunState(result.params, result.state, index, desk.server.seed)
        metrics = self._metrics(came, result)
        metrics["defense-seconds"] = cost.seconds
        self._keep(desk, audit_line(index, result, cost))
        return self._record(desk, desk.kept.params), metrics

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Choose nodes as the inner strategy does; none where there are too few."""
        if getattr(self.inner, "fraction_evaluate", 1.0) == 0.0:
            return []
        nodes = sorted(grid.get_node_ids())
        inner = content_with(self.inner, len(nodes))
        index = server_round + self._before
        messages = list(inner.configure_evaluate(index, arrays, config, Present(grid, nodes)))
        if self._desk is not None:
            self._desk.evaluated = messages
        return messages

    def aggregate_evaluate(
        self, server_round: int, replies: Iterable[Message]
    ) -> MetricRecord | None:
        """Let the inner strategy average the metrics that agree in form; it may fail to."""
        index = server_round + self._before
        sent = addresses(self._desk.evaluated if self._desk is not None else ())
        came = by_node(replies, sent)
        contents = list(first_contents(came).values())
        agreed = agreeing(contents, self.count_key, self.max_examples)
        if len(agreed) < len(came):
            logger.warning(
                "round %d: %d of %d evaluations are left out: an error, another form than the "
                "rest, or a count of examples beyond 1..%d",
                index,
                len(came) - len(agreed),
                len(came),
                self.max_examples,
            )
        return averaged(
            f"evaluations of round {index}",
            lambda: self.inner.aggregate_evaluate(index, agreed),
        )

    def _open(self, arrays: ArrayRecord, grid: Grid) -> Desk:
        """Take the folder, read the first model, prepare the defense, take up a state."""
        if self.folder is not None:
            self._held.enter_context(one_writer(self.folder))
        tensors = {name: tensor.clone() for name, tensor in read_record(arrays).items()}
        known = () if self.model is None else [name for name, _ in self.model.named_buffers()]
        layout = Layout.of_state_dict(tensors, self.buffers, known)
        if line := layout.about_buffers():
            logger.info("%s", line)
        params = layout.flatten(tensors)
        buffers = {name: tensors[name] for name in layout.kept}
        predict = None if self.model is None else predictor(_with(self.model, buffers), layout)
        seed = secrets.randbits(63) if self.seed is None else self.seed
        server = Server(predict, self.clean, seed, self.defense_set)
        kept = RunState(params, self.defense.init(server, params), 0, seed)
        run = app_name(grid) if self.run is None else self.run
        fingerprint = Fingerprint.of(self.defense, layout, run)
        if self.folder is not None:
            kept = take_up(self.folder, kept, fingerprint)
        self._before = kept.round
        if self.seed is None:
            server = dataclasses.replace(server, seed=kept.seed)
        gate = Gate(layout, max_examples=self.max_examples, sends=self.sends, spill=self.spill)
        return Desk(gate, server, buffers, kept, fingerprint, kept.params, [], [])

    def _nodes(self, grid: Grid) -> list[int]:
        wanted = max(wanted_nodes(self.inner), self.min_nodes)
        return wait_for_nodes(grid, wanted, self.min_nodes, self.wait_seconds)

    def _record(self, desk: Desk, params: Tensor) -> ArrayRecord:
        return make_record({**desk.gate.layout.unflatten(params), **desk.buffers})

    def _keep(self, desk: Desk, line: dict[str, Any]) -> None:
        """Tell who wants to know, then store the round."""
        if self.tell is not None:
            try:
                self.tell(line)
            except Exception:
                logger.exception("round %d could not be told", desk.kept.round)
        if self.folder is not None:
            keep_round(self.folder, desk.kept, desk.fingerprint, line)

    def _metrics(self, came: list[Reply], result: Defended[Any]) -> MetricRecord:
        """Return the inner strategy's metrics of those admitted, and the defense's own."""
        verdicts = [one.verdict for one in result.outcomes]
        admitted = [one for one in result.outcomes if one.verdict is not Verdict.REJECTED]
        metrics = self._train_metrics(came, {one.client for one in admitted}) or MetricRecord()
        metrics["defense-admitted"] = len(admitted)
        metrics["defense-rejected"] = verdicts.count(Verdict.REJECTED)
        if admitted:
            metrics["defense-excluded"] = verdicts.count(Verdict.EXCLUDED)
        if result.weights is not None:
            metrics["defense-weights"] = [float(weight) for weight in result.weights]
            metrics["defense-nodes"] = [int(one.client) for one in admitted]
        return metrics

    def _train_metrics(self, came: list[Reply], ids: Collection[ClientId]) -> MetricRecord | None:
        average = getattr(self.inner, "train_metrics_aggr_fn", None)
        messages = [one for node, one in first_contents(came).items() if node in ids]
        agreed = agreeing(messages, self.count_key, self.max_examples)
        if average is None or not agreed:
            return None
        contents = [message.content for message in agreed]
        return averaged("metrics of training", lambda: average(contents, self.count_key))


def _with(model: nn.Module, buffers: dict[str, Tensor]) -> nn.Module:
    """Return a copy of the model with the buffers that nodes are sent: its own may be others."""
    model = copy.deepcopy(model)
    model.load_state_dict(buffers, strict=False)
    return model
