"""The layers of yoke.nn against the ops below and against formulas, with state and wrong input."""

import math

import numpy as np
import pytest

import yoke
from yoke import nn


def floats(*shape, seed=0):
    return yoke.tensor(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def close(tensor, expected, tolerance=1e-5):
    np.testing.assert_allclose(tensor.detach().numpy(), expected, rtol=tolerance, atol=tolerance)


def test_norms_normalise_and_then_scale_and_shift():
    x = floats(4, 6, 5)
    values = x.numpy()
    mean, var = values.mean(-1, keepdims=True), values.var(-1, keepdims=True)
    layer = nn.LayerNorm(5)
    layer.load_state_dict({"weight": yoke.full(5, 2.0), "bias": yoke.full(5, 3.0)})
    close(layer(x), (values - mean) / np.sqrt(var + 1e-5) * 2 + 3)
    close(nn.RMSNorm(5, eps=1e-6)(x), values / np.sqrt((values**2).mean(-1, keepdims=True) + 1e-6))
    groups = values.reshape(4, 2, 15)
    want = (groups - groups.mean(-1, keepdims=True)) / np.sqrt(groups.var(-1, keepdims=True) + 1e-5)
    close(nn.GroupNorm(2, 6)(x), want.reshape(4, 6, 5))
    assert nn.LayerNorm((6, 5)).weight.shape == (6, 5) and nn.LayerNorm(5, bias=False).bias is None
    assert list(nn.LayerNorm(5, elementwise_affine=False).parameters()) == []
    assert [n for n, _ in nn.RMSNorm(5).named_parameters()] == ["weight"]


@pytest.mark.parametrize("make, shape", [(nn.BatchNorm1d, (8, 3)), (nn.BatchNorm1d, (8, 3, 2)),
                                         (nn.BatchNorm2d, (4, 3, 2, 5))])
def test_batch_norm_learns_statistics_and_uses_them_later(make, shape):
    layer, x = make(3, momentum=0.25), floats(*shape)
    values, axes = x.numpy(), tuple(i for i in range(len(shape)) if i != 1)
    column = (1, 3) + (1,) * (len(shape) - 2)
    mean, var = values.mean(axes), values.var(axes)
    close(layer(x), (values - mean.reshape(column)) / np.sqrt(var.reshape(column) + 1e-5))
    close(layer.running_mean, 0.25 * mean)
    close(layer.running_var, 0.75 + 0.25 * values.var(axes, ddof=1))
    assert layer.num_batches_tracked.item() == 1
    layer.eval()
    scale = np.sqrt(layer.running_var.numpy() + 1e-5).reshape(column)
    close(layer(x), (values - layer.running_mean.numpy().reshape(column)) / scale)
    assert layer.num_batches_tracked.item() == 1
    assert sorted(layer.state_dict()) == ["bias", "num_batches_tracked", "running_mean", "running_var", "weight"]


@pytest.mark.parametrize("adds", [True, False])
def test_batch_norm_with_relu_is_the_layer_and_what_follows_it(adds):
    plain, fused = nn.BatchNorm2d(3), nn.BatchNorm2d(3, relu=True)
    assert repr(fused) == "BatchNorm2d(3, eps=1e-05, momentum=0.1, relu=True)"
    residual = floats(4, 3, 2, 5, seed=2) if adds else None
    for seed in range(4):
        if seed == 2:
            fused.load_state_dict(plain.state_dict())
            plain.eval(), fused.eval()
        x = floats(4, 3, 2, 5, seed=seed)
        y = plain(x)
        np.testing.assert_array_equal(fused(x, residual).detach().numpy(), (y + residual if adds else y).relu().detach().numpy())
    for name, value in plain.state_dict().items():
        np.testing.assert_array_equal(fused.state_dict()[name].numpy(), value.numpy())


def test_layer_norm_of_a_sum_gives_both():
    layer, x, residual = nn.LayerNorm(5), floats(4, 5), floats(4, 5, seed=3)
    total, y = layer(x, residual)
    np.testing.assert_array_equal(total.detach().numpy(), (x + residual).numpy())
    np.testing.assert_array_equal(y.detach().numpy(), layer(x + residual).detach().numpy())
    with yoke.autocast(yoke.bfloat16):
        total, y = layer(x.to(yoke.bfloat16), residual)
        assert (total.dtype, y.dtype) == (yoke.float32, yoke.bfloat16)
        total, y = layer(x.to(yoke.bfloat16), residual.to(yoke.bfloat16))  # as layer(total) is under autocast
        assert (total.dtype, y.dtype) == (yoke.bfloat16, yoke.float32)


def test_batch_norm_without_momentum_averages_all_batches():
    layer = nn.BatchNorm1d(2, momentum=None)
    batches = [floats(6, 2, seed=i) for i in range(3)]
    for x in batches:
        layer(x)
    close(layer.running_mean, np.mean([x.numpy().mean(0) for x in batches], axis=0))
    bare = nn.BatchNorm1d(2, track_running_stats=False).eval()
    close(bare(batches[0]).mean(axis=0), np.zeros(2), 1e-6)


def test_embedding_gives_rows_and_padding_learns_nothing():
    yoke.manual_seed(5)
    layer = nn.Embedding(6, 3, padding_idx=-1)
    yoke.manual_seed(5)
    want = yoke.randn((6, 3)).numpy().copy()
    want[5] = 0
    np.testing.assert_array_equal(layer.weight.detach().numpy(), want)
    y = layer(yoke.tensor([[1, 5], [1, 2]]))
    assert y.shape == (2, 2, 3)
    y.sum().backward()
    assert layer.weight.grad[:, 0].tolist() == [0, 2, 1, 0, 0, 0]


def test_an_embedding_of_given_rows_is_trained_only_if_asked():
    rows = floats(5, 3)
    layer = nn.Embedding.from_pretrained(rows)
    assert type(layer) is nn.Embedding and (layer.num_embeddings, layer.embedding_dim, layer.padding_idx) == (5, 3, None)
    assert not layer.weight.requires_grad and yoke.shares_memory(layer.weight, rows) and repr(layer) == "Embedding(5, 3)"
    assert layer(yoke.tensor([4, 0])).tolist() == [rows[4].tolist(), rows[0].tolist()]
    trained = nn.Embedding.from_pretrained(rows, freeze=False, padding_idx=-1)
    trained(yoke.tensor([4, 1])).sum().backward()
    assert trained.padding_idx == 4 and trained.weight.grad[:, 0].tolist() == [0, 1, 0, 0, 0]
    for wrong, kind, told in ((yoke.ones(3), yoke.ValueError, r"'embeddings' has shape \(3,\); it must be \[num_embeddings, embedding_dim\]"), ([[1.0]], yoke.TypeError, "a tensor is needed")):
        with pytest.raises(kind, match=rf"from_pretrained\(\): argument .*{told}"):
            nn.Embedding.from_pretrained(wrong)
    with pytest.raises(yoke.IndexError, match=r"from_pretrained\(\): argument 'padding_idx' is 9; for 5 rows it must be -5 to 4"):
        nn.Embedding.from_pretrained(rows, padding_idx=9)
    with pytest.raises(yoke.TypeError, match="there is no argument 'freez'"):
        nn.Embedding.from_pretrained(rows, freez=True)


def test_activations_are_the_ops():
    x = floats(3, 4)
    assert nn.Sigmoid()(x).tolist() == yoke.sigmoid(x).tolist()
    close(nn.SiLU()(x), x.numpy() / (1 + np.exp(-x.numpy())))


def attention(q, k, v, causal):
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


@pytest.mark.parametrize("kv_heads", [4, 2, 1])
@pytest.mark.parametrize("causal", [False, True])
def test_multihead_attention_is_attention_of_each_head(kv_heads, causal):
    layer, x = nn.MultiheadAttention(32, 4, num_kv_heads=kv_heads, causal=causal), floats(2, 5, 32)
    values = x.numpy()
    w, b = layer.qkv.weight.detach().numpy(), layer.qkv.bias.detach().numpy()
    heads = (values @ w.T + b).reshape(2, 5, 4 + 2 * kv_heads, 8).swapaxes(1, 2)
    k, v = (np.repeat(heads[:, i:i + kv_heads], 4 // kv_heads, axis=1) for i in (4, 4 + kv_heads))
    y = attention(heads[:, :4], k, v, causal).swapaxes(1, 2).reshape(2, 5, 32)
    close(layer(x), y @ layer.out.weight.detach().numpy().T + layer.out.bias.detach().numpy(), 1e-4)


def test_a_transformer_block_is_its_formula_and_learns():
    block, x = nn.TransformerBlock(16, 2, causal=True), floats(2, 3, 16)
    middle = x + block.attention(block.norm1(x))
    want = middle + block.down(yoke.gelu(block.up(block.norm2(middle))))
    close(block(x), want.detach().numpy(), 1e-5)
    block(x).sum().backward()
    assert all(p.grad is not None for p in block.parameters()) and block.up.weight.shape == (64, 16)
    later = yoke.cat([x[:, :2], x[:, 2:] * 2], 1)
    close(block(later)[:, :2], block(x)[:, :2].detach().numpy(), 1e-6)


@pytest.mark.parametrize("policy", [False, "full", "matmul"])
@pytest.mark.parametrize("amp", [False, True])
def test_blocks_that_hand_their_last_addition_on_give_the_same(amp, policy):
    blocks = nn.ModuleList(nn.TransformerBlock(16, 2, causal=True) for _ in range(3))
    norm = nn.LayerNorm(16)

    def run(hand_on):
        x = floats(2, 3, 16).requires_grad_()
        for p in [*blocks.parameters(), *norm.parameters()]:
            p.grad = None
        for block in blocks:
            block.checkpoint_(policy if hand_on else False)
        with yoke.autocast(yoke.bfloat16, enabled=amp):
            y = x
            for block in blocks:
                y = block(y, hand_on=hand_on)
            y = norm(*y)[1] if hand_on else norm(y)
        (y.to(yoke.float32) * floats(2, 3, 16, seed=9)).sum().backward()
        return [x.grad, *(p.grad for p in [*blocks.parameters(), *norm.parameters()])]
    for a, b in zip(run(True), run(False), strict=True):
        close(a, b.numpy(), 6e-2 if amp else 1e-6)


def test_dropout_in_a_block_works_while_training_alone():
    block, x = nn.TransformerBlock(16, 2, dropout=0.5), floats(2, 3, 16)
    assert block(x).tolist() != block(x).tolist()
    block.eval()
    assert block(x).tolist() == block(x).tolist()


LOSSES = [
    (nn.MSELoss, yoke.mse_loss, {}), (nn.L1Loss, yoke.l1_loss, {"reduction": "sum"}),
    (nn.SmoothL1Loss, yoke.smooth_l1_loss, {"beta": 0.5}), (nn.KLDivLoss, yoke.kl_div, {"reduction": "batchmean"}),
    (nn.BCEWithLogitsLoss, yoke.binary_cross_entropy_with_logits, {"pos_weight": yoke.tensor([1.0, 2, 3])}),
]


@pytest.mark.parametrize("make, op, options", LOSSES, ids=lambda v: getattr(v, "__name__", ""))
def test_losses_are_the_ops(make, op, options):
    x, target = floats(4, 3), yoke.sigmoid(floats(4, 3, seed=1))
    assert make(**options)(x, target).tolist() == op(x, target, **options).tolist()


@pytest.mark.parametrize("make, op", [(nn.CrossEntropyLoss, yoke.cross_entropy), (nn.NLLLoss, yoke.nll_loss)])
def test_weights_of_classes_are_buffers(make, op):
    x, target, weight = floats(4, 3), yoke.tensor([0, 2, 1, 0]), yoke.tensor([1.0, 2.0, 0.5])
    loss = make(weight, reduction="sum")
    assert loss(x, target).item() == op(x, target, weight, reduction="sum").item() != op(x, target, reduction="sum").item()
    assert list(loss.state_dict()) == ["weight"] and loss.double().weight.dtype is yoke.float64
    assert list(make().state_dict()) == [] and make(weight=weight).weight is weight


def test_nll_loss_of_log_softmax_is_cross_entropy():
    x, target = floats(4, 3), yoke.tensor([0, 2, 1, -100])
    close(nn.NLLLoss()(nn.LogSoftmax()(x), target), nn.CrossEntropyLoss()(x, target).item())


def test_module_lists_hold_modules_in_order():
    blocks = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)])
    blocks.append(nn.ReLU()).extend([nn.Tanh()])
    assert len(blocks) == 5 and isinstance(blocks[-1], nn.Tanh) and [*blocks][3] is blocks[3]
    assert "2.weight" in blocks.state_dict()
    with pytest.raises(yoke.TypeError, match="ModuleList.*int"):
        nn.ModuleList([1])


class Buffers(nn.Module):
    def __init__(self):
        self.register_buffer("steps", yoke.zeros((), dtype=yoke.int64))
        self.register_buffer("table", yoke.ones(2), persistent=False)
        self.weight = nn.Parameter(yoke.ones(3))


def test_buffers_move_and_are_saved_but_not_trained():
    module = Buffers()
    assert [n for n, _ in module.named_buffers()] == ["steps", "table"] and len(list(module.buffers())) == 2
    assert [n for n, _ in module.named_parameters()] == ["weight"]
    assert sorted(module.state_dict()) == ["steps", "weight"]
    module.steps += 1
    module.table = yoke.zeros(2)
    assert module.steps.item() == 1 and len(list(module.buffers())) == 2
    module.to(dtype=yoke.float64)
    assert (module.weight.dtype, module.table.dtype, module.steps.dtype) == (yoke.float64, yoke.float64, yoke.int64)
    with pytest.raises(yoke.TypeError, match="cannot assign 3 as buffer 'table'"):
        module.table = 3
    with pytest.raises(yoke.TypeError, match="'tensor' must be a tensor or None, not list"):
        module.register_buffer("bad", [1])
    del module.table
    assert not hasattr(module, "table") and len(list(module.buffers())) == 1


def test_state_dict_lists_shared_tensors_under_every_name():
    net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    net[1].weight = net[0].weight
    state = net.state_dict()
    assert sorted(state) == ["0.bias", "0.weight", "1.bias", "1.weight"] and len(list(net.parameters())) == 3
    net.load_state_dict(state)


def test_loading_says_all_that_is_wrong_and_returns_what_was_passed_over():
    net = nn.Linear(2, 3)
    with pytest.raises(yoke.ValueError) as caught:
        net.load_state_dict({"weight": yoke.zeros((2, 2)), "extra": yoke.zeros(1)})
    for part in ("missing ['bias']", "unexpected ['extra']", "'weight' in the state has shape (2, 2); it must be (3, 2)"):
        assert part in str(caught.value)
    with pytest.raises(yoke.TypeError, match="'bias' must be a tensor, not list"):
        net.load_state_dict({"weight": net.weight, "bias": [0, 0, 0]})
    result = net.load_state_dict({"bias": yoke.ones(3), "extra": yoke.zeros(1)}, strict=False)
    assert (result.missing, result.unexpected) == (["weight"], ["extra"]) and net.bias.tolist() == [1, 1, 1]
    net.load_state_dict({"weight": yoke.zeros((3, 2), dtype=yoke.float64), "bias": yoke.zeros(3)})
    assert net.weight.dtype is yoke.float32


def test_apply_reaches_children_before_their_parent():
    names = []
    net = nn.Sequential(nn.Sequential(nn.ReLU()), nn.Tanh())
    assert net.apply(lambda m: names.append(type(m).__name__)) is net
    assert names == ["ReLU", "Sequential", "Tanh", "Sequential"]


@pytest.mark.parametrize("make, error, said", [
    (lambda: nn.GroupNorm(4, 6), yoke.ValueError, "'num_channels' is 6 and 'num_groups' is 4"),
    (lambda: nn.BatchNorm1d(0), yoke.ValueError, "'num_features' is 0"),
    (lambda: nn.BatchNorm2d(3)(yoke.ones((2, 3))), yoke.ValueError, r"BatchNorm2d: argument 'x' has shape \(2, 3\); it must be \[N, C, H, W\]"),
    (lambda: nn.BatchNorm2d(3)(yoke.ones((2, 3, 4, 4)), yoke.ones((2, 3, 4, 4))), yoke.ValueError, "'residual' is given, but the layer has relu=False"),
    (lambda: nn.TransformerBlock(8, 2)((yoke.ones((1, 2, 8)), yoke.ones((2, 8)))), yoke.ValueError, r"\[2, 8\]"),
    (lambda: nn.Embedding(0, 3), yoke.ValueError, "'num_embeddings' is 0"),
    (lambda: nn.Embedding(4, 3, padding_idx=4), yoke.IndexError, "'padding_idx' is 4; for 4 rows it must be -4 to 3"),
    (lambda: nn.Embedding(4, 3)(yoke.tensor([4])), yoke.IndexError, "4"),
    (lambda: nn.MultiheadAttention(10, 3), yoke.ValueError, "'embed_dim' is 10 and 'num_heads' is 3"),
    (lambda: nn.MultiheadAttention(12, 6, num_kv_heads=4), yoke.ValueError, "'num_kv_heads' is 4 and 'num_heads' is 6"),
    (lambda: nn.TransformerBlock(8, 2, activation="swoosh")(yoke.ones((1, 2, 8))), yoke.ValueError, "swoosh"),
    (lambda: nn.MSELoss(reduction="median")(yoke.ones(2), yoke.ones(2)), yoke.ValueError, "median"),
])
def test_wrong_input_is_named(make, error, said):
    with pytest.raises(error, match=said):
        make()
