"""A mixture density network of a curve with several answers to a question."""

import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor

ONEOVERSQRT2PI = 1.0 / math.sqrt(2 * math.pi)
torch.manual_seed(1234)


def generate(n_samples: int):
    rng = np.random.default_rng(3)
    epsilon = rng.normal(size=n_samples)
    y = rng.uniform(-10, 10, n_samples)
    x = 7 * np.sin(0.75 * y) + 0.5 * y + epsilon
    return x / 10, y


class MDN(nn.Module):
    """Weights, means and deviations of the mixture, each by a layer of its own."""

    def __init__(self, n_hidden: int, n_gaussians: int):
        super(MDN, self).__init__()
        self.z_h = nn.Sequential(nn.Linear(1, n_hidden), nn.Tanh())
        self.z_pi = nn.Linear(n_hidden, n_gaussians)
        self.z_mu = nn.Linear(n_hidden, n_gaussians)
        self.z_sigma = nn.Linear(n_hidden, n_gaussians)
        with torch.no_grad():
            self.z_mu.bias.copy_(torch.linspace(-8, 8, n_gaussians))

    def forward(self, x: Tensor):
        z_h = self.z_h(x)
        log_pi = F.log_softmax(self.z_pi(z_h), -1)
        mu = self.z_mu(z_h)
        sigma = F.elu(self.z_sigma(z_h)) + 1 + 1e-6
        return log_pi, mu, sigma


def mdn_loss_fn(y: Tensor, log_pi: Tensor, mu: Tensor, sigma: Tensor) -> Tensor:
    log_prob = -0.5 * ((y.expand_as(mu) - mu) * torch.reciprocal(sigma)) ** 2 - torch.log(sigma) + math.log(ONEOVERSQRT2PI)
    return -torch.logsumexp(log_pi + log_prob, dim=1).mean()


@torch.no_grad()
def sample(network: nn.Module, x: Tensor) -> Tensor:
    log_pi, mu, sigma = network(x)
    k = torch.multinomial(log_pi.exp(), 1)
    return torch.normal(mu.gather(1, k), sigma.gather(1, k))


x_data, y_data = generate(400)
x_tensor = torch.from_numpy(np.float32(x_data).reshape(-1, 1))
y_tensor = torch.from_numpy(np.float32(y_data).reshape(-1, 1))
x_variable = x_tensor.clone().requires_grad_()

network = MDN(n_hidden=20, n_gaussians=5)
optimizer = torch.optim.Adam(network.parameters(), lr=0.02)

for epoch in range(40):
    pi_variable, mu_variable, sigma_variable = network(x_variable)
    loss = mdn_loss_fn(y_tensor, pi_variable, mu_variable, sigma_variable)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if epoch % 2 == 0 or epoch > 10:
        print(epoch, 'loss', loss.data.tolist())

assert x_variable.grad is not None and x_variable.grad.shape == x_variable.shape
x_test = torch.linspace(-1.2, 1.2, 50).reshape(-1, 1)
drawn = sample(network, x_test)
print('samples between %.2f and %.2f' % (drawn.min().item(), drawn.max().item()))
print('deviation', float(drawn.std()), 'most likely', int(network(x_test)[0].detach().argmax(1).mode()[0]))
