"""Linear and polynomial regression from scratch, as in the first tutorials."""
import torch
from torch.autograd import Variable

dtype = torch.FloatTensor
torch.manual_seed(0)

# ---- 1. a line, with gradients by hand
N = 64
x = torch.unsqueeze(torch.linspace(-1, 1, N), dim=1)
y = 3 * x + 0.5 + 0.1 * torch.randn(x.size())
w, b = torch.zeros(1, 1), torch.zeros(1)
by_hand = []
for t in range(50):
    y_pred = x.mm(w).add(b)
    error = y_pred - y
    by_hand.append(error.pow(2).mean().item())
    w -= 0.1 * 2 * x.t().mm(error) / N
    b -= 0.1 * 2 * error.mean(0)
print("by hand: y = %.3f x + %.3f" % (w.item(), b[0]))

# ---- 2. a polynomial of degree 4, with autograd and .data
POLY_DEGREE = 4
W_target = torch.randn(POLY_DEGREE, 1) * 2
b_target = torch.randn(1)


def make_features(x):
    """Builds features i.e. a matrix with columns [x, x^2, x^3, x^4]."""
    x = x.unsqueeze(1)
    return torch.cat([x ** i for i in range(1, POLY_DEGREE + 1)], 1)


def f(x):
    """Approximated function."""
    return x.mm(W_target) + b_target[0]


def poly_desc(W, b):
    """Creates a string description of a polynomial."""
    result = "y = "
    for i, w in enumerate(W):
        result += "{:+.2f} x^{} ".format(w, i + 1)
    return result + "{:+.2f}".format(b[0])


def get_batch(batch_size=64):
    random = torch.rand(batch_size) * 2 - 1
    x = make_features(random)
    return Variable(x), Variable(f(x) + 0.1 * torch.randn(batch_size, 1))


W = Variable(torch.zeros(POLY_DEGREE, 1).type(dtype), requires_grad=True)
b = torch.zeros(1, requires_grad=True)
learning_rate = 0.2
losses = []
for batch_idx in range(300):
    batch_x, batch_y = get_batch()
    output = torch.addmm(b, batch_x, W)
    loss = (output - batch_y).pow(2).sum() / batch_x.shape[0]
    loss.backward()
    losses.append(loss.data.item())

    W.data -= learning_rate * W.grad.data
    b.data.add_(-learning_rate * b.grad.data)
    W.grad.data.zero_()
    b.grad.zero_()

print("Loss: {:.6f} after {} batches".format(losses[-1], batch_idx + 1))
print("==> Learned function:\t" + poly_desc(W.view(-1).tolist(), b.data))
print("==> Actual function:\t" + poly_desc(W_target.view(-1), b_target))

# ---- 3. a third order sine, with no_grad, in double precision
device = torch.device("cpu")
x = torch.linspace(-3.14159, 3.14159, 2000, device=device, dtype=torch.double)
y = torch.sin(x)
params = [torch.randn((), device=device, dtype=torch.double, requires_grad=True) for _ in range(4)]
first = None
for t in range(1, 201):
    y_pred = params[0] + params[1] * x + params[2] * x ** 2 + params[3] * x ** 3
    loss = (y_pred - y).square().mean()
    if t == 1:
        first = loss.item()
    grads = torch.autograd.grad(loss, params)
    with torch.no_grad():
        for p, g, lr in zip(params, grads, (2e-2, 2e-3, 2e-4, 2e-5)):
            p -= lr * g
assert loss.item() < first and by_hand[-1] < by_hand[0]
print(f"Result: y = {params[0].item():.3f} + {params[1].item():.3f} x + {params[2].item():.3f} x^2 + {params[3].item():.3f} x^3")
