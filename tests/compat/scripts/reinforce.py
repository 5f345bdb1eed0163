"""REINFORCE on a short walk: the policy samples by multinomial, and the loss weighs log_softmax by returns."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

torch.manual_seed(543)
CELLS = 12


class Corridor(object):
    """Walkers on a row of cells; each step to the right pays 1, and the last cell pays nothing."""

    def __init__(self, walkers):
        self.walkers = walkers

    def reset(self):
        self.cell = np.arange(self.walkers) % 4
        self.t = 0
        return self.state()

    def state(self):
        return np.eye(CELLS)[self.cell]

    def step(self, move):
        before, self.cell = self.cell, np.clip(self.cell + np.where(move == 1, 1, -1), 0, CELLS - 1)
        self.t += 1
        return self.state(), (self.cell > before).astype(float), self.t == 8


class Policy(nn.Module):
    def __init__(self):
        super(Policy, self).__init__()
        self.affine1 = nn.Linear(CELLS, 32)
        self.dropout = nn.Dropout(p=0.1)
        self.affine2 = nn.Linear(32, 2)
        self.saved_log_probs = []
        self.rewards = []

    def forward(self, x):
        x = self.affine1(x)
        x = self.dropout(x)
        x = F.relu(x)
        return F.log_softmax(self.affine2(x), dim=1)


policy = Policy()
optimizer = optim.Adam(policy.parameters(), lr=2e-2)
env = Corridor(64)


def select_action(state):
    state = torch.from_numpy(state).float()
    log_probs = policy(state)
    action = torch.multinomial(log_probs.detach().exp(), 1)
    policy.saved_log_probs.append(log_probs.gather(1, action).squeeze(1))
    return action.view(-1).numpy()


def finish_episode():
    R = 0
    policy_loss = []
    returns = []
    for r in policy.rewards[::-1]:
        R = r + 0.9 * R
        returns.insert(0, R)
    returns = torch.tensor(np.array(returns), dtype=torch.float)
    for log_prob, R in zip(policy.saved_log_probs, returns):
        policy_loss.append(-log_prob * R)
    optimizer.zero_grad()
    policy_loss = torch.cat(policy_loss).mean()
    policy_loss.backward()
    optimizer.step()
    del policy.rewards[:]
    del policy.saved_log_probs[:]
    return policy_loss.item()


def main():
    running_reward = None
    for i_episode in range(1, 31):
        state, ep_reward, done = env.reset(), 0, False
        while not done:
            action = select_action(state)
            state, reward, done = env.step(action)
            policy.rewards.append(reward)
            ep_reward += reward.mean()
        running_reward = ep_reward if running_reward is None else 0.05 * ep_reward + 0.95 * running_reward
        loss = finish_episode()
        print("Episode {}\tAverage reward: {:.2f}\tloss: {:.7f}".format(i_episode, running_reward, loss))


if __name__ == '__main__':
    main()
