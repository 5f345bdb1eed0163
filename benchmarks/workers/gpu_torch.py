"""Worker of gpu.py: PyTorch on the same device, `gpu_torch.py DEVICE [--small] [--prepare]`; the cases are gpu_cases.py's,
and "compiled NET AMP" is a step under torch.compile. --prepare compiles the steps once, so that a later run finds them cached.
"""

import functools
import importlib.metadata
import os
import sys
import time

import torch
import torch.nn.functional as F
from bench import gpu_cases, serve
from torch import nn

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # deterministic products want it before their first call
device = torch.device(sys.argv[1])
SMALL = "--small" in sys.argv
S = gpu_cases.sizes(SMALL)
AMP = {"off": None, "f32": None, "tf32": None, "bf16": torch.bfloat16, "f16": torch.float16}
BATCH = 128  # batch of the main job
torch.set_default_device(device)
torch.manual_seed(1)


def wait():
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def timed(once, count):
    for _ in range(2):
        once()
    wait()
    start = time.perf_counter()
    for _ in range(count):
        once()
    wait()
    return (time.perf_counter() - start) / count


def call(count):
    a, b = torch.zeros(8), torch.zeros(8)
    seconds = 0.0
    for done in range(0, count, 256):
        wait()
        calls = range(min(256, count - done))
        start = time.perf_counter()
        for _ in calls:
            a + b
        seconds += time.perf_counter() - start
    return seconds / count


@functools.lru_cache(1)
def attention(length, backward, deterministic):
    """Prepares attention by cuDNN's plan, which PyTorch keeps from call to call."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    shape = (S.tokens // length, S.heads, length, S.head_width)
    q, k, v, grad = (torch.randn(shape, dtype=torch.bfloat16) for _ in range(4))
    leaves = [x.requires_grad_(backward) for x in (q, k, v)]

    def forward():
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    if not backward:
        return forward
    out = forward()
    return lambda: torch.autograd.grad(out, leaves, grad, retain_graph=True)


@functools.lru_cache(1)
def conv(n, into, side, out, window, stride, backward):
    x = torch.randn(n, into, side, side, dtype=torch.bfloat16).to(memory_format=torch.channels_last).requires_grad_(backward)
    w = torch.randn(out, into, window, window, dtype=torch.bfloat16).to(memory_format=torch.channels_last).requires_grad_(backward)
    if not backward:
        return lambda: F.conv2d(x, w, None, stride, window // 2)
    y = F.conv2d(x, w, None, stride, window // 2)
    grad = torch.randn_like(y)
    return lambda: torch.autograd.grad(y, [x, w], grad, retain_graph=True)


class Block(nn.Module):
    def __init__(self, net):
        super().__init__()
        w, self.heads = net.width, net.heads
        self.norm1, self.norm2 = nn.LayerNorm(w), nn.LayerNorm(w)
        self.qkv, self.out = nn.Linear(w, 3 * w), nn.Linear(w, w)
        self.up, self.down = nn.Linear(w, 4 * w), nn.Linear(4 * w, w)

    def forward(self, x):
        n, length, width = x.shape
        parts = self.qkv(self.norm1(x)).view(n, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(*parts, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(n, length, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    """The network of examples/gpt.py, or with GPT-2's vocabulary, where the embedding serves as the head too."""

    def __init__(self, net, tied):
        super().__init__()
        self.byte, self.place = nn.Embedding(net.vocabulary, net.width), nn.Embedding(net.context, net.width)
        self.blocks = nn.ModuleList(Block(net) for _ in range(net.layers))
        self.norm = nn.LayerNorm(net.width)
        self.head = None if tied else nn.Linear(net.width, net.vocabulary, bias=False)
        for parameter in self.parameters():
            if parameter.ndim == 2:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, index):
        x = self.byte(index) + self.place(torch.arange(index.shape[1], device=index.device))
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.byte.weight if self.head is None else self.head.weight)


def gpt_parts(which, amp):
    """Returns (loss of a batch, function that draws a batch, optimizer, parameters whose gradients are clipped)."""
    size = getattr(S, which)
    net = GPT(size, tied=which == "gpt2")
    text = torch.randint(0, size.vocabulary, (size.batch * size.context * 16,))
    groups = [{"params": [p for p in net.parameters() if p.ndim == 2], "weight_decay": 0.1},
              {"params": [p for p in net.parameters() if p.ndim < 2], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.95), fused=True)

    def loss_of(x, target):
        with torch.autocast(device.type, AMP[amp] or torch.bfloat16, enabled=AMP[amp] is not None):
            return F.cross_entropy(net(x).reshape(-1, size.vocabulary), target)

    def draw():
        starts = torch.randint(0, len(text) - size.context, (size.batch, 1))
        pieces = text[starts + torch.arange(size.context + 1)]
        return pieces[:, :-1].contiguous(), pieces[:, 1:].reshape(-1)

    return loss_of, draw, optimizer, list(net.parameters())


def resnet_parts(amp):
    """The same of torchvision's ResNet, channels last."""
    from torchvision.models import resnet

    size = S.resnet
    block, layers = (resnet.BasicBlock, [2, 2, 2, 2]) if size.depth == 18 else (resnet.Bottleneck, [3, 4, 6, 3])
    net = resnet.ResNet(block, layers, num_classes=size.kinds).to(memory_format=torch.channels_last)
    batch = (torch.randn(size.batch, 3, size.side, size.side).to(memory_format=torch.channels_last), torch.randint(0, size.kinds, (size.batch,)))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4, nesterov=True, fused=True)

    def loss_of(x, target):
        with torch.autocast(device.type, AMP[amp] or torch.bfloat16, enabled=AMP[amp] is not None):
            return F.cross_entropy(net(x), target)

    return loss_of, lambda: batch, optimizer, []


@functools.lru_cache(1)  # memory holds a single case at a time
def step(which, amp, compiled, deterministic):
    torch._dynamo.reset()
    loss_of, draw, optimizer, clipped = resnet_parts(amp) if which == "resnet" else gpt_parts(which, amp)
    forward = torch.compile(loss_of) if compiled else loss_of

    def once():
        loss = forward(*draw())
        optimizer.zero_grad()
        loss.backward()
        if clipped:
            nn.utils.clip_grad_norm_(clipped, 1.0)
        optimizer.step()
        return loss.detach()

    return once


def made_step(*how):
    """Returns a step, after memory of another step has gone back to the device, where Yoke may need it."""
    if made_step.last != how:
        made_step.last = how
        step.cache_clear()
        if device.type == "cuda":
            torch.cuda.empty_cache()
    return step(*how)


made_step.last = ()


@functools.lru_cache(None)
def mlp_data():
    images = torch.randint(0, 256, (S.pictures, 784)).to(torch.uint8)
    return images, torch.randint(0, 10, (S.pictures,))


@functools.lru_cache(None)
def mlp_loss(amp, compiled):
    net = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))

    def loss_of(x, target):
        with torch.autocast(device.type, AMP[amp] or torch.bfloat16, enabled=AMP[amp] is not None):
            return F.cross_entropy(net(x), target)

    return net, torch.compile(loss_of) if compiled else loss_of


def mlp(amp, compiled, count):
    """Runs the loop of examples/fashion_mnist.py, with the same scaling of bytes, order, optimizer and schedule."""
    images, labels = mlp_data()
    net, forward = mlp_loss(amp, compiled)
    forward(images[:BATCH] / 255, labels[:BATCH]).backward()  # compiles
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    steps = min(count, S.pictures // BATCH)
    losses = []
    wait()
    start = time.perf_counter()
    order = torch.randperm(steps * BATCH)
    for i in range(steps):
        rows = order[i * BATCH:(i + 1) * BATCH]
        loss = forward(images[rows] / 255, labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        optimizer.param_groups[0]["lr"] = 0.1 * (1 - (i + 1) / steps)
        losses.append(loss.detach())
    torch.stack(losses).tolist()
    return (time.perf_counter() - start) / steps


def measure(case, count):
    name, *arguments = case.split()
    deterministic = "deterministic" in arguments
    arguments = [argument for argument in arguments if argument != "deterministic"]
    torch.backends.cuda.matmul.allow_tf32 = "tf32" in arguments
    torch.use_deterministic_algorithms(deterministic)  # an op that has none raises an error, which names the op
    torch.backends.cudnn.deterministic = deterministic
    if name == "call":
        return call(count)
    if name in ("mlp", "mlp_compiled"):
        return mlp(arguments[0], name == "mlp_compiled", count)
    if name == "attention":
        return timed(attention(int(arguments[0]), "backward" in arguments, deterministic), count)
    if name == "conv":
        return timed(conv(*map(int, arguments[1:7]), "backward" in arguments), count)
    if name in ("step", "compiled"):
        attention.cache_clear()
        conv.cache_clear()
        return timed(made_step(*arguments, name == "compiled", deterministic), count)
    raise RuntimeError(f"no case {case}")


def version(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "none"


if "--prepare" in sys.argv:
    for case in ("compiled gpt2 bf16", "compiled resnet bf16", "compiled gpt bf16", "mlp_compiled off", "mlp_compiled bf16"):
        print(case, measure(case, 2), flush=True)
else:
    cudnn = torch.backends.cudnn.version() if device.type == "cuda" else None
    serve(f"PyTorch {torch.__version__}, CUDA {torch.version.cuda}, cuDNN {cudnn}, Triton {version('triton')}, torchvision {version('torchvision')}", measure)
