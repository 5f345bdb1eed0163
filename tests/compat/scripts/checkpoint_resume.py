import os
import shutil
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F


class AverageMeter(object):
    """Computes and stores the average and current value"""

    def __init__(self):
        self.reset()

    def reset(self):
        self.val = self.avg = self.sum = self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count


def build(device):
    model = nn.Sequential(
        nn.Conv1d(1, 8, 5, padding=2), nn.BatchNorm1d(8), nn.ReLU(),
        nn.Conv1d(8, 8, 5, stride=2), nn.ReLU(),
        nn.Flatten(), nn.Linear(8 * 14, 3)).to(device)
    optimizer = torch.optim.Adam(model.parameters(), 0.003, betas=(0.9, 0.999), eps=1e-8)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=4, gamma=0.5)
    return model, optimizer, scheduler


def waves(n):
    t = torch.linspace(0, 6.28, 32)
    label = torch.randint(0, 3, (n,))
    x = torch.sin(t[None, :] * (label[:, None] + 1) + torch.rand(n, 1) * 6.28)
    return (x + 0.4 * torch.randn(n, 32))[:, None, :], label


def train_epoch(model, optimizer, data, labels, losses):
    meter = AverageMeter()
    model.train()
    for x, y in zip(data.chunk(4), labels.chunk(4)):
        loss = F.cross_entropy(model(x), y)
        meter.update(loss.item(), x.size(0))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return meter.avg


def save_checkpoint(state, is_best, folder):
    filename = os.path.join(folder, "checkpoint.pth.tar")
    torch.save(state, filename)
    if is_best:
        shutil.copyfile(filename, os.path.join(folder, "model_best.pth.tar"))


torch.manual_seed(5)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
folder = tempfile.mkdtemp()
data, labels = waves(128)
data, labels = data.to(device), labels.to(device)

model, optimizer, scheduler = build(device)
losses, best = [], float("inf")
for epoch in range(5):
    avg = train_epoch(model, optimizer, data, labels, losses)
    scheduler.step()
    is_best, best = avg < best, min(avg, best)
    save_checkpoint({
        "epoch": epoch + 1,
        "arch": "conv1d",
        "state_dict": model.state_dict(),
        "best": best,
        "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(),
        "history": torch.tensor(losses),
    }, is_best, folder)
expected = []
for _ in range(2):
    train_epoch(model, optimizer, data, labels, expected)
    scheduler.step()

# Resume in a new model, which must go on as the first did.
resume = os.path.join(folder, "checkpoint.pth.tar")
assert os.path.isfile(resume)
checkpoint = torch.load(resume, map_location=device, weights_only=True)
model, optimizer, scheduler = build(device)
result = model.load_state_dict(checkpoint["state_dict"])
print(result)
optimizer.load_state_dict(checkpoint["optimizer"])
scheduler.load_state_dict(checkpoint["scheduler"])
assert checkpoint["history"].tolist() == torch.tensor(losses).tolist()
resumed = []
for epoch in range(checkpoint["epoch"], checkpoint["epoch"] + 2):
    avg = train_epoch(model, optimizer, data, labels, resumed)
    scheduler.step()
    print("Epoch: [{0}]\tLoss {1:.4f}\tlr {2}".format(epoch, avg, optimizer.param_groups[0]["lr"]))
assert all(abs(a - b) < 1e-5 for a, b in zip(expected, resumed)), (expected, resumed)
losses = losses[:12] + resumed

# Weights alone, into another network.
torch.save(model.state_dict(), os.path.join(folder, "weights.pt"))
weights = torch.load(os.path.join(folder, "weights.pt"), map_location="cpu")
weights = {k: v for k, v in weights.items() if not k.startswith("6.")}
other, _, _ = build("cpu")
missing, unexpected = other.load_state_dict(weights, strict=False)
assert sorted(missing) == ["6.bias", "6.weight"] and not unexpected
shutil.rmtree(folder)
