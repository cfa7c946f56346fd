"""Programs as pytorch/examples has them, with data made up and few steps: no trouble in any, and the modules of the model as layers."""
import torch
import torch._dynamo  # what the first optimizer imports: here it is done once for all programs
from torch import nn
from torch.nn import functional as F

from corpus import program, run_all

STEPS = 10
PEAKS = ("peak-is-start", "peak-is-evaluation")        # true of examples that test after a short training


def of(*models):
    """One model's modules by their paths, and its class for what it computes between them; the modules of several begin with the class where names
    repeat."""
    paths = [prefix + name for model in models for prefix in ("", type(model).__name__ + ".") for name, _ in model.named_modules() if name]
    return paths + [type(model).__name__ for model in models]


@program("tutorial", steps=STEPS, also=PEAKS)
def mnist():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1, self.conv2 = nn.Conv2d(1, 16, 3), nn.Conv2d(16, 32, 3)
            self.dropout, self.fc1, self.fc2 = nn.Dropout(0.25), nn.Linear(32 * 12 * 12, 64), nn.Linear(64, 10)

        def forward(self, x):
            x = F.max_pool2d(F.relu(self.conv2(F.relu(self.conv1(x)))), 2)
            return F.log_softmax(self.fc2(F.relu(self.fc1(self.dropout(torch.flatten(x, 1))))), 1)

    model = Net()
    optimizer = torch.optim.Adadelta(model.parameters())
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    for _ in range(2):
        model.train()
        for _ in range(STEPS // 2):
            optimizer.zero_grad()
            F.nll_loss(model(torch.randn(16, 1, 28, 28)), torch.randint(0, 10, (16,))).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            model(torch.randn(16, 1, 28, 28))
        scheduler.step()
    return of(model)


@program("tutorial", steps=STEPS, also=PEAKS)
def regression():
    fc = nn.Linear(4, 1)
    for _ in range(STEPS):
        fc.zero_grad()
        F.smooth_l1_loss(fc(torch.randn(4096, 4)), torch.randn(4096, 1)).backward()
        for parameter in fc.parameters():
            parameter.data.add_(-0.1 * parameter.grad)


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop, self.encoder, self.rnn, self.decoder = nn.Dropout(0.2), nn.Embedding(500, 64), nn.LSTM(64, 64, 2), nn.Linear(64, 500)

    def forward(self, x, hidden):
        output, hidden = self.rnn(self.drop(self.encoder(x)), hidden)
        return F.log_softmax(self.decoder(self.drop(output)).view(-1, 500), 1), hidden


@program("tutorial", steps=STEPS, also=PEAKS)
def word_language_model():
    """Updates by hand, a state that is detached, gradients that are clipped."""
    model, hidden = Words(), (torch.zeros(2, 16, 64), torch.zeros(2, 16, 64))
    for _ in range(STEPS):
        model.zero_grad()
        hidden = tuple(state.detach() for state in hidden)
        output, hidden = model(torch.randint(0, 500, (20, 16)), hidden)
        F.nll_loss(output, torch.randint(0, 500, (320,))).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        for parameter in model.parameters():
            parameter.data.add_(parameter.grad, alpha=-1)
    return of(model)


@program("tutorial", also=PEAKS)
def forward_forward():
    """Each layer has an optimizer and is trained before the next one."""
    class Layer(nn.Linear):
        def __init__(self, *sizes):
            super().__init__(*sizes)
            self.relu, self.opt = nn.ReLU(), torch.optim.Adam(self.parameters(), lr=0.03)

        def forward(self, x):
            return self.relu(torch.mm(x / (x.norm(2, 1, keepdim=True) + 1e-4), self.weight.T) + self.bias)

        def learn(self, good, bad):
            for _ in range(STEPS):
                loss = F.softplus(torch.cat([-self.forward(good).pow(2).mean(1), self.forward(bad).pow(2).mean(1)])).mean()
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
            return self.forward(good).detach(), self.forward(bad).detach()

    good, bad = torch.rand(256, 784), torch.rand(256, 784)
    for layer in [Layer(784, 500), Layer(500, 500)]:
        good, bad = layer.learn(good, bad)


@program("tutorial", steps=STEPS, also=PEAKS)
def variational_autoencoder():
    class VAE(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1, self.fc21, self.fc22 = nn.Linear(784, 400), nn.Linear(400, 20), nn.Linear(400, 20)
            self.fc3, self.fc4 = nn.Linear(20, 400), nn.Linear(400, 784)

        def forward(self, x):
            h = F.relu(self.fc1(x))
            mean, spread = self.fc21(h), self.fc22(h)
            z = mean + torch.randn_like(mean) * torch.exp(0.5 * spread)
            return torch.sigmoid(self.fc4(F.relu(self.fc3(z)))), mean, spread

    model = VAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    losses = 0
    for _ in range(STEPS):
        x = torch.rand(128, 784)
        optimizer.zero_grad()
        y, mean, spread = model(x)
        loss = F.binary_cross_entropy(y, x, reduction="sum") - 0.5 * torch.sum(1 + spread - mean.pow(2) - spread.exp())
        loss.backward()
        losses += loss.item()
        optimizer.step()
    return of(model)


@program("tutorial", steps=STEPS, also=PEAKS)
def dcgan():
    class Generator(nn.Module):
        def __init__(self):
            super().__init__()
            self.main = nn.Sequential(nn.ConvTranspose2d(32, 32, 4, 1, 0, bias=False), nn.BatchNorm2d(32), nn.ReLU(True), nn.ConvTranspose2d(32, 3, 4, 4), nn.Tanh())

        def forward(self, x):
            return self.main(x)

    class Discriminator(nn.Module):
        def __init__(self):
            super().__init__()
            self.main = nn.Sequential(nn.Conv2d(3, 32, 4, 4), nn.LeakyReLU(0.2, True), nn.Conv2d(32, 1, 4), nn.Sigmoid())

        def forward(self, x):
            return self.main(x).flatten()

    maker, critic = Generator(), Discriminator()
    of_critic, of_maker = torch.optim.Adam(critic.parameters()), torch.optim.Adam(maker.parameters())
    for _ in range(STEPS):
        critic.zero_grad()
        F.binary_cross_entropy(critic(torch.randn(16, 3, 16, 16)), torch.ones(16)).backward()
        fake = maker(torch.randn(16, 32, 1, 1))
        F.binary_cross_entropy(critic(fake.detach()), torch.zeros(16)).backward()
        of_critic.step()
        maker.zero_grad()
        F.binary_cross_entropy(critic(fake), torch.ones(16)).backward()
        of_maker.step()
    return of(maker, critic)


@program("tutorial", steps=STEPS, also=PEAKS)
def super_resolution():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1, self.conv2, self.shuffle = nn.Conv2d(1, 32, 5, padding=2), nn.Conv2d(32, 9, 3, padding=1), nn.PixelShuffle(3)

        def forward(self, x):
            return self.shuffle(self.conv2(F.relu(self.conv1(x))))

    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(STEPS):
        optimizer.zero_grad()
        F.mse_loss(model(torch.randn(4, 1, 24, 24)), torch.randn(4, 1, 72, 72)).backward()
        optimizer.step()
    return of(model)


@program("tutorial", steps=STEPS, also=PEAKS)
def graph_convolution():
    """The whole graph in every step, and an evaluation every few steps."""
    class Gcn(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(128, 64, bias=False), nn.Linear(64, 7, bias=False)

        def forward(self, x, near):
            return near @ self.second(F.relu(near @ self.first(x)))

    model, x, near = Gcn(), torch.randn(500, 128), torch.rand(500, 500) / 500
    optimizer = torch.optim.Adam(model.parameters(), weight_decay=5e-4)
    for i in range(STEPS):
        optimizer.zero_grad()
        F.cross_entropy(model(x, near), torch.randint(0, 7, (500,))).backward()
        optimizer.step()
        if i % 4 == 3:
            with torch.no_grad():
                model(x, near)
    return of(model)


@program("tutorial", steps=STEPS, also=PEAKS)
def reinforce():
    """Log probabilities are collected in each episode and thrown away after it."""
    policy, saved = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 2), nn.Softmax(-1)), []
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
    for _ in range(STEPS):
        for _ in range(20):
            choice = torch.distributions.Categorical(policy(torch.randn(64, 64)))
            saved.append(choice.log_prob(choice.sample()))
        optimizer.zero_grad()
        torch.stack(saved).sum().neg().backward()
        optimizer.step()
        del saved[:]
    return of(policy)


@program("tutorial", steps=STEPS, also=PEAKS)
def translation_with_a_transformer():
    class Translator(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(200, 32)
            self.transformer, self.out = nn.Transformer(32, 2, 1, 1, 64, batch_first=True), nn.Linear(32, 200)

        def forward(self, source, target):
            return self.out(self.transformer(self.words(source), self.words(target)))

    model = Translator()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(STEPS):
        optimizer.zero_grad()
        logits = model(torch.randint(0, 200, (8, 16)), torch.randint(0, 200, (8, 16)))
        F.cross_entropy(logits.flatten(0, 1), torch.randint(0, 200, (128,))).backward()
        optimizer.step()
    return of(model)


if __name__ == "__main__":
    run_all()
