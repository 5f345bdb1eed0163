import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.optim.lr_scheduler import StepLR


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, 1, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 16, 3, 1)
        self.bn2 = nn.BatchNorm2d(16)
        self.dropout = nn.Dropout(0.25)
        self.fc1 = nn.Linear(16 * 5 * 5, 32)
        self.bn3 = nn.BatchNorm1d(32)
        self.fc2 = nn.Linear(32, 4)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.max_pool2d(x, 2)
        x = F.relu(self.bn2(self.conv2(x)))
        x = F.avg_pool2d(x, kernel_size=2, stride=1)
        x = x.view(-1, 16 * 5 * 5)
        x = self.dropout(x)
        x = F.relu(self.bn3(self.fc1(x)))
        x = F.dropout(x, p=0.5, training=self.training)
        return F.log_softmax(self.fc2(x), dim=1)


def fake_digits(n):
    """Bars in four directions, in noise."""
    data = 0.3 * torch.randn(n, 1, 16, 16)
    target = torch.randint(0, 4, (n,))
    for i, t in enumerate(target.tolist()):
        k = int(torch.randint(3, 13, (1,)))
        if t == 0:
            data[i, 0, k] += 1
        elif t == 1:
            data[i, 0, :, k] += 1
        elif t == 2:
            data[i, 0] += torch.eye(16)
        else:
            data[i, 0] += torch.eye(16).flip(0)
    return data, target


def train(args, model, device, data, target, optimizer, epoch, losses):
    model.train()
    for batch_idx in range(0, len(data), args.batch_size):
        x = data[batch_idx:batch_idx + args.batch_size].to(device)
        y = target[batch_idx:batch_idx + args.batch_size].to(device)
        optimizer.zero_grad()
        output = model(x)
        loss = F.nll_loss(output, y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print("Train Epoch: {} \tLoss: {:.6f}".format(epoch, loss.item()))


def test(model, device, data, target):
    model.eval()
    with torch.no_grad():
        data, target = data.to(device), target.to(device)
        output = model(data)
        test_loss = F.nll_loss(output, target, reduction="sum").item() / len(data)
        pred = output.argmax(dim=1, keepdim=True)
        correct = pred.eq(target.view_as(pred)).sum().item()
    print("Test set: Average loss: {:.4f}, Accuracy: {}/{}".format(test_loss, correct, len(data)))


def main():
    parser = argparse.ArgumentParser(description="CNN with batch norm")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--gamma", type=float, default=0.7)
    parser.add_argument("--no-cuda", action="store_true", default=False)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()

    use_cuda = not args.no_cuda and torch.cuda.is_available()
    torch.manual_seed(args.seed)
    device = torch.device("cuda" if use_cuda else "cpu")
    data, target = fake_digits(256)
    test_data, test_target = fake_digits(64)

    model = Net().to(device)
    optimizer = optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    scheduler = StepLR(optimizer, step_size=1, gamma=args.gamma)
    losses = []
    for epoch in range(1, args.epochs + 1):
        train(args, model, device, data, target, optimizer, epoch, losses)
        test(model, device, test_data, test_target)
        scheduler.step()
    return losses


if __name__ == "__main__":
    losses = main()
