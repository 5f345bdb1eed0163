import torch
from torch import nn, optim

torch.manual_seed(11)

batch_size, accum_iter, max_norm = 8, 4, 0.5
vocab_size, seq_len = 24, 12
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Residual(nn.Module):
    def __init__(self, fn, size):
        super().__init__()
        self.fn = fn
        self.norm = nn.LayerNorm(size)

    def forward(self, x):
        return self.fn(self.norm(x)) + x


class Mixer(nn.Module):
    """Mixes tokens, then channels. Predicts whether more tokens are even than odd, and their most frequent residue mod 3."""

    def __init__(self, dim=16):
        super().__init__()
        self.emb = nn.Embedding(vocab_size, dim)
        self.tokens = Residual(nn.Linear(dim, dim), dim)
        self.channels = Residual(nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim)), dim)
        self.heads = nn.ModuleList([nn.Linear(dim, 2), nn.Linear(dim, 3)])

    def forward(self, ids):
        h = self.channels(self.tokens(self.emb(ids)))
        pooled = h.mean(dim=1)
        return tuple(head(pooled) for head in self.heads)


def get_batch():
    ids = torch.randint(high=vocab_size, size=(batch_size, seq_len))
    parity = ((ids % 2 == 0).sum(1) * 2 > seq_len).long()
    counts = torch.zeros(batch_size, 3).scatter_add_(1, ids.fmod(3), torch.ones(batch_size, seq_len))
    return ids.to(device), (parity.to(device), counts.argmax(1).to(device))


model = Mixer().to(device)
criterion = nn.CrossEntropyLoss(reduction="sum")
optimizer = optim.AdamW([
    {"params": model.emb.parameters(), "lr": 2e-2},
    {"params": [p for n, p in model.named_parameters() if not n.startswith("emb.")]},
], lr=5e-3, weight_decay=0.01)

losses = []
norms = []
running_loss = 0.0
optimizer.zero_grad()
for batch_idx in range(accum_iter * 30):
    ids, labels = get_batch()
    outputs = model(ids)
    loss = sum(criterion(out, label) for out, label in zip(outputs, labels)) / batch_size

    # normalize loss to account for batch accumulation
    loss = loss / accum_iter
    loss.backward()
    running_loss += loss.item()

    # weights update
    if (batch_idx + 1) % accum_iter == 0:
        total_norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        norms.append(total_norm.item())
        clipped = torch.norm(torch.stack([torch.norm(p.grad.detach(), 2) for p in model.parameters() if p.grad is not None]), 2)
        assert clipped <= max_norm + 1e-4
        optimizer.step()
        optimizer.zero_grad()
        losses.append(running_loss)
        running_loss = 0.0

for i in range(0, len(losses), 10):
    print("update {}: loss {:.4f}, grad norm {:.3f}".format(i, losses[i], norms[i]))
print("mean gradient norm:", torch.tensor(norms).mean().item(), "lr:", [g["lr"] for g in optimizer.param_groups])
