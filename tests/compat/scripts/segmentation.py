"""Segmentation of squares and discs with a small fully convolutional network and weighted classes."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

IGNORE, CLASSES = 255, 3


def scenes(n, size=20, seed=0):
    rng = np.random.RandomState(seed)
    yy, xx = np.mgrid[:size, :size]
    target = np.zeros((n, size, size), dtype=np.int64)
    for t in target:
        y, x = rng.randint(3, size - 3, 2)
        t[(yy - y) ** 2 + (xx - x) ** 2 < 9] = 1
        y, x = rng.randint(0, size - 4, 2)
        t[y:y + 4, x:x + 4] = 2
    colour = np.array([[0.2, 0.2, 0.2], [0.8, 0.3, 0.3], [0.3, 0.3, 0.8]])
    image = colour[target].transpose(0, 3, 1, 2) + 0.2 * rng.randn(n, 3, size, size)
    target[:, 0] = IGNORE
    return torch.tensor(image, dtype=torch.float32), torch.tensor(target)


class ConvBlock(nn.Module):
    def __init__(self, cin, cout, stride=1):
        super().__init__()
        self.conv = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.bn = nn.BatchNorm2d(cout)
        self.relu = nn.ReLU(True)

    def forward(self, x):
        return self.relu(self.bn(self.conv(x)))


class FCN(nn.Module):
    def __init__(self, num_classes):
        super().__init__()
        self.stem = ConvBlock(3, 8)
        self.down = nn.Sequential(ConvBlock(8, 16, stride=2), ConvBlock(16, 16))
        self.pool = nn.MaxPool2d(2, 2)
        self.deep = ConvBlock(16, 16)
        self.score_deep = nn.Conv2d(16, num_classes, 1)
        self.score_skip = nn.Conv2d(24, num_classes, 1)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode='fan_out', nonlinearity='relu')
            elif isinstance(m, nn.BatchNorm2d):
                nn.init.constant_(m.weight, 1)
                nn.init.constant_(m.bias, 0)

    def forward(self, x):
        size = x.shape[-2:]
        s = self.stem(x)
        d = self.down(s)
        deep = self.score_deep(self.deep(self.pool(d)))
        deep = F.interpolate(deep, size=size, mode='bilinear', align_corners=False)
        up = F.interpolate(d, scale_factor=2, mode='nearest')
        return self.score_skip(torch.cat((s, up), 1)) + deep


def iou(pred, target):
    keep = target != IGNORE
    hist = torch.bincount(CLASSES * target[keep] + pred[keep], minlength=CLASSES ** 2).reshape(CLASSES, CLASSES).float()
    return hist.diag() / (hist.sum(1) + hist.sum(0) - hist.diag())


torch.manual_seed(0)
images, masks = scenes(96)
counts = torch.bincount(masks[masks != IGNORE].flatten(), minlength=CLASSES)
weights = counts.sum() / (CLASSES * counts.float())
model = FCN(CLASSES)
criterion = nn.CrossEntropyLoss(weight=weights, ignore_index=IGNORE)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
lambda_poly = lambda i: (1 - i / 24) ** 0.9

model.train()
for it in range(24):
    for g in optimizer.param_groups:
        g['lr'] = 0.1 * lambda_poly(it)
    start = it * 24 % len(images)
    logits = model(images[start:start + 24])
    loss = criterion(logits, masks[start:start + 24])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f'iter {it} lr {optimizer.param_groups[0]["lr"]:.4f} loss {loss.item():.6f}')

model.eval()
with torch.no_grad():
    test_images, test_masks = scenes(16, seed=1)
    _, pred = model(test_images).max(dim=1)
    scores = iou(pred, test_masks)
print('IoU of background, disc, square:', ' '.join('%.2f' % s for s in scores))
