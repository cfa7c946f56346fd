"""More ways to train as pytorch/examples show them, with data made up and few steps."""
import torch
import torch._dynamo  # noqa: F401 - what the first optimizer imports: here it is done once for all programs
from torch import multiprocessing, nn
from torch.nn import functional as F

from corpus import program, run_all

STEPS = 10
PEAKS = ("peak-is-start", "peak-is-evaluation")        # true of examples that test after a short training


class Springs(nn.Module):
    """Where particles start is what it learns; the forward pass is a simulation."""

    def __init__(self, particles):
        super().__init__()
        self.fixed, self.rest = torch.zeros(1, 2), nn.Parameter(torch.randn(particles - 1, 2))
        self.velocities = torch.zeros(particles, 2)

    def forward(self, moments):
        positions, velocities = torch.cat([self.fixed, self.rest]), self.velocities
        for _ in range(moments):
            apart = positions.unsqueeze(0) - positions.unsqueeze(1)
            distance = apart.norm(dim=-1, keepdim=True)
            forces = (10.0 * (distance - 1.0) * apart / (distance + 1e-6)).sum(1)
            forces[:, 1] -= 9.81
            velocities = velocities + forces * 0.01
            positions = positions + velocities * 0.01
            positions[0] = self.fixed[0]
        return positions


@program("tutorial", steps=STEPS, also=PEAKS)
def springs_that_fall():
    system, target = Springs(128), torch.rand(128, 2)
    optimizer = torch.optim.Adam(system.parameters(), lr=0.01)
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = (system(20) - target).pow(2).mean()
        loss.backward()
        optimizer.step()


def digits():
    return nn.Sequential(nn.Conv2d(1, 10, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Conv2d(10, 20, 5), nn.Dropout2d(), nn.MaxPool2d(2), nn.ReLU(), nn.Flatten(),
                         nn.Linear(320, 50), nn.ReLU(), nn.Linear(50, 10), nn.LogSoftmax(1))


def train(model, seed):
    torch.manual_seed(seed)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.5)
    model.train()
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = F.nll_loss(model(torch.rand(64, 1, 28, 28)), torch.randint(0, 10, (64,)))
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        F.nll_loss(model(torch.rand(256, 1, 28, 28)), torch.randint(0, 10, (256,))).item()


@program("tutorial", steps=STEPS, also=PEAKS)
def processes_that_share_a_model():
    """Each trains on its own, without locks; the weights are in shared memory."""
    torch.set_num_threads(1)
    model = digits().share_memory()
    other = multiprocessing.get_context("fork").Process(target=train, args=(model, 1))
    other.start()
    train(model, 0)
    other.join()
    assert other.exitcode == 0


if __name__ == "__main__":
    run_all()
