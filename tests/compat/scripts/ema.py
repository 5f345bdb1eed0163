import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class EMA:
    """Keeps a moving average of everything in the model's state_dict (parameters and buffers)."""

    def __init__(self, model, decay=0.9, updates=0):
        self.ema = copy.deepcopy(model).eval()
        self.updates = updates
        self.decay = lambda x: min(decay, (1 + x) / (10 + x))
        for p in self.ema.parameters():
            p.requires_grad_(False)

    def update(self, model):
        with torch.no_grad():
            self.updates += 1
            d = self.decay(self.updates)
            msd = model.state_dict()
            for k, v in self.ema.state_dict().items():
                if v.dtype.is_floating_point:
                    v *= d
                    v += (1.0 - d) * msd[k].detach()
                else:
                    v.copy_(msd[k])


class ShadowParameters:
    """The classic variant: shadow copies by name, which can be swapped in for evaluation."""

    def __init__(self, model, mu):
        self.mu = mu
        self.shadow, self.backup = {}, {}
        for name, param in model.named_parameters():
            if param.requires_grad:
                self.shadow[name] = param.data.clone()

    def update(self, model):
        for name, param in model.named_parameters():
            if name in self.shadow:
                self.shadow[name].mul_(self.mu).add_(param.data, alpha=1 - self.mu)

    def apply_to(self, model):
        for name, param in model.named_parameters():
            if name in self.shadow:
                self.backup[name] = param.data
                param.data = self.shadow[name]

    def restore(self, model):
        for name, param in model.named_parameters():
            if name in self.backup:
                param.data = self.backup[name]
        self.backup = {}


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(8, 32)
        self.bn = nn.BatchNorm1d(32)
        self.fc2 = nn.Linear(32, 1)

    def forward(self, x):
        return self.fc2(F.silu(self.bn(self.fc1(x)))).squeeze(-1)


def target(x):
    return torch.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] + 0.3 * x[:, 3].abs()


@torch.no_grad()
def evaluate(net, x, y):
    was_training = net.training
    net.eval()
    mse = F.mse_loss(net(x), y).item()
    net.train(was_training)
    return mse


torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = Regressor().to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
ema = EMA(model, decay=0.95)
shadow = ShadowParameters(model, 0.9)
x_val = torch.randn(256, 8, device=device)
y_val = target(x_val)

losses, averaged = [], []
for step in range(60):
    x = torch.randn(32, 8).to(device)
    y = target(x) + 0.5 * torch.randn(32).to(device)
    loss = F.smooth_l1_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    ema.update(model)
    shadow.update(model)
    if step % 2 == 1:
        # alternately the averaged model's error and the raw loss
        losses.append(evaluate(ema.ema, x_val, y_val))

raw = evaluate(model, x_val, y_val)
shadow.apply_to(model)
swapped = evaluate(model, x_val, y_val)
shadow.restore(model)
assert evaluate(model, x_val, y_val) == raw
assert int(model.bn.num_batches_tracked) == int(ema.ema.bn.num_batches_tracked) == 60
print("val mse: raw {:.4f}, ema {:.4f}, shadow {:.4f}".format(raw, losses[-1], swapped))
