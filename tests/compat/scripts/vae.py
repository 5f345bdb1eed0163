"""A variational autoencoder of small pictures with bars."""

import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.utils.data
from torch import optim

parser = argparse.ArgumentParser(description="VAE")
parser.add_argument("--batch-size", type=int, default=64, metavar="N", help="input batch size for training")
parser.add_argument("--epochs", type=int, default=5, metavar="N", help="number of epochs to train")
parser.add_argument("--no-cuda", action="store_true", default=False, help="disables CUDA training")
parser.add_argument("--seed", type=int, default=1, metavar="S", help="random seed")
args = parser.parse_args()
args.cuda = not args.no_cuda and torch.cuda.is_available()

torch.manual_seed(args.seed)
device = torch.device("cuda" if args.cuda else "cpu")
SIDE = 12


def bars(n):
    rng = np.random.RandomState(0)
    images = np.zeros((n, 1, SIDE, SIDE), np.float32)
    for image in images:
        image[0, rng.randint(SIDE)] = 1.0
        image[0, :, rng.randint(SIDE)] = 1.0
    return torch.from_numpy(images)


class VAE(nn.Module):
    def __init__(self):
        super(VAE, self).__init__()
        self.fc1 = nn.Linear(SIDE * SIDE, 100)
        self.fc21 = nn.Linear(100, 8)
        self.fc22 = nn.Linear(100, 8)
        self.fc3 = nn.Linear(8, 100)
        self.fc4 = nn.Linear(100, SIDE * SIDE)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std)
        return mu + eps * std

    def decode(self, z):
        h3 = F.relu(self.fc3(z))
        return torch.sigmoid(self.fc4(h3))

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, SIDE * SIDE))
        z = self.reparameterize(mu, logvar)
        return self.decode(z), mu, logvar


model = VAE().to(device)
optimizer = optim.Adam(model.parameters(), lr=3e-3)


def loss_function(recon_x, x, mu, logvar):
    BCE = F.binary_cross_entropy(recon_x, x.view(-1, SIDE * SIDE), reduction="sum")
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return BCE + KLD


def train(epoch, images):
    model.train()
    train_loss = 0
    for batch_idx, data in enumerate(torch.split(images, args.batch_size)):
        data = data.to(device)
        optimizer.zero_grad()
        recon_batch, mu, logvar = model(data)
        loss = loss_function(recon_batch, data, mu, logvar)
        loss.backward()
        train_loss += loss.item()
        optimizer.step()
        print("Train Epoch: {} [{}/{}]\tloss: {:.6f}".format(
            epoch, batch_idx * len(data), len(images), loss.item() / len(data)))
    print("====> Epoch: {} average: {:.4f}".format(epoch, train_loss / len(images)))


if __name__ == "__main__":
    images = bars(320)
    for epoch in range(1, args.epochs + 1):
        train(epoch, images)
    model.eval()
    with torch.no_grad():
        sample = model.decode(torch.randn(16, 8).to(device)).cpu().view(16, 1, SIDE, SIDE)
    assert sample.min() >= 0 and sample.max() <= 1
