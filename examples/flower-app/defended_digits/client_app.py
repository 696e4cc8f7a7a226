"""The node: train the model that came on one's own examples, and send it back."""

import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from datadefense.core.rng import generator
from defended_digits import hostile, task

app = ClientApp()


@app.train()
def train(message: Message, context: Context) -> Message:
    """Train honestly, unless the run's configuration says that this node does not."""
    torch.set_num_threads(1)  # several nodes may share this machine
    config, seed = context.run_config, int(context.run_config["seed"])
    node, nodes = (int(context.node_config[key]) for key in ("partition-id", "num-partitions"))
    index = int(message.content["config"]["server-round"])
    if node == config["garbage"]:
        return hostile.garbage(message, index)

    model = task.material(seed).module
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    examples = task.shard(seed, node, nodes)
    if node == config["malicious"]:
        state, count = hostile.attack(model, len(examples) * nodes, nodes, index, seed)
    else:
        state = task.train(model, examples, generator(seed, "client", index, node))
        count = len(examples)

    content = {"arrays": ArrayRecord(state), "metrics": MetricRecord({"num-examples": count})}
    return Message(RecordDict(content), reply_to=message)
