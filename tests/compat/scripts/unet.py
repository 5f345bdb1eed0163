"""U-Net for segmentation of discs."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class DoubleConv(nn.Module):
    """(convolution => [BN] => ReLU) * 2"""

    def __init__(self, in_channels, out_channels, mid_channels=None):
        super().__init__()
        if not mid_channels:
            mid_channels = out_channels
        self.double_conv = nn.Sequential(
            nn.Conv2d(in_channels, mid_channels, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(mid_channels),
            nn.ReLU(inplace=True),
            nn.Conv2d(mid_channels, out_channels, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(out_channels),
            nn.ReLU(inplace=True))

    def forward(self, x):
        return self.double_conv(x)


class Down(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.maxpool_conv = nn.Sequential(nn.MaxPool2d(2), DoubleConv(in_channels, out_channels))

    def forward(self, x):
        return self.maxpool_conv(x)


class Up(nn.Module):
    def __init__(self, in_channels, out_channels, bilinear=True):
        super().__init__()
        self.bilinear = bilinear
        if not bilinear:
            self.up = nn.ConvTranspose2d(in_channels // 2, in_channels // 2, kernel_size=2, stride=2)
        self.conv = DoubleConv(in_channels, out_channels, in_channels // 2)

    def forward(self, x1, x2):
        if self.bilinear:
            x1 = F.interpolate(x1, scale_factor=2, mode="bilinear", align_corners=True)
        else:
            x1 = self.up(x1)
        # input is CHW
        diffY = x2.size()[2] - x1.size()[2]
        diffX = x2.size()[3] - x1.size()[3]
        x1 = F.pad(x1, [diffX // 2, diffX - diffX // 2, diffY // 2, diffY - diffY // 2])
        x = torch.cat([x2, x1], dim=1)
        return self.conv(x)


class UNet(nn.Module):
    def __init__(self, n_channels, n_classes):
        super().__init__()
        self.inc = DoubleConv(n_channels, 8)
        self.down1 = Down(8, 16)
        self.down2 = Down(16, 16)
        self.up1 = Up(32, 8)
        self.up2 = Up(16, 8, bilinear=False)
        self.outc = nn.Conv2d(8, n_classes, kernel_size=1)

    def forward(self, x):
        x1 = self.inc(x)
        x2 = self.down1(x1)
        x3 = self.down2(x2)
        x = self.up1(x3, x2)
        x = self.up2(x, x1)
        return self.outc(x)


def dice_loss(logits, target, eps=1e-6):
    probs = torch.sigmoid(logits).view(logits.size(0), -1)
    target = target.view(target.size(0), -1)
    inter = 2 * (probs * target).sum(dim=-1)
    sets = probs.sum(dim=-1) + target.sum(dim=-1)
    return 1 - ((inter + eps) / (sets + eps)).mean()


def discs(n, size=18):
    yy, xx = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    cy, cx, r = (torch.rand(n, 3) * torch.tensor([10.0, 10.0, 3.0]) + torch.tensor([4.0, 4.0, 2.0])).unbind(1)
    dist = (yy[None] - cy[:, None, None]) ** 2 + (xx[None] - cx[:, None, None]) ** 2
    mask = (dist < r.view(-1, 1, 1) ** 2).float().unsqueeze(1)
    return mask + 0.4 * torch.randn_like(mask), mask


device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
torch.manual_seed(0)
net = UNet(n_channels=1, n_classes=1).to(device=device)
optimizer = torch.optim.AdamW(net.parameters(), lr=5e-3, betas=(0.9, 0.99))
criterion = nn.BCEWithLogitsLoss()

losses = []
for step in range(24):
    images, masks = discs(8)
    images = images.to(device=device, dtype=torch.float32)
    masks = masks.to(device)
    pred = net(images)
    loss = criterion(pred, masks) + dice_loss(pred, masks)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(net.parameters(), 0.5)
    optimizer.step()
    losses.append(loss.item())

net.eval()
with torch.no_grad():
    images, masks = discs(8)
    hard = (net(images.to(device)) > 0).float().cpu()
    iou = (hard * masks).sum() / torch.clamp((hard + masks).clamp(max=1).sum(), min=1)
print("loss %.4f -> %.4f, IoU %.3f" % (losses[0], losses[-1], iou))
