"""Convolution and pooling layers against the ops below, with initial values and wrong input."""
import pytest

import yoke
from yoke import nn


def same(got, want):
    assert got.shape == want.shape and (got == want).all().item()


def x_of(*shape):
    return yoke.randn(shape)


def test_layers_are_their_ops():
    x = x_of(2, 4, 7, 6)
    layer = nn.Conv2d(4, 6, (3, 2), 2, (1, 0), (1, 2), 2)
    same(layer(x), yoke.conv2d(x, layer.weight, layer.bias, 2, (1, 0), (1, 2), 2))
    layer = nn.Conv1d(4, 6, 3, 2, 1, bias=False)
    assert layer.bias is None and layer.weight.shape == (6, 4, 3)
    same(layer(x[:, :, 0]), yoke.conv1d(x[:, :, 0], layer.weight, None, 2, 1))
    layer = nn.ConvTranspose2d(4, 6, 3, 2, 1, 1, 2, dilation=2)
    assert layer.weight.shape == (4, 3, 3, 3)
    same(layer(x), yoke.conv_transpose2d(x, layer.weight, layer.bias, 2, 1, 1, 2, 2))
    same(nn.MaxPool2d(3, 2, 1, ceil_mode=True)(x), yoke.max_pool2d(x, 3, 2, 1, 1, True))
    same(nn.AvgPool2d(2)(x), yoke.avg_pool2d(x, 2))
    same(nn.AvgPool2d(3, 1, 1, count_include_pad=False)(x[0]), yoke.avg_pool2d(x[0], 3, 1, 1, False, False))
    same(nn.AdaptiveAvgPool2d((1, 3))(x), yoke.adaptive_avg_pool2d(x, (1, 3)))


@pytest.mark.parametrize("make, shape, fan_in", [(lambda: nn.Conv2d(6, 4, (3, 2), groups=2), (4, 3, 3, 2), 18), (lambda: nn.Conv1d(6, 4, 5), (4, 6, 5), 30),
                                                 (lambda: nn.ConvTranspose2d(6, 4, 3, groups=2), (6, 2, 3, 3), 18)])
def test_initial_values_are_uniform_and_drawn_weight_first(make, shape, fan_in):
    yoke.manual_seed(7)
    layer = make()
    yoke.manual_seed(7)
    for got, drawn in ((layer.weight, yoke.rand(shape)), (layer.bias, yoke.rand((4,)))):
        same(got, drawn * (2 * fan_in**-0.5) - fan_in**-0.5)


@pytest.mark.parametrize("mode", ["zeros", "reflect", "replicate", "circular"])
@pytest.mark.parametrize("kernel, dilation", [(3, 1), (2, 1), ((4, 3), (1, 2))])
def test_same_keeps_sizes_and_pads_what_is_odd_behind(mode, kernel, dilation):
    x = x_of(2, 3, 7, 8)
    layer = nn.Conv2d(3, 5, kernel, padding="same", dilation=dilation, padding_mode=mode)
    spans = [d * (k - 1) for k, d in zip(layer.kernel_size, layer.dilation)]
    ends = [each for span in reversed(spans) for each in (span // 2, span - span // 2)]
    padded = yoke.pad(x, ends, "constant" if mode == "zeros" else mode)
    want = yoke.conv2d(padded, layer.weight, layer.bias, 1, 0, dilation)
    assert layer(x).shape == (2, 5, 7, 8) and ((layer(x) - want).abs().amax() < 1e-5).item()


def test_valid_pads_nothing_and_modes_pad_what_they_are_told():
    x = x_of(1, 2, 6)
    assert nn.Conv1d(2, 3, 3, padding="valid")(x).shape == (1, 3, 4)
    layer = nn.Conv1d(2, 3, 3, padding=2, padding_mode="circular")
    same(layer(x), yoke.conv1d(yoke.pad(x, (2, 2), "circular"), layer.weight, layer.bias))


def test_a_transpose_grows_to_the_size_that_is_asked_for():
    layer, x = nn.ConvTranspose2d(2, 3, 3, 2, 1), x_of(1, 2, 4, 5)
    assert layer(x).shape[2:] == (7, 9)
    for size in ((7, 9), (8, 9), (8, 10)):
        assert layer(x, size).shape[2:] == size
    with pytest.raises(yoke.ValueError, match=r"'output_size' is \(9, 9\); .* \(1, 2, 4, 5\) .* \(7, 9\) and \(8, 10\)"):
        layer(x, 9)


def test_a_network_trains_under_autocast_and_says_what_it_is():
    yoke.manual_seed(1)
    net = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 4, 3, stride=2), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    assert "Conv2d(1, 8, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))" in repr(net) and "MaxPool2d(kernel_size=(2, 2)" in repr(net)
    assert repr(nn.Conv2d(4, 8, 3, dilation=2, groups=2, bias=False, padding_mode="circular")) == \
        "Conv2d(4, 8, kernel_size=(3, 3), stride=(1, 1), dilation=(2, 2), groups=2, padding_mode='circular', bias=False)"
    assert repr(nn.ConvTranspose2d(4, 8, 3, 2, output_padding=(1, 0))) == "ConvTranspose2d(4, 8, kernel_size=(3, 3), stride=(2, 2), output_padding=(1, 0))"
    assert repr(nn.AvgPool2d(2, ceil_mode=True, divisor_override=3)) == "AvgPool2d(kernel_size=(2, 2), stride=(2, 2), padding=(0, 0), ceil_mode=True, divisor_override=3)"
    optimizer, x, losses = yoke.optim.SGD(net.parameters(), lr=0.1), x_of(8, 1, 12, 12), []
    target = yoke.randint(0, 4, (8,))
    for _ in range(30):
        with yoke.autocast(dtype="bfloat16"):
            loss = yoke.cross_entropy(net(x), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] - 0.2
    assert [name for name, _ in net.named_parameters()] == ["0.weight", "0.bias", "1.weight", "1.bias", "4.weight", "4.bias"]


@pytest.mark.parametrize("make, message", [
    (lambda: nn.Conv2d(0, 1, 1), r"Conv2d\(\): argument 'in_channels' is 0"), (lambda: nn.Conv2d(4, 6, 1, groups=4), "'out_channels' is 6 and 'groups' is 4; 'groups' must divide"),
    (lambda: nn.Conv2d(1, 1, (3, 3, 3)), r"Conv2d\(\): argument 'kernel_size' has 3 numbers; give one, or 2"), (lambda: nn.Conv1d(1, 1, (3, 3)), "'kernel_size' has 2 numbers; give one, or 1"),
    (lambda: nn.Conv2d(1, 1, 3, stride=0), "argument 'stride' is 0"), (lambda: nn.Conv2d(1, 1, 3, padding=-1), "argument 'padding' is -1"),
    (lambda: nn.Conv2d(1, 1, 3, padding="SAME"), "argument 'padding' is 'SAME'; it must be a number, a pair, 'same' or 'valid'"),
    (lambda: nn.Conv2d(1, 1, 3, 2, "same"), r"'padding' is 'same' and 'stride' is \(2, 2\); 'stride' must be 1"),
    (lambda: nn.Conv2d(1, 1, 3, padding_mode="mirror"), "argument 'padding_mode' is 'mirror'; it must be one of 'zeros', 'reflect', 'replicate', 'circular'"),
    (lambda: nn.ConvTranspose2d(1, 1, 3, output_padding=-1), r"ConvTranspose2d\(\): argument 'output_padding' is -1"),
    (lambda: nn.MaxPool2d(0), r"MaxPool2d\(\): argument 'kernel_size' is 0"), (lambda: nn.AvgPool2d(2, divisor_override=0), r"AvgPool2d\(\): argument 'divisor_override' is 0"),
    (lambda: nn.AdaptiveAvgPool2d(0), r"AdaptiveAvgPool2d\(\): argument 'output_size' is 0")])
def test_wrong_arguments_are_named(make, message):
    with pytest.raises(yoke.ValueError, match=message):
        make()
