"""Proximal policy optimisation of a point that must stay near the middle of a line."""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim


@dataclass
class Args:
    seed: int = 1
    learning_rate: float = 3e-3
    num_envs: int = 8
    num_steps: int = 32
    gamma: float = 0.95
    gae_lambda: float = 0.95
    num_minibatches: int = 4
    update_epochs: int = 2
    clip_coef: float = 0.2
    ent_coef: float = 0.01
    vf_coef: float = 0.5
    max_grad_norm: float = 0.5
    num_iterations: int = 6


class Lines:
    """Independent points with a velocity; a push of -1, 0 or 1 is the action."""

    def __init__(self, n):
        self.n = n

    def reset(self):
        self.rng = np.random.default_rng(0)
        self.x = self.rng.uniform(-1, 1, (self.n, 2))
        return self.x.astype(np.float32)

    def step(self, action):
        self.x[:, 1] += 0.1 * (action - 1)
        self.x[:, 0] += 0.2 * self.x[:, 1]
        reward = 1.0 - np.abs(self.x).sum(1)
        done = np.abs(self.x[:, 0]) > 2
        self.x[done] = self.rng.uniform(-1, 1, (int(done.sum()), 2))
        return self.x.astype(np.float32), reward, done


def layer_init(layer, std=np.sqrt(2), bias_const=0.0):
    torch.nn.init.orthogonal_(layer.weight, std)
    torch.nn.init.constant_(layer.bias, bias_const)
    return layer


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.critic = nn.Sequential(layer_init(nn.Linear(2, 32)), nn.Tanh(), layer_init(nn.Linear(32, 1), std=1.0))
        self.actor = nn.Sequential(layer_init(nn.Linear(2, 32)), nn.Tanh(), layer_init(nn.Linear(32, 3), std=0.01))

    def get_value(self, x):
        return self.critic(x)

    def get_action_and_value(self, x, action=None):
        logits = self.actor(x)
        logp = logits - logits.logsumexp(dim=-1, keepdim=True)
        probs = logp.exp()
        if action is None:
            action = torch.multinomial(probs, 1).squeeze(-1)
        entropy = -(probs * logp).sum(-1)
        return action, logp.gather(-1, action.unsqueeze(-1)).squeeze(-1), entropy, self.critic(x)


args = Args()
np.random.seed(args.seed)
torch.manual_seed(args.seed)
torch.backends.cudnn.deterministic = True
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
envs = Lines(args.num_envs)
agent = Agent().to(device)
optimizer = optim.Adam(agent.parameters(), lr=args.learning_rate, eps=1e-5)

obs = torch.zeros((args.num_steps, args.num_envs) + (2,)).to(device)
actions = torch.zeros((args.num_steps, args.num_envs)).to(device)
logprobs = torch.zeros((args.num_steps, args.num_envs)).to(device)
rewards = torch.zeros((args.num_steps, args.num_envs)).to(device)
dones = torch.zeros((args.num_steps, args.num_envs)).to(device)
values = torch.zeros((args.num_steps, args.num_envs)).to(device)
next_obs = torch.Tensor(envs.reset()).to(device)
next_done = torch.zeros(args.num_envs).to(device)

for iteration in range(1, args.num_iterations + 1):
    optimizer.param_groups[0]["lr"] = (1.0 - (iteration - 1.0) / args.num_iterations) * args.learning_rate
    for step in range(args.num_steps):
        obs[step] = next_obs
        dones[step] = next_done
        with torch.no_grad():
            action, logprob, _, value = agent.get_action_and_value(next_obs)
            values[step] = value.flatten()
        actions[step] = action
        logprobs[step] = logprob
        next_obs, reward, done = envs.step(action.cpu().numpy())
        rewards[step] = torch.tensor(reward).to(device).view(-1)
        next_obs, next_done = torch.Tensor(next_obs).to(device), torch.Tensor(done).to(device)

    with torch.no_grad():
        next_value = agent.get_value(next_obs).reshape(1, -1)
        advantages = torch.zeros_like(rewards).to(device)
        lastgaelam = 0
        for t in reversed(range(args.num_steps)):
            nextnonterminal = 1.0 - (next_done if t == args.num_steps - 1 else dones[t + 1])
            nextvalues = next_value if t == args.num_steps - 1 else values[t + 1]
            delta = rewards[t] + args.gamma * nextvalues * nextnonterminal - values[t]
            advantages[t] = lastgaelam = delta + args.gamma * args.gae_lambda * nextnonterminal * lastgaelam
        returns = advantages + values

    b_obs, b_logprobs = obs.reshape((-1, 2)), logprobs.reshape(-1)
    b_actions, b_advantages, b_returns = actions.reshape(-1), advantages.reshape(-1), returns.reshape(-1)
    b_inds = np.arange(args.num_envs * args.num_steps)
    for epoch in range(args.update_epochs):
        np.random.shuffle(b_inds)
        for mb_inds in np.array_split(b_inds, args.num_minibatches):
            _, newlogprob, entropy, newvalue = agent.get_action_and_value(b_obs[mb_inds], b_actions.long()[mb_inds])
            ratio = (newlogprob - b_logprobs[mb_inds]).exp()
            mb_advantages = b_advantages[mb_inds]
            mb_advantages = (mb_advantages - mb_advantages.mean()) / (mb_advantages.std() + 1e-8)
            pg_loss1 = -mb_advantages * ratio
            pg_loss2 = -mb_advantages * torch.clamp(ratio, 1 - args.clip_coef, 1 + args.clip_coef)
            pg_loss = torch.max(pg_loss1, pg_loss2).mean()
            v_loss = 0.5 * ((newvalue.view(-1) - b_returns[mb_inds]) ** 2).mean()
            loss = pg_loss - args.ent_coef * entropy.mean() + v_loss * args.vf_coef
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), args.max_grad_norm)
            optimizer.step()
            print(f"iteration {iteration} reward {rewards.mean().item():.4f} v_loss={v_loss.item():.8f}")
