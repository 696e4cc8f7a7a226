"""A Flower strategy that lets a defense decide what the next model is."""

import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg, Result, Strategy
from torch import nn

from datadefense.core.buffers import BufferPolicy
from datadefense.core.defend import defend, model_to_send
from datadefense.core.defense import Defense
from datadefense.core.defense_set import DefenseSet
from datadefense.core.examples import Examples
from datadefense.core.gate import Sends
from datadefense.core.run_state import RunState
from datadefense.core.sent_kind import wrong_kind
from datadefense.core.settings import check_float, check_int
from datadefense.defenses import create
from datadefense.flower.audit import audit_line
from datadefense.flower.cost import Cost
from datadefense.flower.folder import one_writer, store_round
from datadefense.flower.nodes import (
    FixedNodesGrid,
    logger,
    wait_for_nodes,
    wanted_nodes,
    with_minima_at_most,
)
from datadefense.flower.post import Post
from datadefense.flower.replies import addresses, by_node, submission_of
from datadefense.flower.reported_metrics import ReportedMetrics
from datadefense.flower.resumed import app_name, log_what_is_left, renumbered
from datadefense.flower.session import Session, SessionSettings, open_session
from datadefense.kernels.memory import peak_memory_mb
from datadefense.kernels.spill import Spill


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
        if clean is None and defense_set is not None:
            clean = defense_set.examples.take(defense_set.known_clean.nonzero().flatten())
        self.settings = SessionSettings(
            defense=self.defense,
            model=model,
            defense_set=defense_set,
            clean=clean,
            seed=seed,
            buffers=buffers,
            sends=sends,
            max_examples=max_examples,
            folder=None if folder is None else Path(folder),
            spill=spill,
        )
        check_int("min_nodes", min_nodes, 1)
        check_float("wait_seconds", wait_seconds, minimum=0)
        self.min_nodes, self.wait_seconds = min_nodes, wait_seconds
        self.run, self.tell = run, tell
        self.arrays_key = str(getattr(self.inner, "arrayrecord_key", "arrays"))
        count_key = str(getattr(self.inner, "weighted_by_key", "num-examples"))
        self.metrics = ReportedMetrics(self.inner, count_key, max_examples)
        self._session: Session | None = None
        self._held = ExitStack()

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
        self._session = None
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
        session = self._opened(initial_arrays, grid)
        before = session.rounds_before
        arrays = initial_arrays if before == 0 else session.record(session.state.params)
        log_what_is_left(self.settings.folder, before, num_rounds)

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
        session = self._opened(arrays, grid)
        nodes = self._nodes(grid)
        inner = with_minima_at_most(self.inner, len(nodes))
        index = self._index(server_round)
        state, layout = session.state, session.gate.layout
        session.sent_params = model_to_send(
            self.defense, state.state, state.params, session.server, index=index, layout=layout
        )
        if session.sent_params is not state.params:
            arrays = session.record(session.sent_params)
        messages = inner.configure_train(index, arrays, config, FixedNodesGrid(grid, nodes))
        session.sent = list(messages)
        return session.sent

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Let the gate and the defense make the next model of the replies."""
        session = self._session
        if session is None:
            raise RuntimeError("aggregate_train was called before configure_train")
        began = time.perf_counter()
        index = self._index(server_round)
        received = by_node(replies, addresses(session.sent))
        count_key = self.metrics.count_key
        submissions = (submission_of(reply, self.arrays_key, count_key) for reply in received)
        admission = session.gate.admit(
            index, session.sent_params, submissions, expected=len(session.sent)
        )
        if index == 1 and (problem := wrong_kind(admission, self.settings.sends)):
            logger.warning("round 1: %s", problem)
        state = session.state
        result = defend(self.defense, state.state, admission, state.params, session.server)
        cost = Cost(time.perf_counter() - began, peak_memory_mb())
        for rejection in admission.rejected:
            node, reason = rejection.client_id, rejection.reason
            logger.warning("round %d: node %s rejected: %s", index, node, reason)
        session.state = RunState(result.params, result.state, index, session.server.seed)
        metrics = self.metrics.of_training(received, result)
        metrics["defense-seconds"] = cost.seconds
        self._keep(session, audit_line(index, result, cost))
        return session.record(result.params), metrics

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Choose nodes as the inner strategy does; none where there are too few."""
        if getattr(self.inner, "fraction_evaluate", 1.0) == 0.0:
            return []
        nodes = sorted(grid.get_node_ids())
        inner = with_minima_at_most(self.inner, len(nodes))
        index = self._index(server_round)
        messages = list(
            inner.configure_evaluate(index, arrays, config, FixedNodesGrid(grid, nodes))
        )
        if self._session is not None:
            self._session.evaluated = messages
        return messages

    def aggregate_evaluate(
        self, server_round: int, replies: Iterable[Message]
    ) -> MetricRecord | None:
        """Let the inner strategy average the metrics that agree in form; it may fail to."""
        sent = addresses(self._session.evaluated if self._session is not None else ())
        return self.metrics.of_evaluation(self._index(server_round), by_node(replies, sent))

    def _opened(self, arrays: ArrayRecord, grid: Grid) -> Session:
        """Return the session; the first time, take the folder and make one."""
        if self._session is None:
            if self.settings.folder is not None:
                self._held.enter_context(one_writer(self.settings.folder))
            run = app_name(grid) if self.run is None else self.run
            self._session = open_session(self.settings, arrays, run)
        return self._session

    def _index(self, server_round: int) -> int:
        """Return a round's number in the whole run: Flower counts from 1 in each process."""
        return server_round + (0 if self._session is None else self._session.rounds_before)

    def _nodes(self, grid: Grid) -> list[int]:
        wanted = max(wanted_nodes(self.inner), self.min_nodes)
        return wait_for_nodes(grid, wanted, self.min_nodes, self.wait_seconds)

    def _keep(self, session: Session, line: dict[str, Any]) -> None:
        """Tell who wants to know, then store the round."""
        if self.tell is not None:
            try:
                self.tell(line)
            except Exception:
                logger.exception("round %d could not be told", session.state.round)
        if self.settings.folder is not None:
            store_round(self.settings.folder, session.state, session.fingerprint, line)
