"""Deep Q-learning with a replay memory and a target network in a small grid."""

import math
import random
from collections import deque, namedtuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

Transition = namedtuple("Transition", ("state", "action", "next_state", "reward"))
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
BATCH_SIZE, GAMMA, EPS_START, EPS_END, EPS_DECAY, TAU = 64, 0.8, 0.9, 0.05, 60, 0.02
random.seed(3)
np.random.seed(3)


class Grid:
    """A square of 4 by 4 cells; the goal is the last cell."""

    moves = [(0, 1), (1, 0), (0, -1), (-1, 0)]

    def reset(self):
        self.place = np.zeros(2, dtype=np.int64)
        return self.observe()

    def observe(self):
        seen = np.zeros((4, 4), dtype=np.float32)
        seen[tuple(self.place)] = 1.0
        return seen.ravel()

    def step(self, action):
        self.place = np.clip(self.place + self.moves[action], 0, 3)
        done = bool((self.place == 3).all())
        return self.observe(), 10.0 if done else -0.5, done


class ReplayMemory(object):
    def __init__(self, capacity):
        self.memory = deque([], maxlen=capacity)

    def push(self, *args):
        self.memory.append(Transition(*args))

    def sample(self, batch_size):
        return random.sample(self.memory, batch_size)

    def __len__(self):
        return len(self.memory)


class DQN(nn.Module):
    def __init__(self, n_observations, n_actions):
        super().__init__()
        self.layer1 = nn.Linear(n_observations, 64)
        self.layer2 = nn.Linear(64, 64)
        self.layer3 = nn.Linear(64, n_actions)

    def forward(self, x):
        x = F.relu(self.layer1(x))
        x = F.relu(self.layer2(x))
        return self.layer3(x)


env = Grid()
policy_net = DQN(16, 4).to(device)
target_net = DQN(16, 4).to(device)
target_net.load_state_dict(policy_net.state_dict())
target_net.eval()
optimizer = optim.AdamW(policy_net.parameters(), lr=2e-3)
memory = ReplayMemory(1000)
steps_done = 0


def select_action(state):
    global steps_done
    eps_threshold = EPS_END + (EPS_START - EPS_END) * math.exp(-1. * steps_done / EPS_DECAY)
    steps_done += 1
    if random.random() > eps_threshold:
        with torch.no_grad():
            return policy_net(state).max(1)[1].view(1, 1)
    return torch.tensor([[random.randrange(4)]], device=device, dtype=torch.long)


def optimize_model():
    if len(memory) < BATCH_SIZE:
        return
    batch = Transition(*zip(*memory.sample(BATCH_SIZE)))
    non_final_mask = torch.tensor(tuple(map(lambda s: s is not None, batch.next_state)), device=device, dtype=torch.bool)
    non_final_next_states = torch.cat([s for s in batch.next_state if s is not None])
    state_batch = torch.cat(batch.state)
    action_batch = torch.cat(batch.action)
    reward_batch = torch.cat(batch.reward)

    state_action_values = policy_net(state_batch).gather(1, action_batch)
    next_state_values = torch.zeros(BATCH_SIZE, device=device)
    with torch.no_grad():
        next_state_values[non_final_mask] = target_net(non_final_next_states).max(1).values
    expected_state_action_values = (next_state_values * GAMMA) + reward_batch

    loss = F.smooth_l1_loss(state_action_values, expected_state_action_values.unsqueeze(1))
    optimizer.zero_grad()
    loss.backward()
    for param in policy_net.parameters():
        param.grad.data.clamp_(-1, 1)
    optimizer.step()
    print("step %d loss %.8f" % (steps_done, loss.item()))


state = torch.from_numpy(env.reset()).unsqueeze(0).to(device)
for t in range(160):
    action = select_action(state)
    observation, reward, terminated = env.step(action.item())
    reward = torch.tensor([reward], device=device)
    next_state = None if terminated else torch.tensor(observation, dtype=torch.float32, device=device).unsqueeze(0)
    memory.push(state, action, next_state, reward)
    state = torch.tensor(env.reset()[None], device=device) if terminated else next_state
    if t >= 100:
        optimize_model()
    target_net_state_dict = target_net.state_dict()
    policy_net_state_dict = policy_net.state_dict()
    for key in policy_net_state_dict:
        target_net_state_dict[key] = policy_net_state_dict[key] * TAU + target_net_state_dict[key] * (1 - TAU)
    target_net.load_state_dict(target_net_state_dict)
