"""Mixed precision with autocast and GradScaler."""
import argparse
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class ConvNet(nn.Module):
    def __init__(self, channels=8, classes=4):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, channels, 3, padding=1), nn.GroupNorm(2, channels), nn.SiLU(),
            nn.Conv2d(channels, 2 * channels, 3, stride=2, padding=1), nn.GroupNorm(4, 2 * channels), nn.SiLU(),
            nn.AdaptiveAvgPool2d(2), nn.Flatten())
        self.classifier = nn.Linear(8 * channels, classes)

    def forward(self, x):
        return self.classifier(self.features(x))


def gratings(n, device):
    """Stripes of four directions and random phase."""
    label = torch.randint(0, 4, (n,), device=device)
    angle = label.float() * torch.pi / 4
    grid = torch.arange(12, device=device, dtype=torch.float32)
    phase = grid.view(1, 12, 1) * torch.sin(angle).view(-1, 1, 1) + grid.view(1, 1, 12) * torch.cos(angle).view(-1, 1, 1)
    image = torch.sin(1.5 * phase + 6.28 * torch.rand(n, 1, 1, device=device))
    return (image + 0.2 * torch.randn(n, 12, 12, device=device)).unsqueeze(1), label


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", default=40, type=int)
    parser.add_argument("--no-amp", dest="amp", action="store_false")
    opt = parser.parse_args()

    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    dtype = torch.float16 if device == "cuda" else torch.bfloat16
    net = ConvNet().to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    scaler = torch.amp.GradScaler(device, init_scale=2.0 ** 10, growth_interval=10, enabled=opt.amp)

    start = time.perf_counter()
    losses, scales = [], []
    for step in range(opt.steps):
        images, labels = gratings(32, device)
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device_type=device, dtype=dtype, enabled=opt.amp):
            output = net(images)
            assert not opt.amp or output.dtype is dtype
            loss = F.cross_entropy(output.float(), labels)
        scaler.scale(loss).backward()

        # unscales the gradients of optimizer's assigned params in-place
        scaler.unscale_(optimizer)
        norm = torch.nn.utils.clip_grad_norm_(net.parameters(), max_norm=1.0)
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
        scales.append(scaler.get_scale())
        if step % 10 == 0:
            print(f"step {step:3d} loss {loss.item():.4f} norm {float(norm):.3f} scale {scales[-1]:.0f}")

    if opt.amp:
        assert scales[-1] > 2.0 ** 10, "the scale grows while all gradients are finite"
        state = scaler.state_dict()
        scaler.load_state_dict(state)
    if device == "cuda":
        torch.cuda.synchronize()
        print("max memory used by tensors = {} bytes".format(torch.cuda.max_memory_allocated()))
    print(f"Total execution time = {time.perf_counter() - start:.3f} sec")
    return losses


if __name__ == "__main__":
    losses = main()
