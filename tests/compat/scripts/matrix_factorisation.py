"""Matrix factorisation with biases of a table of ratings."""

import numpy as np
import torch

rng = np.random.default_rng(4)
n_users, n_items, n_factors = 60, 40, 6
taste = rng.normal(size=(n_users, 3))
kind = rng.normal(size=(n_items, 3))
ratings = np.clip(np.rint(3 + taste @ kind.T), 1, 5)
known = rng.random(ratings.shape) < 0.6
rows, cols = np.nonzero(known)


class MatrixFactorization(torch.nn.Module):
    def __init__(self, n_users, n_items, n_factors=20):
        super().__init__()
        self.user_factors = torch.nn.Embedding(n_users, n_factors)
        self.item_factors = torch.nn.Embedding(n_items, n_factors)
        self.user_biases = torch.nn.Embedding(n_users, 1)
        self.item_biases = torch.nn.Embedding(n_items, 1)
        self.offset = torch.nn.Parameter(torch.zeros(1))
        for table in (self.user_factors, self.item_factors):
            torch.nn.init.normal_(table.weight, std=0.3)
        self.user_biases.weight.data.zero_()
        self.item_biases.weight.data.zero_()

    def forward(self, user, item):
        pred = self.user_biases(user) + self.item_biases(item) + self.offset
        pred += (self.user_factors(user) * self.item_factors(item)).sum(dim=1, keepdim=True)
        return pred.squeeze()

    def predict(self, user, item):
        return self.forward(user, item).clamp(1., 5.)


model = MatrixFactorization(n_users, n_items, n_factors)
loss_func = torch.nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.1, weight_decay=1e-6)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=5, gamma=0.5)

users, items = torch.LongTensor(rows), torch.LongTensor(cols)
values = torch.FloatTensor(ratings[known])
held_out = torch.rand(len(values)) < 0.1
train_users, train_items, train_values = users[~held_out], items[~held_out], values[~held_out]

for epoch in range(12):
    p = torch.randperm(len(train_values))
    for batch in p.chunk(3):
        optimizer.zero_grad()
        prediction = model(train_users[batch], train_items[batch])
        loss = loss_func(prediction, train_values[batch])
        loss.backward()
        optimizer.step()
        print("epoch", epoch, "loss", loss.item())
    scheduler.step()

with torch.no_grad():
    error = (model.predict(users[held_out], items[held_out]) - values[held_out]).abs().mean()
    whole = model.user_factors.weight @ model.item_factors.weight.T
print(f"mean error of held-out ratings {error:.3f} at lr {scheduler.get_last_lr()[0]}, table {list(whole.shape)}")
