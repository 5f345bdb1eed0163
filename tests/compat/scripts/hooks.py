"""Looks into a network in training: activations and gradients by hooks."""
from collections import defaultdict
from functools import partial

import torch
import torch.nn as nn

torch.manual_seed(9)


class SmallCNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 3)
        self.relu1 = nn.ReLU()
        self.conv2 = nn.Conv2d(6, 12, 3, stride=2)
        self.relu2 = nn.ReLU()
        self.fc = nn.Linear(12 * 4 * 4, 3)

    def forward(self, x):
        x = self.relu1(self.conv1(x))
        x = self.relu2(self.conv2(x))
        return self.fc(x.view(x.size(0), -1))


activations = {}
stats = defaultdict(list)


def get_activation(name):
    def hook(model, input, output):
        activations[name] = output.detach()
    return hook


def append_stats(name, module, inputs, output):
    if module.training:
        stats[name].append((output.data.mean().item(), output.data.std().item()))


def save_grad(name):
    def hook(module, grad_input, grad_output):
        stats[name + ".grad"].append(grad_output[0].norm().item())
    return hook


def normalize_input(module, args):
    (x,) = args
    return ((x - x.mean(dim=(1, 2, 3), keepdim=True)) / (x.std(dim=(1, 2, 3), keepdim=True) + 1e-5),)


model = SmallCNN()
handles = [model.register_forward_pre_hook(normalize_input)]
for name, layer in model.named_children():
    handles.append(layer.register_forward_hook(get_activation(name)))
    if isinstance(layer, (nn.ReLU, nn.Linear)):
        handles.append(layer.register_forward_hook(partial(append_stats, name)))
handles.append(model.fc.register_full_backward_hook(save_grad("fc")))

# clip each parameter's gradient elementwise when it arrives
clip_value = 0.05
for p in model.parameters():
    p.register_hook(lambda grad: torch.clamp(grad, -clip_value, clip_value))

optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
criterion = nn.CrossEntropyLoss()
templates = torch.rand(3, 1, 12, 12)

losses = []
for step in range(40):
    y = torch.randint(0, 3, (24,))
    x = templates[y] + 0.6 * torch.randn(24, 1, 12, 12)
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    assert max(p.grad.abs().max().item() for p in model.parameters()) <= clip_value + 1e-7
    optimizer.step()
    losses.append(loss.item())

for name, act in activations.items():
    print(name, tuple(act.shape), "dead: {:.0%}".format((act <= 0).float().mean().item()))
for name, values in stats.items():
    print(name, len(values), values[0], values[-1])

# after removal nothing is collected
for handle in handles:
    handle.remove()
count = len(stats["fc"])
model(x)
assert len(stats["fc"]) == count == 40

# a saliency map, by the gradients of inputs and of an inner tensor
x = templates.clone().requires_grad_()
hidden = model.relu1(model.conv1(x))
hidden.retain_grad()
seen = []
h = hidden.register_hook(lambda g: seen.append(g.shape))
score = model.fc(model.relu2(model.conv2(hidden)).flatten(1)).gather(1, torch.arange(3).view(-1, 1)).sum()
score.backward()
h.remove()
saliency, _ = torch.max(x.grad.data.abs(), dim=1)
cam = torch.relu((hidden.grad.mean(dim=[2, 3], keepdim=True) * hidden).sum(1))
assert seen == [hidden.shape] and saliency.shape == (3, 12, 12) and cam.shape == (3, 10, 10)
print("saliency peak:", saliency.view(3, -1).max(1)[0].tolist())
