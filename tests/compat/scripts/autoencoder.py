"""A convolutional autoencoder: strided convolutions, then a transposed convolution and pixel_shuffle."""

import os
import tempfile

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(17)
device = "cuda:0" if torch.cuda.is_available() else "cpu"


def blobs(count, size=16):
    """Returns pictures with two soft blobs of random places and colours."""
    grid_y, grid_x = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    place = torch.rand(count, 2, 2, 1, 1) * size
    colour = torch.rand(count, 2, 3, 1, 1)
    distance = (grid_y - place[:, :, 0]) ** 2 + (grid_x - place[:, :, 1]) ** 2
    return (colour * torch.exp(-distance / 12.0)[:, :, None]).sum(1).clamp_(0, 1)


class Encoder(nn.Module):
    def __init__(self, code):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, kernel_size=3, stride=2, padding=1)
        self.conv2 = nn.Conv2d(8, 16, kernel_size=3, stride=2, padding=1)
        self.norm = nn.GroupNorm(4, 16)
        self.fc = nn.Linear(16 * 4 * 4, code)

    def forward(self, x):
        x = F.silu(self.conv1(x))
        x = F.silu(self.norm(self.conv2(x)))
        return self.fc(x.view(x.size(0), -1))


class Decoder(nn.Module):
    def __init__(self, code):
        super().__init__()
        self.fc = nn.Linear(code, 16 * 4 * 4)
        self.up = nn.ConvTranspose2d(16, 16, kernel_size=4, stride=2, padding=1)
        self.out = nn.Conv2d(16, 3 * 2 ** 2, kernel_size=3, padding=1)

    def forward(self, code):
        x = F.silu(self.fc(code)).view(-1, 16, 4, 4)
        x = F.silu(self.up(x))
        return torch.sigmoid(F.pixel_shuffle(self.out(x), 2))


class AutoEncoder(nn.Module):
    def __init__(self, code=24):
        super().__init__()
        self.encoder = Encoder(code)
        self.decoder = Decoder(code)
        self.apply(self._init_weights)

    @staticmethod
    def _init_weights(m):
        if isinstance(m, (nn.Conv2d, nn.ConvTranspose2d, nn.Linear)):
            nn.init.kaiming_uniform_(m.weight, nonlinearity="relu")
            if m.bias is not None:
                nn.init.zeros_(m.bias)

    def forward(self, x):
        return self.decoder(self.encoder(x))


data = blobs(320).to(device)
model = AutoEncoder().to(device)
num_params = sum(p.numel() for p in model.parameters())
print(f"{num_params / 1e3:.1f}k parameters")
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
criterion = nn.MSELoss(reduction="mean")
best = float("inf")
path = os.path.join(tempfile.mkdtemp(), "autoencoder.pt")

for epoch in range(6):
    total = 0.0
    for batch in data[torch.randperm(data.size(0), device=device)].split(80):
        noisy = (batch + 0.05 * torch.randn(batch.shape, device=device)).clamp(0.0, 1.0)
        loss = criterion(model(noisy), batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * batch.size(0)
        print(f"epoch {epoch} loss {loss.item():.7f}")
    if total < best:
        best = total
        torch.save({"epoch": epoch, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)

checkpoint = torch.load(path, map_location=torch.device("cpu"))
restored = AutoEncoder()
restored.load_state_dict(checkpoint["model"])
restored.eval()
with torch.no_grad():
    error = F.mse_loss(restored(data.cpu()), data.cpu())
print("restored from epoch", checkpoint["epoch"], "with error", round(error.item(), 4))
