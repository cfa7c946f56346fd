"""Training loops of others, each with the truth it knows about itself: one line of JSON at the end.

    python loops.py lightning|transformers|plain
"""
import json
import sys

import torch
from torch import nn


def data():
    return torch.utils.data.TensorDataset(torch.randn(32, 8), torch.randint(0, 4, (32,)))


def model():
    return nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 4))


def lightning():
    import warnings
    import logging
    warnings.simplefilter("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    import lightning.pytorch as pl
    import vramscope.lightning

    class Lit(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = model()

        def training_step(self, batch, index):
            return nn.functional.cross_entropy(self.net(batch[0]), batch[1])

        def validation_step(self, batch, index):
            self.log("loss", nn.functional.cross_entropy(self.net(batch[0]), batch[1]))

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters())

    memory = vramscope.lightning.MemoryCallback(target_batches=[1])
    trainer = pl.Trainer(max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
                         enable_model_summary=False, callbacks=[memory], num_sanity_val_steps=0)
    loader = torch.utils.data.DataLoader(data(), batch_size=8)
    trainer.fit(Lit(), loader, loader)
    return {"rows": [list(row) for row in memory.rows], "callbacks": [type(c).__name__ for c in trainer.callbacks],
            "steps": trainer.global_step}


def transformers():
    import transformers
    import vramscope.transformers
    config = transformers.GPT2Config(n_layer=2, n_head=2, n_embd=32, vocab_size=64, n_positions=32)
    net = transformers.GPT2LMHeadModel(config)
    rows = [{"input_ids": torch.randint(0, 64, (16,)), "labels": torch.randint(0, 64, (16,))} for _ in range(24)]
    memory = vramscope.transformers.MemoryCallback(target_batches="all")
    arguments = transformers.TrainingArguments(output_dir=sys.argv[2], per_device_train_batch_size=4, num_train_epochs=2, report_to=[],
                                               save_strategy="no", logging_strategy="no", disable_tqdm=True, use_cpu=True,
                                               gradient_accumulation_steps=2)
    trainer = transformers.Trainer(net, arguments, train_dataset=rows, callbacks=[memory])
    trainer.train()
    return {"steps": trainer.state.global_step, "rows": [list(row) for row in memory.rows]}


def plain():
    import vramscope.torch
    net = model()
    optimizer = torch.optim.Adam(net.parameters())
    vramscope.torch.watch(net, optimizer)
    log = vramscope.torch.MemoryLog(target_batches="all")
    for step, (x, y) in enumerate(torch.utils.data.DataLoader(data(), batch_size=8), 1):
        log.read("train", 1, step, "begin")
        nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()
        optimizer.zero_grad()
        log.read("train", 1, step, "end")
    return {"rows": [list(row) for row in log.rows], "table": log.table()}


print(json.dumps({"lightning": lightning, "transformers": transformers, "plain": plain}[sys.argv[1]]()))
