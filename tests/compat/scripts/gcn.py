"""Graph convolution of a random graph of communities; messages are summed by scatter_add and index_add."""

import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parameter import Parameter


def make_graph(nodes, classes, features):
    rng = np.random.RandomState(42)
    label = rng.randint(classes, size=nodes)
    same = label[:, None] == label[None]
    edges = np.argwhere(np.triu(rng.rand(nodes, nodes) < np.where(same, 0.08, 0.01), 1))
    edges = np.vstack([edges, edges[:, ::-1], np.arange(nodes)[:, None].repeat(2, 1)])
    x = rng.rand(nodes, features) < 0.1 + 0.2 * (label[:, None] == np.arange(features) % classes)
    return torch.FloatTensor(x), torch.LongTensor(edges.T.copy()), torch.LongTensor(label)


def normalized_weights(edge_index, num_nodes):
    row, col = edge_index
    deg = torch.zeros(num_nodes).scatter_add_(0, row, torch.ones(row.size(0)))
    deg_inv_sqrt = deg.pow(-0.5)
    deg_inv_sqrt[torch.isinf(deg_inv_sqrt)] = 0
    return deg_inv_sqrt[row] * deg_inv_sqrt[col]


class GraphConvolution(nn.Module):
    def __init__(self, in_features, out_features, bias=True):
        super(GraphConvolution, self).__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(torch.FloatTensor(in_features, out_features))
        if bias:
            self.bias = Parameter(torch.FloatTensor(out_features))
        else:
            self.register_parameter('bias', None)
        self.reset_parameters()

    def reset_parameters(self):
        stdv = 1. / math.sqrt(self.weight.size(1))
        self.weight.data.uniform_(-stdv, stdv)
        if self.bias is not None:
            self.bias.data.uniform_(-stdv, stdv)

    def forward(self, input, edge_index, edge_weight):
        row, col = edge_index[0], edge_index[1]
        support = torch.mm(input, self.weight)
        message = support[col] * edge_weight.view(-1, 1)
        output = torch.zeros_like(support)
        output = output.scatter_add(0, row.unsqueeze(1).expand_as(message), message)
        return output if self.bias is None else output + self.bias

    def __repr__(self):
        return self.__class__.__name__ + ' (' + str(self.in_features) + ' -> ' + str(self.out_features) + ')'


class MeanAggregator(nn.Module):
    """The mean of the neighbours, which index_add sums."""

    def forward(self, x, edge_index):
        total = torch.zeros(x.shape, dtype=x.dtype).index_add_(0, edge_index[0], x.index_select(0, edge_index[1]))
        count = torch.bincount(edge_index[0], minlength=x.size(0)).clamp(min=1).unsqueeze(-1)
        return total / count


class GCN(nn.Module):
    def __init__(self, nfeat, nhid, nclass, dropout):
        super(GCN, self).__init__()
        self.gc1 = GraphConvolution(nfeat, nhid)
        self.gc2 = GraphConvolution(2 * nhid, nclass, bias=False)
        self.mean = MeanAggregator()
        self.dropout = dropout

    def forward(self, x, edge_index, edge_weight):
        x = F.relu(self.gc1(x, edge_index, edge_weight))
        x = F.dropout(x, self.dropout, training=self.training)
        x = torch.cat([x, self.mean(x, edge_index)], dim=-1)
        return F.log_softmax(self.gc2(x, edge_index, edge_weight), dim=1)


features, edge_index, labels = make_graph(nodes=200, classes=4, features=40)
idx_train = torch.LongTensor(range(0, 100))
mask_test = torch.zeros(200, dtype=torch.bool)
mask_test[100:] = True
edge_weight = normalized_weights(edge_index, labels.shape[0])

model = GCN(features.shape[1], 16, labels.max().item() + 1, dropout=0.3)
print(model)
optimizer = torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=5e-4)
for epoch in range(30):
    model.train()
    optimizer.zero_grad()
    output = model(features, edge_index, edge_weight)
    loss_train = F.nll_loss(output[idx_train], labels[idx_train])
    loss_train.backward()
    optimizer.step()
    print('Epoch: {:04d}'.format(epoch + 1), 'loss: {:.6f}'.format(loss_train.item()))

model.eval()
preds = model(features, edge_index, edge_weight)[mask_test].max(1)[1].type_as(labels)
correct = preds.eq(labels[mask_test]).double().sum()
print("accuracy {:.3f}".format((correct / mask_test.sum()).item()))
