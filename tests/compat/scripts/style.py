"""Style transfer between two patterns: an image learns the Gram matrices of one and the features of the other."""

from collections import namedtuple

import torch
import torch.nn as nn
import torch.optim as optim

torch.manual_seed(23)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.set_default_dtype(torch.float32)
SIZE = 24


def stripes():
    ramp = torch.arange(SIZE, dtype=torch.float, device=device)
    wave = torch.stack([torch.sin(ramp * f) for f in (0.5, 0.9, 1.3)])
    return (wave[:, None, :].expand(3, SIZE, SIZE) * 0.5 + 0.5).unsqueeze(0)


def disc():
    y, x = torch.meshgrid(torch.linspace(-1, 1, SIZE), torch.linspace(-1, 1, SIZE), indexing='ij')
    inside = (x * x + y * y < 0.5).float()
    return torch.stack((inside, 1 - inside, x.clamp(min=0)), 0).unsqueeze(0).to(device)


cnn = nn.Sequential(
    nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(inplace=False),
    nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(inplace=False),
    nn.AvgPool2d(2),
    nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(inplace=False),
).to(device).eval()
for param in cnn.parameters():
    param.requires_grad_(False)

Features = namedtuple('Features', ['relu1', 'relu2', 'relu3'])


def features(image, mean=0.5, std=0.25):
    x = (image - mean) / std
    found = []
    for name, layer in cnn.named_children():
        x = layer(x)
        if isinstance(layer, nn.ReLU):
            found.append(x)
    return Features(*found)


def gram_matrix(input):
    a, b, c, d = input.size()
    flat = input.reshape(a, b, c * d)
    G = torch.bmm(flat, flat.transpose(1, 2))
    return G.div(b * c * d)


def gram_by_einsum(y):
    _, c, h, w = y.shape
    return torch.einsum('nchw,ndhw->ncd', y, y) / (c * h * w)


mse = nn.MSELoss()
style_img, content_img = stripes(), disc()
style_targets = [gram_matrix(f).detach() for f in features(style_img)]
content_target = features(content_img).relu2.detach()
for a, b in zip(style_targets, map(gram_by_einsum, features(style_img))):
    assert torch.allclose(a, b, atol=1e-5)

input_img = content_img.clone() * 0.7 + 0.3 * torch.rand(content_img.size(), device=device)
input_img.requires_grad_(True)
optimizer = optim.Adam([input_img], lr=0.03)

run = [0]
while run[0] < 25:
    with torch.no_grad():
        input_img.clamp_(0, 1)
    optimizer.zero_grad()
    out = features(input_img)
    style_score = 0
    for i, (f, target) in enumerate(zip(out, style_targets)):
        gram = gram_matrix(f) if i % 2 == 0 else gram_by_einsum(f)
        style_score += mse(gram, target)
    content_score = nn.functional.mse_loss(out.relu2, content_target)
    smooth = (input_img[..., 1:] - input_img[..., :-1]).abs().mean() + torch.abs(input_img[:, :, 1:] - input_img[:, :, :-1]).mean()
    loss = 1e3 * style_score + content_score + 0.1 * smooth
    loss.backward()
    optimizer.step()
    run[0] += 1
    print("run {}: style {:4f} content {:4f} loss: {:.7f}".format(run, style_score.item(), content_score.item(), loss.item()))

input_img.data.clamp_(0, 1)
image = (input_img.detach().cpu().squeeze(0).permute(1, 2, 0) * 255).byte().numpy()
print(image.shape, image.dtype)
