"""Poisoned training: each step of it is a method that an attack may override."""

from dataclasses import dataclass, field

import torch
from tests.attacks.situations import FEDERATION, context, trainer, update_of

from datadefense.attacks.base import seed_module
from datadefense.attacks.poisoned_training import PoisonedTraining
from datadefense.core.local_training import Sgd, plain_loss

START = FEDERATION.start


def test_by_itself_it_trains_as_honest_clients_do_on_clean_and_poisoned():
    where, worker, data = context(), trainer(), FEDERATION.attacker_data
    sent = update_of(PoisonedTraining(), where=where)
    seed_module(where)
    worker.load(START)
    worker.train(where.training, data.mixed(), where.generator("order"))
    assert torch.equal(sent, worker.write_update(START, torch.empty_like(START)))


@dataclass(frozen=True)
class Overridden(PoisonedTraining):
    """Writes down when each of its steps is called, and where the module is then."""

    called: list = field(default_factory=list)

    def note(self, name, worker):
        moved = worker.write_update(START, torch.empty_like(START))
        self.called.append((name, bool(moved.any())))

    def training(self, context):
        return Sgd(2, 20, 0.1)

    def examples(self, data, context):
        return data.clean

    def loss(self, trainer, data, context):
        self.note("loss", trainer)

        def doubled(module, inputs, labels):
            self.called.append(("batch", len(labels)))
            return 2 * plain_loss(module, inputs, labels)

        return doubled

    def before_step(self, trainer, context):
        self.note("before_step", trainer)
        return lambda: self.called.append(("gradients", trainer.tensors[0].grad is not None))

    def after_step(self, trainer, data, context):
        return lambda step, last: self.called.append(("after", step, last))

    def finish(self, update, trainer, data, context):
        self.called.append(("finish", bool(update.any())))
        return torch.full_like(update, 7.0)


def test_every_step_is_called_in_its_place():
    """The loss is made with the global model loaded; 20 clean examples are one batch."""
    attack = Overridden()
    sent = update_of(attack)
    pass_ = [("batch", 20), ("gradients", True), ("after", 0, True)]
    made = [("loss", False), ("before_step", False)]
    assert attack.called == [*made, *pass_, *pass_, ("finish", True)]
    assert bool((sent == 7.0).all())
