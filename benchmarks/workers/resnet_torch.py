"""Worker of resnet.py: the same step of torchvision's ResNet-18 in PyTorch. A case is "ORDER AMP WIDTH THREADS", its order of
memory nchw or nhwc."""

import functools
import time

import torch
import torch.nn.functional as F
from bench import hold_torch, serve
from torch import nn
from torchvision.models import resnet

BATCH = 32


class Net(resnet.ResNet):
    """ResNet of any width, with the stem for small pictures."""

    def __init__(self, width):
        self.width = width
        super().__init__(resnet.BasicBlock, [2, 2, 2, 2], num_classes=10)
        self.conv1, self.bn1 = nn.Conv2d(1, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)
        self.maxpool, self.fc = nn.Identity(), nn.Linear(8 * width, 10)

    def _make_layer(self, block, planes, blocks, stride=1, dilate=False):
        if planes == 64:
            self.inplanes = self.width
        return super()._make_layer(block, planes * self.width // 64, blocks, stride, dilate)


@functools.lru_cache(None)
def stepper(order, amp, width):
    torch.manual_seed(0)
    memory_format = torch.channels_last if order == "nhwc" else torch.contiguous_format
    net = Net(width).to(memory_format=memory_format)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4, nesterov=True, fused=True)
    images, labels = torch.rand(60000, 1, 28, 28), torch.randint(0, 10, (60000,))

    def step():
        rows = torch.randint(0, len(images), (BATCH,))
        x = images[rows].contiguous(memory_format=memory_format)
        with torch.autocast("cpu", torch.bfloat16, enabled=amp == "bf16"):
            loss = F.cross_entropy(net(x).float(), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def measure(case, count):
    order, amp, width, threads = case.split()
    hold_torch(torch, int(threads))
    step = stepper(order, amp, int(width))
    clock = time.process_time if threads == "1" else time.perf_counter
    step()
    start = clock()
    for _ in range(count):
        step()
    return (clock() - start) / count


serve(f"PyTorch {torch.__version__}", measure)
