"""Quantile regression of a noisy wave: the pinball loss of five quantiles at once."""
import torch
import torch.nn as nn

torch.manual_seed(2)
QUANTILES = [0.05, 0.25, 0.5, 0.75, 0.95]

x = torch.linspace(-3, 3, 512).unsqueeze(1)
noise = torch.randn(512, 1) * (0.1 + 0.2 * x.abs())
y = torch.sin(x) + noise
perm = torch.randperm(x.shape[0])
x_train, y_train = x[perm[:384]], y[perm[:384]]
x_test, y_test = x[perm[384:]], y[perm[384:]]


class QuantileNet(nn.Module):
    def __init__(self, hidden, quantiles):
        super().__init__()
        self.register_buffer("q", torch.tensor(quantiles).view(1, -1))
        self.layers = nn.ModuleList([nn.Linear(1, hidden), nn.Linear(hidden, hidden)])
        self.out = nn.Linear(hidden, len(quantiles))

    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x))
        steps = self.out(x)
        # The first output is the lowest quantile; the others add positive steps, so that quantiles never cross.
        first, rest = steps[:, :1], torch.nn.functional.softplus(steps[:, 1:])
        return torch.cat((first, first + torch.cumsum(rest, dim=1)), dim=1)

    def loss(self, prediction, target):
        error = target - prediction
        return torch.max((self.q - 1) * error, self.q * error).sum(dim=1).mean()


net = QuantileNet(32, QUANTILES)
print(net)
opt = torch.optim.AdamW(net.parameters(), lr=1e-2, weight_decay=1e-4)
sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=2e-2, total_steps=40)

for epoch in range(40):
    opt.zero_grad()
    loss = net.loss(net(x_train), y_train)
    loss.backward()
    opt.step()
    sched.step()
    print('epoch: %d, loss: %1.6f' % (epoch + 1, loss.item()))

net.eval()
with torch.inference_mode():
    predicted = net(x_test)
    covered = (y_test <= predicted).float().mean(dim=0)
    width = predicted[:, -1].sub(predicted[:, 0])
    spread = torch.quantile(width, torch.tensor([0.1, 0.9]))
    assert (predicted.diff(dim=1) >= 0).all()
print("covered", [round(c, 2) for c in covered.tolist()], "width of the band", spread.numpy().round(2))
