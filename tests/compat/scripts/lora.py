"""Fine-tunes a frozen network by low-rank adapters."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class LoRALinear(nn.Module):
    def __init__(self, base: nn.Linear, r: int = 4, alpha: int = 8, dropout: float = 0.05):
        super().__init__()
        self.base = base
        self.base.weight.requires_grad = False
        if self.base.bias is not None:
            self.base.bias.requires_grad = False
        self.r = r
        self.scaling = alpha / r
        self.lora_A = nn.Parameter(base.weight.new_zeros((r, base.in_features)))
        self.lora_B = nn.Parameter(base.weight.new_zeros((base.out_features, r)))
        self.dropout = nn.Dropout(dropout) if dropout > 0 else nn.Identity()
        self.merged = False
        self.reset_parameters()

    def reset_parameters(self):
        nn.init.kaiming_uniform_(self.lora_A, a=math.sqrt(5))
        nn.init.zeros_(self.lora_B)

    def forward(self, x):
        result = self.base(x)
        if not self.merged:
            result = result + (self.dropout(x) @ self.lora_A.t() @ self.lora_B.t()) * self.scaling
        return result

    @torch.no_grad()
    def merge(self):
        self.base.weight.data += (self.lora_B @ self.lora_A) * self.scaling
        self.merged = True


def inject(model, targets=("q", "v"), **kwargs):
    for name, module in list(model.named_modules()):
        for child_name, child in list(module.named_children()):
            if isinstance(child, nn.Linear) and child_name in targets:
                setattr(module, child_name, LoRALinear(child, **kwargs))
    return model


class SelfAttention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(dim, dim), nn.Linear(dim, dim), nn.Linear(dim, dim)

    def forward(self, x):
        return F.scaled_dot_product_attention(self.q(x), self.k(x), self.v(x))


class Tagger(nn.Module):
    def __init__(self, vocab=20, dim=24, classes=5):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.attn = SelfAttention(dim)
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, classes)

    def forward(self, tokens):
        x = self.embed(tokens)
        return self.head(self.norm(x + self.attn(x)))


def batch(table, n=16, length=10):
    tokens = torch.randint(0, 20, (n, length))
    return tokens, table[tokens]


def fit(model, table, steps, lr):
    params = [p for p in model.parameters() if p.requires_grad]
    opt = torch.optim.AdamW(params, lr=lr)
    history = []
    for _ in range(steps):
        tokens, tags = batch(table)
        loss = F.cross_entropy(model(tokens).transpose(1, 2), tags)
        opt.zero_grad()
        loss.backward()
        opt.step()
        history.append(loss.item())
    return history


torch.manual_seed(3)
old, new = torch.randint(0, 5, (20,)), torch.randint(0, 5, (20,))
model = Tagger()
pretraining = fit(model, old, 40, 1e-2)

for param in model.parameters():
    param.requires_grad = False
inject(model, r=4, alpha=16)
model.head.requires_grad_(True)
trainable = sum(p.numel() for p in model.parameters() if p.requires_grad)
total = sum(p.numel() for p in model.parameters())
print(f"trainable params: {trainable:,} || all params: {total:,} || trainable%: {100 * trainable / total:.2f}")
frozen = model.attn.k.weight.clone()
losses = fit(model, new, 40, 2e-2)

model.eval()
tokens, _ = batch(new)
with torch.no_grad():
    before = model(tokens)
    for m in model.modules():
        if isinstance(m, LoRALinear):
            m.merge()
    after = model(tokens)
assert torch.allclose(before, after, atol=1e-4)
assert torch.equal(frozen, model.attn.k.weight)
print("pre-training %.3f -> %.3f, fine-tuning %.3f -> %.3f" % (pretraining[0], pretraining[-1], losses[0], losses[-1]))
