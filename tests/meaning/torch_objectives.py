"""Programs of PyTorch's tutorials that train other things than one model by one loss: pictures, inner loops, weights as arguments. No trouble in any, and
the modules of the model."""
import copy

import torch
from torch import nn
from torch.nn import functional as F

from corpus import program, run_all

STEPS, BATCH = 12, 16


def of(model):
    """The modules by their paths, and the class for what the model computes between them."""
    return [*(name for name, _ in model.named_modules() if name), type(model).__name__]


def pictures(size=32, batch=BATCH):
    return torch.randn(batch, 3, size, size)


def convnet(classes=10):
    return nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Conv2d(16, 32, 3, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, classes))


@program("tutorial", steps=STEPS)
def style_for_a_network():
    """A network is trained through another one that is frozen and only measures."""
    class Transform(nn.Module):
        def __init__(self):
            super().__init__()
            self.down, self.norm, self.up = nn.Conv2d(3, 16, 3, 2, 1), nn.InstanceNorm2d(16, affine=True), nn.ConvTranspose2d(16, 3, 4, 2, 1)

        def forward(self, x):
            return self.up(F.relu(self.norm(self.down(x))))

    class Features(nn.Module):
        def __init__(self):
            super().__init__()
            self.slice1, self.slice2 = nn.Sequential(nn.Conv2d(3, 16, 3, 1, 1), nn.ReLU()), nn.Sequential(nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU())
            self.requires_grad_(False)

        def forward(self, x):
            first = self.slice1(x)
            return first, self.slice2(first)

    def gram(y):
        flat = y.flatten(2)
        return flat @ flat.transpose(1, 2) / flat.shape[1]

    transform, vgg = Transform(), Features()
    style = [gram(y) for y in vgg(pictures())]
    optimizer = torch.optim.Adam(transform.parameters())
    for _ in range(STEPS):
        optimizer.zero_grad()
        x = pictures()
        y = transform(x)
        seen, wanted = vgg(y), vgg(x)
        loss = F.mse_loss(seen[1], wanted[1]) + sum(F.mse_loss(gram(s), t) for s, t in zip(seen, style))
        loss.backward()
        optimizer.step()
    return of(transform) + of(vgg)


@program("tutorial", steps=STEPS)
def picture_by_lbfgs():
    """The picture is what is trained, by an optimizer that asks for the loss several times in each step."""
    model = convnet()
    model.requires_grad_(False)
    picture = pictures(64, 1).requires_grad_()
    wanted = model(pictures(64, 1))
    optimizer = torch.optim.LBFGS([picture], max_iter=4)

    def closure():
        optimizer.zero_grad()
        loss = F.mse_loss(model(picture), wanted)
        loss.backward()
        return loss

    for _ in range(STEPS):
        optimizer.step(closure)
    return of(model)


@program("tutorial", steps=STEPS)
def attention_on_a_graph():
    class Attention(nn.Module):
        def __init__(self, before, width, heads):
            super().__init__()
            self.weight, self.source, self.target = nn.Linear(before, width * heads, bias=False), nn.Parameter(torch.randn(heads, width)), nn.Parameter(torch.randn(heads, width))
            self.shape = (heads, width)

        def forward(self, nodes, edges):
            h = self.weight(nodes).view(-1, *self.shape)
            scores = F.leaky_relu((h * self.source).sum(-1)[:, None] + (h * self.target).sum(-1)[None], 0.2)
            scores = scores.masked_fill(edges[..., None] == 0, -9e15).softmax(1)
            return torch.einsum("ijh,jhw->ihw", F.dropout(scores, 0.6), h).flatten(1)

    class Gat(nn.Module):
        def __init__(self):
            super().__init__()
            self.gat1, self.gat2 = Attention(64, 8, 4), Attention(32, 7, 1)

        def forward(self, nodes, edges):
            return F.log_softmax(self.gat2(F.elu(self.gat1(nodes, edges)), edges), 1)

    model, nodes, edges, labels = Gat(), torch.randn(200, 64), (torch.rand(200, 200) > 0.9).float(), torch.randint(0, 7, (200,))
    optimizer = torch.optim.Adam(model.parameters(), 5e-3, weight_decay=5e-4)
    for _ in range(STEPS):
        model.train()
        optimizer.zero_grad()
        F.nll_loss(model(nodes, edges)[:140], labels[:140]).backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            model(nodes, edges).argmax(1)
    return of(model)


@program("tutorial", steps=STEPS)
def gradients_used_while_they_arrive():
    """An optimizer for each parameter steps in a hook of the backward pass and drops the gradient at once."""
    model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizers = {parameter: torch.optim.Adam([parameter], foreach=False) for parameter in model.parameters()}

    def apply(parameter):
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(apply)
    for _ in range(STEPS):
        F.cross_entropy(model(torch.randn(64, 256)), torch.randint(0, 10, (64,))).backward()
    return of(model)


@program("tutorial", steps=STEPS)
def learning_to_learn():
    """Weights as arguments: inner steps are differentiated again (MAML)."""
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 5))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for _ in range(STEPS):
        optimizer.zero_grad()
        total = 0.0
        for _ in range(3):
            weights = dict(model.named_parameters())
            for _ in range(2):
                loss = F.cross_entropy(torch.func.functional_call(model, weights, (torch.randn(BATCH, 64),)), torch.randint(0, 5, (BATCH,)))
                slopes = torch.autograd.grad(loss, weights.values(), create_graph=True)
                weights = {name: weight - 0.1 * slope for (name, weight), slope in zip(weights.items(), slopes)}
            total = total + F.cross_entropy(torch.func.functional_call(model, weights, (torch.randn(BATCH, 64),)), torch.randint(0, 5, (BATCH,)))
        total.backward()
        optimizer.step()
    return of(model)


@program("tutorial", steps=STEPS)
def ensemble_by_vmap():
    """Ten models as one stack of weights; gradients from torch.func.grad, updates by hand."""
    models = [nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)) for _ in range(10)]
    weights, buffers = torch.func.stack_module_state(models)
    weights = {name: value.detach() for name, value in weights.items()}
    skeleton = copy.deepcopy(models[0]).to("meta")

    def loss_of(weights, x, y):
        return F.cross_entropy(torch.func.functional_call(skeleton, weights, (x,)), y)

    slopes_of = torch.vmap(torch.func.grad(loss_of), in_dims=(0, None, None))
    for _ in range(STEPS):
        slopes = slopes_of(weights, torch.randn(64, 64), torch.randint(0, 10, (64,)))
        for name, weight in weights.items():
            weight -= 0.01 * slopes[name]


@program("tutorial", steps=2 * STEPS)
def averaged_weights_and_schedules():
    """Stochastic weight averaging: a second model, two schedules, statistics of batch normalization computed anew."""
    model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10))
    data = [(pictures(), torch.randint(0, 10, (BATCH,))) for _ in range(6)]
    averaged, optimizer = torch.optim.swa_utils.AveragedModel(model), torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    schedule = torch.optim.swa_utils.SWALR(optimizer, swa_lr=0.05)
    for _ in range(4):
        for x, y in data:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        averaged.update_parameters(model)
        schedule.step()
    torch.optim.swa_utils.update_bn(data, averaged)
    return of(model) + of(averaged)


@program("tutorial", steps=3 * STEPS)
def folds():
    """Cross-validation: a new model and optimizer for each fold."""
    for _ in range(3):
        model = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Dropout(0.2), nn.Linear(256, 2))
        optimizer = torch.optim.AdamW(model.parameters())
        for _ in range(STEPS):
            optimizer.zero_grad()
            F.cross_entropy(model(torch.randn(64, 128)), torch.randint(0, 2, (64,))).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        model.eval()
        with torch.inference_mode():
            model(torch.randn(64, 128))
    return of(model)


@program("tutorial", steps=32)
def policy_by_ppo():
    """Rollouts without gradients, then several epochs of small batches over them."""
    class Agent(nn.Module):
        def __init__(self):
            super().__init__()
            self.actor, self.critic = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 4)), nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 1))

    agent = Agent()
    optimizer = torch.optim.Adam(agent.parameters(), 2.5e-4)
    states, actions, logs = torch.zeros(128, 8), torch.zeros(128, dtype=torch.long), torch.zeros(128)
    for _ in range(4):
        for i in range(128):
            with torch.no_grad():
                states[i] = torch.randn(8)
                chosen = torch.distributions.Categorical(logits=agent.actor(states[i]))
                actions[i] = chosen.sample()
                logs[i] = chosen.log_prob(actions[i])
        for _ in range(2):
            for rows in torch.randperm(128).split(32):
                now = torch.distributions.Categorical(logits=agent.actor(states[rows]))
                ratio = (now.log_prob(actions[rows]) - logs[rows]).exp()
                loss = -torch.min(ratio, ratio.clamp(0.8, 1.2)).mean() + agent.critic(states[rows]).pow(2).mean() - 0.01 * now.entropy().mean()
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                optimizer.step()
    return of(agent)


@program("optimizer", "optimizer-history", "history_size", steps=STEPS)
def waves_by_cells_and_a_closure():
    """LSTM cells called word by word in float64, by LBFGS; the future is predicted after each step."""
    class Sequence(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell1, self.cell2, self.head = nn.LSTMCell(1, 51), nn.LSTMCell(51, 51), nn.Linear(51, 1)

        def forward(self, x, future=0):
            first = second = (torch.zeros(len(x), 51, dtype=x.dtype), torch.zeros(len(x), 51, dtype=x.dtype))
            found = []
            for piece in x.split(1, dim=1):
                first = self.cell1(piece, first)
                second = self.cell2(first[0], second)
                found.append(self.head(second[0]))
            for _ in range(future):
                first = self.cell1(found[-1], first)
                second = self.cell2(first[0], second)
                found.append(self.head(second[0]))
            return torch.cat(found, 1)

    model = Sequence().double()
    data = torch.rand(16, 21, dtype=torch.float64)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.8, max_iter=3)

    def closure():
        optimizer.zero_grad()
        loss = F.mse_loss(model(data[:, :-1]), data[:, 1:])
        loss.backward()
        return loss

    for _ in range(STEPS):
        optimizer.step(closure)
        with torch.no_grad():
            model(data[:, :-1], future=10)
    return of(model)


@program("tutorial", steps=STEPS)
def flow_of_densities():
    class Coupling(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 16))

        def forward(self, x):
            fixed, other = x.chunk(2, 1)
            scale, move = self.net(fixed).chunk(2, 1)
            return torch.cat([other * scale.tanh().exp() + move, fixed], 1), scale.tanh().sum(1)

    model = nn.ModuleList(Coupling() for _ in range(4))
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(STEPS):
        x, volume = torch.randn(256, 16), 0.0
        for coupling in model:
            x, more = coupling(x)
            volume = volume + more
        loss = (0.5 * x.pow(2).sum(1) - volume).mean()
        optimizer.zero_grad(set_to_none=False)
        loss.backward()
        optimizer.step()
    return of(model)


@program("tutorial", also=("peak-is-start",))
def where_a_network_looks():
    """Saliency: gradients of a class with respect to the picture, weights frozen, nothing is trained."""
    model = convnet().eval()
    model.requires_grad_(False)
    for _ in range(STEPS):
        picture = pictures(batch=1).requires_grad_()
        model(picture)[0, 3].backward()
        picture.grad.abs().amax(1)
    return of(model)


if __name__ == "__main__":
    run_all()
