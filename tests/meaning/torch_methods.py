"""Ways to train as pytorch/examples and other tutorials show them, with data made up and few steps: no trouble in any."""
import os

import torch
import torch._dynamo  # what the first optimizer imports: here it is done once for all programs
from torch import nn
from torch.nn import functional as F

from corpus import program, run_all

STEPS = 10
PEAKS = ("peak-is-start", "peak-is-evaluation")        # true of examples that test after a short training


def net(width=256, entry=64, classes=10):
    return nn.Sequential(nn.Linear(entry, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, classes))


def step_of(optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


@program("tutorial", steps=STEPS, also=PEAKS)
def contrastive_learning_with_two_encoders():
    """One encoder learns, the other follows it without gradients, and a queue of fixed size keeps earlier results."""
    query, key = net(classes=32), net(classes=32)
    key.load_state_dict(query.state_dict())
    for parameter in key.parameters():
        parameter.requires_grad = False
    optimizer, queue = torch.optim.SGD(query.parameters(), lr=0.03, momentum=0.9), F.normalize(torch.randn(512, 32))
    for i in range(STEPS):
        x = torch.randn(64, 64)
        q = F.normalize(query(x + 0.1 * torch.randn_like(x)))
        with torch.no_grad():
            for mine, theirs in zip(key.parameters(), query.parameters()):
                mine.mul_(0.99).add_(theirs, alpha=0.01)
            k = F.normalize(key(x + 0.1 * torch.randn_like(x)))
        logits = torch.cat([(q * k).sum(1, keepdim=True), q @ queue.T], 1) / 0.07
        step_of(optimizer, F.cross_entropy(logits, torch.zeros(64, dtype=torch.long)))
        queue[i % 8 * 64:i % 8 * 64 + 64] = k


@program("tutorial", steps=24, also=PEAKS)
def q_learning_with_a_replay_buffer():
    """The buffer fills up to its limit and then replaces its oldest rows."""
    import collections
    import random
    policy, target, memory = net(entry=8, classes=2), net(entry=8, classes=2), collections.deque(maxlen=32)
    optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-4, amsgrad=True)
    state = torch.rand(1, 8)
    for frame in range(40):
        with torch.no_grad():
            action = policy(state).max(1).indices.view(1, 1)
        after = torch.rand(1, 8)
        memory.append((state, action, after, torch.ones(1)))
        state = after
        if len(memory) <= 16:
            continue
        states, actions, nexts, rewards = (torch.cat(part) for part in zip(*random.sample(memory, 16)))
        with torch.no_grad():
            wanted = rewards + 0.99 * target(nexts).max(1).values
        loss = F.smooth_l1_loss(policy(states).gather(1, actions), wanted.unsqueeze(1))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_value_(policy.parameters(), 100)
        optimizer.step()
        if frame % 10 == 9:
            target.load_state_dict(policy.state_dict())


@program("tutorial", steps=STEPS, also=PEAKS)
def diffusion():
    class Denoiser(nn.Module):
        def __init__(self):
            super().__init__()
            self.time, self.enter, self.leave = nn.Linear(1, 16), nn.Conv2d(1, 16, 3, padding=1), nn.Conv2d(16, 1, 3, padding=1)

        def forward(self, x, time):
            return self.leave(F.silu(self.enter(x) + self.time(time)[:, :, None, None]))

    model, left = Denoiser(), torch.linspace(0.99, 0.01, 100)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(STEPS):
        x, at = torch.randn(32, 1, 16, 16), torch.randint(0, 100, (32,))
        noise, kept = torch.randn_like(x), left[at][:, None, None, None]
        step_of(optimizer, F.mse_loss(model(kept.sqrt() * x + (1 - kept).sqrt() * noise, at[:, None] / 100), noise))
    with torch.no_grad():
        x = torch.randn(4, 1, 16, 16)
        for at in range(9, -1, -1):
            x = x - 0.1 * model(x, torch.full((4, 1), at / 10))


class Lora(nn.Module):
    def __init__(self, inner, rank=4):
        super().__init__()
        self.inner, self.down, self.up = inner, nn.Linear(inner.in_features, rank, bias=False), nn.Linear(rank, inner.out_features, bias=False)
        nn.init.zeros_(self.up.weight)
        for parameter in inner.parameters():
            parameter.requires_grad = False

    def forward(self, x):
        return self.inner(x) + self.up(self.down(x))


@program("tutorial", steps=STEPS, also=PEAKS)
def fine_tuning_with_lora():
    """Most parameters have neither a gradient nor a place in the optimizer."""
    model = nn.Sequential(Lora(nn.Linear(64, 512)), nn.ReLU(), Lora(nn.Linear(512, 512)), nn.ReLU(), Lora(nn.Linear(512, 10)))
    optimizer = torch.optim.AdamW([parameter for parameter in model.parameters() if parameter.requires_grad])
    for _ in range(STEPS):
        step_of(optimizer, F.cross_entropy(model(torch.randn(64, 64)), torch.randint(0, 10, (64,))))


@program("tutorial", steps=STEPS, also=PEAKS)
def mixed_precision_with_a_scaler():
    model = net()
    optimizer, scaler = torch.optim.Adam(model.parameters()), torch.amp.GradScaler("cpu")
    for _ in range(STEPS):
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = F.cross_entropy(model(torch.randn(64, 64)), torch.randint(0, 10, (64,)))
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()


@program("tutorial", steps=2 * STEPS, also=PEAKS)
def loader_with_workers():
    from torch.utils.data import DataLoader, TensorDataset
    data = DataLoader(TensorDataset(torch.randn(640, 64), torch.randint(0, 10, (640,))), batch_size=64, shuffle=True, num_workers=2)
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(2):
        for x, y in data:
            step_of(optimizer, F.cross_entropy(model(x), y))


@program("tutorial", steps=STEPS, also=PEAKS)
def data_parallel_in_one_process():
    import torch.distributed as distributed
    os.environ.update(MASTER_ADDR="127.0.0.1", RANK="0", WORLD_SIZE="1")
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    model = nn.parallel.DistributedDataParallel(net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(STEPS):
        step_of(optimizer, F.cross_entropy(model(torch.randn(64, 64)), torch.randint(0, 10, (64,))))
    distributed.destroy_process_group()


@program("tutorial", steps=STEPS, also=PEAKS)
def speech_with_ctc():
    class Recognizer(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn, self.head = nn.GRU(20, 64, bidirectional=True), nn.Linear(128, 12)

        def forward(self, x):
            return F.log_softmax(self.head(self.rnn(x)[0]), -1)

    model = Recognizer()
    optimizer, loss_of = torch.optim.Adam(model.parameters()), nn.CTCLoss()
    for _ in range(STEPS):
        x, y = torch.randn(50, 16, 20), torch.randint(1, 12, (16, 8))
        step_of(optimizer, loss_of(model(x), y, torch.full((16,), 50), torch.full((16,), 8)))


@program("tutorial", steps=STEPS, also=PEAKS)
def siamese_with_triplets():
    model = nn.Sequential(nn.Conv2d(1, 8, 3, 2), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 13 * 13, 32))
    optimizer, loss_of = torch.optim.Adadelta(model.parameters()), nn.TripletMarginLoss()
    for _ in range(STEPS):
        step_of(optimizer, loss_of(*(model(torch.randn(32, 1, 28, 28)) for _ in range(3))))


@program("tutorial", steps=STEPS, also=PEAKS)
def actor_and_critic():
    """One body with two heads; values and log probabilities are collected over an episode."""
    class Policy(nn.Module):
        def __init__(self):
            super().__init__()
            self.affine, self.action, self.value = nn.Linear(16, 128), nn.Linear(128, 4), nn.Linear(128, 1)

        def forward(self, x):
            x = F.relu(self.affine(x))
            return F.softmax(self.action(x), -1), self.value(x)

    model, saved, rewards = Policy(), [], []
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-2)
    for _ in range(STEPS):
        for _ in range(30):
            probabilities, value = model(torch.randn(16))
            chosen = torch.distributions.Categorical(probabilities)
            saved.append((chosen.log_prob(chosen.sample()), value))
            rewards.append(1.0)
        step_of(optimizer, torch.stack([-log * (r - value.item()) for (log, value), r in zip(saved, rewards)]).sum()
                + torch.stack([F.smooth_l1_loss(value, torch.tensor([r])) for (_, value), r in zip(saved, rewards)]).sum())
        del saved[:], rewards[:]


@program("clean", steps=3 * STEPS)
def losses_kept_as_tensors():
    """One number per step is no trouble."""
    model, losses = net(), []
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for _ in range(3 * STEPS):
        loss = model(torch.ones(128, 64)).square().mean()
        step_of(optimizer, loss)
        losses.append(loss.detach())


@program("tutorial", steps=STEPS, also=PEAKS)
def blocks_recomputed_one_by_one():
    """Nobody calls the model: its blocks are called in groups, and again in the backward pass."""
    from torch.utils.checkpoint import checkpoint_sequential
    model, head = nn.Sequential(*(nn.Sequential(nn.Linear(64, 64), nn.ReLU()) for _ in range(4))), nn.Linear(64, 10)
    optimizer = torch.optim.Adam([*model.parameters(), *head.parameters()])
    for _ in range(STEPS):
        features = checkpoint_sequential(model, 2, torch.randn(64, 64, requires_grad=True), use_reentrant=True)
        step_of(optimizer, F.cross_entropy(head(features), torch.randint(0, 10, (64,))))
    return [path for path, _ in model.named_modules() if path] + ["Sequential", "Linear"]


if __name__ == "__main__":
    run_all()
