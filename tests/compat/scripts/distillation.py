"""Knowledge distillation: a small student learns from the soft answers of a larger teacher."""

import copy

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 5
np.random.seed(SEED)
torch.manual_seed(SEED)
torch.cuda.manual_seed_all(SEED)

centers = np.random.randn(10, 20) * 1.2
labels = np.random.randint(0, 10, 1000)
points = (centers[labels] + np.random.randn(1000, 20)).astype('float32')
train_x, train_y = torch.from_numpy(points[:800]), torch.from_numpy(labels[:800]).long()
test_x, test_y = torch.from_numpy(points[800:]), torch.from_numpy(labels[800:]).long()


def mlp(*sizes, dropout=0.0):
    layers = []
    for i, (a, b) in enumerate(zip(sizes[:-1], sizes[1:])):
        layers += [nn.Linear(a, b)]
        if i < len(sizes) - 2:
            layers += [nn.ReLU(inplace=True), nn.Dropout(dropout)]
    return nn.Sequential(*layers)


def batches(x, y, size):
    order = torch.randperm(x.size(0))
    for i in range(0, x.size(0), size):
        yield x[order[i:i + size]], y[order[i:i + size]]


def accuracy(model, x, y):
    model.eval()
    with torch.no_grad():
        pred = model(x).argmax(dim=1, keepdim=True)
        correct = pred.eq(y.view_as(pred)).sum().item()
    return 100. * correct / len(y)


class Distiller:
    def __init__(self, teacher, temperature=4.0, alpha=0.7):
        self.teacher, self.T, self.alpha = copy.deepcopy(teacher), temperature, alpha
        self.teacher.eval()
        for p in self.teacher.parameters():
            p.requires_grad = False
        self.kl = nn.KLDivLoss(reduction='batchmean')
        self.ce = nn.CrossEntropyLoss(label_smoothing=0.05)

    def __call__(self, student_logits, x, y):
        soft = F.softmax(self.teacher(x) / self.T, dim=1)
        distill = self.kl(F.log_softmax(student_logits / self.T, dim=1), soft) * self.T ** 2
        return self.alpha * distill + (1 - self.alpha) * self.ce(student_logits, y)


teacher = mlp(20, 128, 128, 10, dropout=0.2)
optimizer = torch.optim.Adam(teacher.parameters(), lr=0.005)
for epoch in range(2):
    teacher.train()
    for x, y in batches(train_x, train_y, 100):
        optimizer.zero_grad()
        loss = F.cross_entropy(teacher(x), y)
        loss.backward()
        optimizer.step()
        print('teacher: %.6f' % loss.item())
print('teacher accuracy {:.1f}%'.format(accuracy(teacher, test_x, test_y)))

student = mlp(20, 16, 10)
optimizer = torch.optim.SGD(student.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=5e-4)
criterion = Distiller(teacher)
for epoch in range(3):
    student.train()
    for x, y in batches(train_x, train_y, 100):
        output = student(x)
        loss = criterion(output, x, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print('student loss %.6f' % loss.item())
    print('epoch {} student accuracy {:.1f}%'.format(epoch, accuracy(student, test_x, test_y)))

sizes = [sum(p.numel() for p in m.parameters() if p.requires_grad) for m in (teacher, student)]
print('parameters of teacher and student: {:,} and {:,}'.format(*sizes))
