import math

import torch
import torch.nn as nn
import torch.optim as optim

torch.manual_seed(1)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def make_spirals(points, classes):
    """One arm of a spiral for each class."""
    xs, ys = [], []
    for c in range(classes):
        r = torch.linspace(0.05, 1, points)
        t = torch.linspace(c * 4, (c + 1) * 4, points) + torch.randn(points) * 0.2
        xs.append(torch.stack([r * torch.sin(t), r * torch.cos(t)], dim=1))
        ys.append(torch.full((points,), c, dtype=torch.long))
    return torch.cat(xs), torch.cat(ys)


class MLP(nn.Module):
    def __init__(self, in_dim, hidden, out_dim):
        super(MLP, self).__init__()
        self.layers = nn.Sequential(
            nn.Linear(in_dim, hidden),
            nn.ReLU(inplace=True),
            nn.Linear(hidden, hidden),
            nn.Tanh(),
            nn.Dropout(p=0.1),
            nn.Linear(hidden, out_dim),
        )

    def forward(self, x):
        return self.layers(x)


X, y = make_spirals(100, 3)
X, y = X.to(device), y.to(device)
perm = torch.randperm(X.size(0))
train_idx, test_idx = perm[:240], perm[240:]
X_train, y_train = X[train_idx], y[train_idx]
X_test, y_test = X[test_idx], y[test_idx]

model = MLP(2, 64, 3).to(device)
print("parameters:", sum(p.numel() for p in model.parameters() if p.requires_grad))
criterion = nn.CrossEntropyLoss()
optimizer = optim.Adam(model.parameters(), lr=1e-2, weight_decay=1e-5)

losses = []
for epoch in range(60):
    model.train()
    optimizer.zero_grad()
    outputs = model(X_train)
    loss = criterion(outputs, y_train)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())

    if (epoch + 1) % 20 == 0:
        model.eval()
        with torch.no_grad():
            _, predicted = torch.max(model(X_test), 1)
            correct = (predicted == y_test).sum().item()
        print("epoch {:3d}  loss {:.4f}  accuracy {:.1f}%".format(epoch + 1, loss.item(), 100.0 * correct / y_test.size(0)))

assert not math.isnan(losses[-1])
