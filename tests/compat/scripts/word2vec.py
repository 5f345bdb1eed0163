"""Skip-gram with negative sampling over sentences of a made-up language."""

import numpy as np
import torch
from torch import nn, optim

torch.manual_seed(0)
rng = np.random.RandomState(0)
TOPICS, WORDS, NEGATIVES, WINDOW = 5, 12, 5, 2

# A sentence has words of a single topic, and a few of topic 0, which stands in all sentences.
sentences = []
for _ in range(300):
    topic = rng.randint(1, TOPICS)
    own = topic * WORDS + rng.zipf(1.5, 8).clip(1, WORDS) - 1
    own[rng.rand(8) < 0.2] = rng.randint(WORDS)
    sentences.append(own)
vocab_size = TOPICS * WORDS

pairs = []
for s in sentences:
    for i, center in enumerate(s):
        for j in range(max(0, i - WINDOW), min(len(s), i + WINDOW + 1)):
            if j != i:
                pairs.append((center, s[j]))
pairs = torch.LongTensor(np.array(pairs))

freq = torch.bincount(pairs[:, 0], minlength=vocab_size).float()
noise_dist = freq.pow(0.75)
noise_dist /= noise_dist.sum()


class SkipGram(nn.Module):
    def __init__(self, vocab_size, dim):
        super().__init__()
        self.in_embed = nn.Embedding(vocab_size, dim)
        self.out_embed = nn.Embedding(vocab_size, dim)
        self.in_embed.weight.data.uniform_(-0.5 / dim, 0.5 / dim)
        self.out_embed.weight.data.uniform_(-1, 1)

    def forward(self, center, context, noise):
        u = self.in_embed(center)
        v = self.out_embed(context)
        n = self.out_embed(noise)
        out_loss = torch.bmm(v.unsqueeze(1), u.unsqueeze(2)).sigmoid().log().squeeze()
        noise_loss = torch.bmm(n.neg(), u.unsqueeze(2)).sigmoid().log().squeeze(2).sum(1)
        return -(out_loss + noise_loss).mean()


device = 'cuda' if torch.cuda.is_available() else 'cpu'
model = SkipGram(vocab_size, 16).to(device)
optimizer = optim.Adam(model.parameters(), lr=0.03)
batch_size = 512
order = torch.randperm(pairs.size(0))

for step in range(24):
    index = order[step * batch_size % pairs.size(0):][:batch_size]
    center, context = pairs[index].t()
    noise = torch.multinomial(noise_dist, len(index) * NEGATIVES, replacement=True).view(len(index), NEGATIVES)
    loss = model(center.to(device), context.to(device), noise.to(device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f'step {step:3d} loss {loss.item():.7f}')

embed = model.in_embed.weight.data
magnitudes = embed.pow(2).sum(dim=1).sqrt().unsqueeze(0)
valid = torch.tensor([WORDS, 2 * WORDS])
similarities = torch.mm(embed[valid], embed.t()) / magnitudes
closest = similarities.topk(4)[1].tolist()
print('closest to the first words of topics 1 and 2:', closest)
