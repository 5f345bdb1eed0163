"""Contrastive learning of two views of a picture: InfoNCE over cosine similarities."""

import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(11)
device = torch.device("cpu")


def make_images(n: int, classes: int = 32) -> torch.Tensor:
    rng = np.random.RandomState(1)
    waves = rng.randn(classes, 3, 8, 8)
    picture = waves[rng.randint(classes, size=n)] + 0.3 * rng.randn(n, 3, 8, 8)
    return torch.as_tensor(picture, dtype=torch.float32)


def augment(x: torch.Tensor) -> torch.Tensor:
    shift = torch.randint(-1, 2, (2,)).tolist()
    x = torch.roll(x, shifts=shift, dims=(2, 3))
    if torch.rand(1).item() < 0.5:
        x = x.flip(-1)
    return x + 0.1 * torch.randn_like(x)


class Encoder(nn.Module):
    def __init__(self, width: int = 16, dim: int = 32) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1),
            nn.GELU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
        )
        self.head = nn.Sequential(nn.Linear(2 * width, 2 * width), nn.ReLU(), nn.Linear(2 * width, dim))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.net(x))


def info_nce(z1: torch.Tensor, z2: torch.Tensor, temperature: float = 0.2) -> torch.Tensor:
    n = z1.shape[0]
    z = F.normalize(torch.cat([z1, z2], dim=0), p=2, dim=1)
    sim = torch.mm(z, z.t().contiguous()) / temperature
    sim.masked_fill_(torch.eye(2 * n, dtype=torch.bool, device=z.device), float("-inf"))
    target = torch.cat([torch.arange(n, 2 * n), torch.arange(n)]).to(z.device)
    return F.cross_entropy(sim, target)


images = make_images(256)
model = Encoder().to(device)
decay, no_decay = [], []
for name, p in model.named_parameters():
    (no_decay if p.ndim == 1 else decay).append(p)
groups = [{"params": decay, "weight_decay": 1e-4}, {"params": no_decay, "weight_decay": 0.0}]
optimizer = torch.optim.AdamW(groups, lr=1e-2, betas=(0.9, 0.95))
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=24, eta_min=1e-4)

for step in range(24):
    x = images[torch.randperm(images.shape[0])[:64]].to(device)
    z1, z2 = model(augment(x)), model(augment(x))
    loss = info_nce(z1, z2)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    grad_norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
    optimizer.step()
    scheduler.step()
    with torch.no_grad():
        aligned = F.cosine_similarity(z1, z2, dim=-1).mean().item()
    assert math.isfinite(grad_norm)
    print(f"step {step} lr {scheduler.get_last_lr()[0]:.2e} aligned {aligned:.3f} loss {loss.item():.7f}")
