"""Worker of gpu.py: Yoke on a device. `gpu_yoke.py DEVICE [--small] [--profile NET]`; gpu_cases.py describes each case. --profile
lets a profiler see a single step of a net, after steps that it does not see.

Tensors are large beside the L2 cache, inputs are used in turn and the last results are kept, so that each call works on memory
outside the cache. Host seconds ("call", "replay") are those of bursts, with the wait outside the clock.
"""

import ctypes
import functools
import sys
import time

import fashion_mnist
import gpt
import resnet
import yoke
from bench import gpu_cases, serve
from yoke import nn, optim

device = yoke.device(sys.argv[1])
S = gpu_cases.sizes("--small" in sys.argv)
DTYPES = {"f32": yoke.float32, "tf32": yoke.float32, "f16": yoke.float16, "bf16": yoke.bfloat16}
yoke.set_device(device)
yoke.manual_seed(1)


def drawn(draw, *arguments):
    """Returns random numbers, from the CPU if the device cannot draw them."""
    try:
        return draw(*arguments)
    except yoke.UnsupportedError:
        return draw(*arguments, device="cpu").to(device)


def timed(once, count):
    """Returns the device's seconds for one of `count` repetitions."""
    kept = [None] * 2
    for i in range(2):
        kept[i] = once(i)
    device.synchronize()
    start = time.perf_counter()
    for i in range(count):
        kept[i % 2] = once(i)
    device.synchronize()
    return (time.perf_counter() - start) / count


def host_timed(once, count, burst):
    """Returns host seconds for one of `count` calls, in bursts that the driver queues without waiting."""
    once(), once()
    seconds = 0.0
    for done in range(0, count, burst):
        device.synchronize()
        calls = range(min(burst, count - done))
        start = time.perf_counter()
        for _ in calls:
            once()
        seconds += time.perf_counter() - start
    device.synchronize()
    return seconds / count


# ---- kernels: each makes a function of the repetition's number -----------------------------------------------------


def normal(shape, dtype):
    """Returns two tensors of random numbers, which take turns."""
    return [drawn(yoke.randn, shape).to(DTYPES[dtype]) for _ in range(2)]


def rows(dtype):
    return S.block // (2 if dtype in ("f16", "bf16") else 4) // S.width


def flat(dtype):
    return (rows(dtype) * S.width,)


def add(dtype):
    x, y = normal(flat(dtype), dtype), normal(flat(dtype), dtype)
    return lambda i: x[i % 2] + y[i % 2]


def gelu(dtype):
    x = normal(flat(dtype), dtype)
    return lambda i: yoke.gelu(x[i % 2])


def cast(dtype):
    x = normal(flat("f32"), "f32")
    return lambda i: x[i % 2].to(DTYPES[dtype])


def by_rows(dtype, function, backward):
    """Returns function(x) over rows, or its gradient: one graph, walked again and again."""
    x = normal((rows(dtype), S.width), dtype)
    if not backward:
        return lambda i: function(x[i % 2])
    with yoke.enable_grad():
        leaves = [one.requires_grad_(True) for one in x]
        out = [function(leaf) for leaf in leaves]
    grad = normal((rows(dtype), S.width), dtype)
    return lambda i: yoke.grad(out[i % 2], leaves[i % 2], grad[i % 2], retain_graph=True)


def softmax(dtype, backward=False):
    return by_rows(dtype, lambda x: yoke.softmax(x, -1), backward)


def layer_norm(dtype, backward=False):
    with yoke.enable_grad():
        weight, bias = (drawn(yoke.rand, (S.width,)).to(DTYPES[dtype]).requires_grad_(backward) for _ in range(2))
    return by_rows(dtype, lambda x: yoke.layer_norm(x, (S.width,), weight, bias), backward)


def cross_entropy(dtype, backward=False):
    count = S.block // (2 if dtype == "bf16" else 4) // S.classes
    x, target = normal((count, S.classes), dtype), drawn(yoke.randint, 0, S.classes, (count,))
    if not backward:
        return lambda i: yoke.cross_entropy(x[i % 2], target)
    with yoke.enable_grad():
        leaves = [one.requires_grad_(True) for one in x]
        losses = [yoke.cross_entropy(leaf, target) for leaf in leaves]
    return lambda i: yoke.grad(losses[i % 2], leaves[i % 2], retain_graph=True)


def pictures(dtype):
    """Two images of S.block bytes whose channels are neighbours in memory, to take turns."""
    channels = side = 64 if S.block > 2**20 else 8
    count = S.block // (2 if dtype == "bf16" else 4) // channels // side**2
    return [one.permute(0, 3, 1, 2) for one in normal((count, side, side, channels), dtype)]


def of_pictures(function, inputs, backward):
    """Returns function(*inputs) of lists of two tensors each, or its gradients by all of them."""
    if not backward:
        return lambda i: function(*(two[i % 2] for two in inputs))
    with yoke.enable_grad():
        leaves = [[one.requires_grad_(True) for one in pair] for pair in zip(*inputs)]
        out = [function(*pair) for pair in leaves]
    grads = [one.detach() + 1.0 for one in out]  # in the same order of memory
    return lambda i: yoke.grad(out[i % 2], leaves[i % 2], grads[i % 2], retain_graph=True)


def batch_norm(dtype, backward=False):
    return of_pictures(lambda x: yoke.batch_norm(x, training=True), [pictures(dtype)], backward)


def batch_norm_add_relu(dtype, backward=False):
    return of_pictures(lambda x, residual: yoke.batch_norm_add_relu(x, residual, training=True), [pictures(dtype), pictures(dtype)], backward)


def max_pool(dtype, backward=False):
    def pool(x):
        with yoke.enable_grad():  # which keeps the places of maxima
            return yoke.max_pool2d(x.requires_grad_(True), 3, 2, 1)
    return of_pictures(pool, [pictures(dtype)], backward)


def embedding(dtype, backward=False):
    tables, index = normal((S.classes, S.width), dtype), drawn(yoke.randint, 0, S.classes, (rows(dtype),))
    if not backward:
        return lambda i: yoke.embedding(index, tables[i % 2])
    with yoke.enable_grad():
        leaves = [table.requires_grad_(True) for table in tables]
        out = [yoke.embedding(index, leaf) for leaf in leaves]
    grad = normal((rows(dtype), S.width), dtype)
    return lambda i: yoke.grad(out[i % 2], leaves[i % 2], grad[i % 2], retain_graph=True)


def conv(dtype, n, into, side, out, window, stride, backward=False):
    """Images lie [N, H, W, C], as results of convolutions do."""
    def images(channels, side):
        return drawn(yoke.randn, (n, side, side, channels)).to(DTYPES[dtype]).permute(0, 3, 1, 2)

    x, w = images(into, side).requires_grad_(backward), drawn(yoke.randn, (out, into, window, window)).to(DTYPES[dtype]).requires_grad_(backward)
    if not backward:
        return lambda _: yoke.conv2d(x, w, None, stride, window // 2)
    with yoke.enable_grad():
        y = yoke.conv2d(x, w, None, stride, window // 2)
    grad = images(out, y.shape[2])
    return lambda _: yoke.grad(y, [x, w], grad, retain_graph=True)


def parameters():
    """Returns S.block bytes of weights in many tensors, with gradients."""
    found = [drawn(yoke.randn, (S.block // 4 // S.tensors,)).requires_grad_(True) for _ in range(S.tensors)]
    for parameter in found:
        parameter.grad = drawn(yoke.randn, parameter.shape)
    return found


def adamw(_):
    optimizer = optim.AdamW(parameters(), lr=1e-3)
    return lambda _: optimizer.step()


def grad_norm(_):
    weights = parameters()
    return lambda _: yoke.clip_grad_norm_(weights, 1e30)  # never reached: nothing is written


def gemm(dtype, size):
    sets = gpu_cases.gemm_sets(S, size, size, size, dtype)
    pairs = [[drawn(yoke.randn, (size, size)).to(DTYPES[dtype]) for _ in range(2)] for _ in range(sets)]
    return lambda i: yoke.matmul(*pairs[i % sets])


def weights(dtype, count, columns, depth):
    """Returns the product that gives a weight's gradient, of the results' gradient [depth, count] and the inputs [depth, columns]."""
    sets = gpu_cases.gemm_sets(S, count, columns, depth, dtype)
    pairs = [[drawn(yoke.randn, (depth, width)).to(DTYPES[dtype]) for width in (count, columns)] for _ in range(sets)]
    return lambda i: yoke.matmul(pairs[i % sets][0].transpose(0, 1), pairs[i % sets][1])


def attention(length, *how):
    width = next((option for option in how if type(option) is int), S.head_width)
    backward, masked = True in how, "masked" in how
    shape = (S.tokens // length, S.heads, length, width)
    mask = drawn(yoke.randn, (length, length)).to(yoke.bfloat16) if masked else None
    options = {"mask": mask, "is_causal": not masked and "plain" not in how, "dropout_p": 0.1 if "dropped" in how else 0.0}
    with yoke.enable_grad():
        q, k, v = (drawn(yoke.randn, shape).to(yoke.bfloat16).requires_grad_(backward) for _ in range(3))
        out = yoke.scaled_dot_product_attention(q, k, v, **options)
    if not backward:
        return lambda _: yoke.scaled_dot_product_attention(q, k, v, **options)
    grad = drawn(yoke.randn, shape).to(yoke.bfloat16)
    return lambda _: yoke.grad(out, [q, k, v], grad, retain_graph=True)


KERNELS = {one.__name__: one for one in (add, gelu, cast, softmax, layer_norm, adamw, cross_entropy, embedding, grad_norm, gemm, weights, conv,
                                         attention, batch_norm, batch_norm_add_relu, max_pool)}
HOW = ("own", "deterministic")  # words of a case that set what engines may do


@functools.lru_cache(1)  # memory holds a single case at a time
def kernel(name, arguments):
    words = [a for a in arguments if a not in HOW]
    return KERNELS[name](*(int(a) if a.isdigit() else a == "backward" or a for a in words))


def measure_kernel(name, arguments, count):
    step.cache_clear()
    replay.cache_clear()
    with yoke.no_grad():
        return timed(kernel(name, tuple(arguments)), count)


def choose_engines(arguments):
    """Sets what engines may do in a case, as its peers are set."""
    yoke.backends.allow_tf32 = "tf32" in arguments
    yoke.backends.cudnn.enabled = "own" not in arguments
    yoke.backends.cudnn.deterministic = "deterministic" in arguments
    if hasattr(yoke, "use_deterministic_algorithms"):
        yoke.use_deterministic_algorithms("deterministic" in arguments)


# ---- steps -----------------------------------------------------------------------------------------------------------


def gpt2_step(amp):
    net = gpt.GPT(S.gpt2.layers, S.gpt2.width, S.gpt2.heads, S.gpt2.context, S.gpt2.vocabulary, tied=True)
    text = drawn(yoke.randint, 0, S.gpt2.vocabulary, (S.gpt2.batch * S.gpt2.context * 4,))
    return gpt.make_step(net, text, 10**6, S.gpt2.batch, amp=amp if amp in gpt.AMP else "off")[0]


def gpt_step(amp):
    net = gpt.GPT(S.gpt.layers, S.gpt.width, S.gpt.heads, S.gpt.context)
    text = drawn(yoke.randint, 0, 256, (S.gpt.batch * S.gpt.context * 16,))
    return gpt.make_step(net, text, 10**6, S.gpt.batch, amp=amp)[0]


class Pictures(resnet.ResNet):
    """Takes pictures [N, 3, side, side]."""

    def __init__(self, size):
        super().__init__(size.depth, size.width, size.side)
        self.conv1 = nn.Conv2d(3, size.width, 7, 2, 3, bias=False)
        self.fc = nn.Linear(self.channels, size.kinds)

    def forward(self, x):
        x = self.maxpool(self.bn1(self.conv1(x)))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(self.avgpool(x).reshape((x.shape[0], -1)))


def resnet_step(amp):
    """A step as users of PyTorch write it: the same pictures again and again, momentum and weight decay, no schedule."""
    size = S.resnet
    net = Pictures(size)
    pictures = drawn(yoke.randn, (size.batch, size.side, size.side, 3)).permute(0, 3, 1, 2)
    labels = drawn(yoke.randint, 0, size.kinds, (size.batch,))
    optimizer = optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4, nesterov=True)

    def once():
        with yoke.autocast(fashion_mnist.AMP[amp], enabled=amp != "off"):
            loss = yoke.cross_entropy(net(pictures), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return once


@functools.lru_cache(2)
def step(net, amp):
    return {"gpt": gpt_step, "gpt2": gpt2_step, "resnet": resnet_step}[net](amp)


@functools.lru_cache(1)
def replay(net, amp):
    eager, graph = step(net, amp), yoke.Graph(device)
    for _ in range(3):  # fills optimizers and caches before the capture
        eager()
    with graph.capture():
        loss = eager()
    return lambda: (graph.replay(), loss)[1]


def mlp(amp, count):
    """Runs the main job's loop as in the example, on random pictures."""
    images = drawn(yoke.randint, 0, 256, (S.pictures, 784)).to(yoke.uint8)
    labels = drawn(yoke.randint, 0, 10, (S.pictures,))
    net = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    steps = min(count, S.pictures // fashion_mnist.BATCH)
    pictures = steps * fashion_mnist.BATCH
    device.synchronize()
    start = time.perf_counter()
    fashion_mnist.train(net, images[:pictures], labels[:pictures], 1, amp)
    return (time.perf_counter() - start) / steps


def activations(net, amp):
    """Returns the peak bytes of a step beside the memory in use between steps."""
    once = step(net, amp)
    once(), once()
    before = yoke.memory_allocated()
    yoke.reset_peak_memory_stats()
    once()
    return float(yoke.max_memory_allocated() - before)


def measure(case, count):
    name, *arguments = case.split()
    choose_engines(arguments)
    if name == "call":
        a, b = yoke.zeros(8), yoke.zeros(8)
        return host_timed(lambda: a + b, count, 256)
    if name == "mlp":
        return mlp(arguments[0], count)
    if name not in ("step", "graph", "replay", "activations"):
        return measure_kernel(name, arguments, count)
    kernel.cache_clear()
    amp = "off" if arguments[1] in ("f32", "tf32") else arguments[1]
    if name == "activations":
        return activations(arguments[0], amp)
    if name == "step":
        once = step(arguments[0], amp)
        return timed(lambda _: once(), count)
    once = replay(arguments[0], amp)
    return timed(lambda _: once(), count) if name == "graph" else host_timed(once, min(count, 8), 4)


def profile(net):
    """Runs a step between the driver's marks for profilers."""
    choose_engines([])
    once, driver = step(net, "bf16"), ctypes.CDLL("libcuda.so.1")
    for _ in range(3):
        once()
    device.synchronize()
    driver.cuProfilerStart()
    once()
    device.synchronize()
    driver.cuProfilerStop()


if "--profile" in sys.argv:
    profile(sys.argv[sys.argv.index("--profile") + 1])
else:
    serve(f"Yoke {yoke.__version__}, Python {sys.version.split()[0]}, {device.name}, cuDNN {yoke.backends.cudnn.version()}", measure)
