"""A network with binary weights and activations, trained by straight-through estimators."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd import Function


class BinarizeSTE(Function):
    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        return torch.where(input >= 0, torch.ones_like(input), -torch.ones_like(input))

    @staticmethod
    def backward(ctx, grad_output):
        input, = ctx.saved_tensors
        grad_input = grad_output.clone()
        grad_input[input.abs() > 1] = 0
        return grad_input


class QuantizeSTE(torch.autograd.Function):
    """Rounds to a number of levels; the gradient passes through, and the step learns from the sum of the errors."""

    @staticmethod
    def forward(ctx, x, step, levels):
        scaled = x / step
        quantized = scaled.round().clamp(-levels, levels)
        ctx.save_for_backward(scaled, quantized)
        ctx.levels = levels
        return quantized * step

    @staticmethod
    def backward(ctx, grad_output):
        scaled, quantized = ctx.saved_tensors
        inside = (scaled.abs() <= ctx.levels).to(grad_output.dtype)
        grad_x = grad_output * inside if ctx.needs_input_grad[0] else None
        grad_step = None
        if ctx.needs_input_grad[1]:
            grad_step = (grad_output * (quantized - scaled * inside)).sum().view(1) / scaled.numel() ** 0.5
        return grad_x, grad_step, None


class GradientReversal(Function):
    @staticmethod
    def forward(ctx, x, alpha):
        ctx.alpha = alpha
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.neg() * ctx.alpha, None


binarize = BinarizeSTE.apply


class BinaryLinear(nn.Linear):
    def forward(self, x):
        scale = self.weight.abs().mean(dim=1, keepdim=True).detach()
        return F.linear(x, binarize(self.weight) * scale, self.bias)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(6, 48)
        self.hidden = BinaryLinear(48, 48, bias=False)
        self.bn = nn.BatchNorm1d(48)
        self.out = nn.Linear(48, 3)
        self.step = nn.Parameter(torch.tensor([0.25]))
        self.domain = nn.Linear(48, 2)

    def forward(self, x, alpha=0.1):
        x = binarize(self.inp(x))
        x = self.bn(self.hidden(x))
        x = QuantizeSTE.apply(x, self.step, 7)
        return self.out(x), self.domain(GradientReversal.apply(x, alpha))


torch.manual_seed(2)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
teacher = torch.randn(6, 3)

losses = []
for step in range(50):
    x = torch.randn(64, 6)
    domain = torch.randint(0, 2, (64,))
    target = (x @ teacher).argmax(dim=1)
    logits, domains = model(x)
    loss = F.cross_entropy(logits, target)
    (loss + 0.1 * F.cross_entropy(domains, domain)).backward()
    optimizer.step()
    optimizer.zero_grad()
    for p in (model.hidden.weight,):
        p.data.clamp_(-1, 1)
    losses.append(loss.item())
    if step % 10 == 0:
        print("step", step, "loss", round(loss.item(), 4), "accuracy", (logits.argmax(1) == target).float().mean().item())

assert set(binarize(model.hidden.weight).unique().tolist()) == {-1.0, 1.0}
print("quantizer step:", model.step.item())
