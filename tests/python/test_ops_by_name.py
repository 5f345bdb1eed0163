"""Arguments that scripts give by name alone, because PyTorch has other arguments at these places."""
import pytest

import yoke
from op_table import OPS

# Arguments of PyTorch by place (torch, and torch.nn.functional for layers and losses), in PyTorch's order.
UNARY = ("neg exp log relu tanh abs sqrt rsqrt reciprocal sin cos erf sigmoid silu sign floor ceil round isnan isfinite logical_not nonzero "
         "clone contiguous")
BINARY = "add sub mul div pow maximum minimum eq ne lt le gt ge logical_and logical_or logical_xor matmul outer"
TORCH = {
    **dict.fromkeys(UNARY.split(), "input"), **dict.fromkeys(BINARY.split(), "input other"),
    **dict.fromkeys("sum mean prod amax argmax amin argmin all any logsumexp".split(), "input dim keepdim"),
    **dict.fromkeys("var std".split(), "input dim unbiased keepdim"), **dict.fromkeys("softmax log_softmax".split(), "input dim dtype"),
    **dict.fromkeys("zeros ones empty rand randn".split(), "size"), **dict.fromkeys("zeros_like ones_like empty_like rand_like randn_like".split(), "input"),
    **dict.fromkeys("mse_loss l1_loss".split(), "input target size_average reduce reduction"), **dict.fromkeys("tril triu".split(), "input diagonal"),
    **dict.fromkeys("cat stack".split(), "tensors dim"), **dict.fromkeys("sort argsort".split(), "input dim descending"),
    "softplus": "input beta threshold", "leaky_relu": "input negative_slope inplace", "elu": "input alpha inplace", "gelu": "input",
    "clamp": "input min max", "where": "condition input other", "copy_": "input src non_blocking", "fill_": "input value",
    "masked_fill": "input mask value", "scatter_add": "input dim index src", "norm": "input p dim keepdim out dtype", "cumsum": "input dim",
    "topk": "input k dim largest sorted", "cross_entropy": "input target weight size_average ignore_index reduce reduction label_smoothing",
    "nll_loss": "input target weight size_average ignore_index reduce reduction", "smooth_l1_loss": "input target size_average reduce reduction beta",
    "binary_cross_entropy_with_logits": "input target weight size_average reduce reduction pos_weight",
    "binary_cross_entropy": "input target weight size_average reduce reduction", "kl_div": "input target size_average reduce reduction log_target",
    "layer_norm": "input normalized_shape weight bias eps", "rms_norm": "input normalized_shape weight eps",
    "group_norm": "input num_groups weight bias eps", "batch_norm": "input running_mean running_var weight bias training momentum eps",
    "embedding": "input weight padding_idx max_norm", "einsum": "equation operands", "linear": "input weight bias",
    "scaled_dot_product_attention": "query key value attn_mask dropout_p is_causal scale enable_gqa",
    "scaled_mm": "input other scale_a scale_b bias", "conv1d": "input weight bias stride padding dilation groups",
    "conv2d": "input weight bias stride padding dilation groups",
    "conv_transpose2d": "input weight bias stride padding output_padding groups dilation",
    "max_pool2d": "input kernel_size stride padding dilation ceil_mode return_indices",
    "avg_pool2d": "input kernel_size stride padding ceil_mode count_include_pad divisor_override", "adaptive_avg_pool2d": "input output_size",
    "reshape": "input shape", "view": "input shape", "transpose": "input dim0 dim1", "permute": "input dims", "expand": "input size",
    "squeeze": "input dim", "unsqueeze": "input dim", "index_select": "input dim index", "split": "input split_size dim", "chunk": "input chunks dim",
    "unbind": "input dim", "gather": "input dim index", "masked_select": "input mask", "pad": "input pad mode value", "flip": "input dims",
    "roll": "input shifts dims", "tile": "input dims", "one_hot": "input num_classes", "dropout": "input p training inplace",
    "full": "size fill_value", "arange": "start end step", "linspace": "start end steps", "eye": "n m", "randint": "low high size",
    "randperm": "n", "full_like": "input fill_value", "randint_like": "input low high",
}
# Yoke's own ops, or ops with a meaning of their own: no script expects PyTorch's order.
OWN = {"cast", "slice", "batch_norm_add_relu", "add_layer_norm"}
# Yoke's names for arguments of PyTorch.
WORDS = {"dim": {"axis", "axes"}, "dims": {"axes", "reps"}, "dim0": {"axis0"}, "dim1": {"axis1"}, "input": {"x", "index", "tensors"}, "other": {"y", "x"},
         "size": {"shape"}, "tensors": {"tensors"}, "operands": {"tensors"}, "fill_value": {"value"}, "end": {"stop"}, "attn_mask": {"mask"},
         "pad": {"padding"}, "split_size": {"size"}, "scale_a": {"scale_x"}, "scale_b": {"scale_y"}}


@pytest.mark.parametrize("name", sorted(OPS))
def test_what_may_stand_by_place_stands_in_pytorchs_place(name):
    op = OPS[name]
    if name in OWN:
        return
    torch = TORCH.get(name) or TORCH[name.removesuffix("_")]
    for ours, theirs in zip(op.arg_names[:op.places], torch.split()):
        assert ours == theirs or ours in WORDS.get(theirs, ()) or (theirs == "input" and ours in ("condition", "equation")) \
            or (name == "where" and (ours, theirs) in {("x", "input"), ("y", "other")}), f"{name}: {ours} stands where PyTorch has {theirs}"


X, TARGET = yoke.ones((2, 3)), yoke.zeros((2, 3))
BY_NAME = {"var": (X, 0), "std": (X, 0), "norm": (X, 2.0, 0, False), "cross_entropy": (X, yoke.zeros(2, dtype=yoke.int64)),
           "nll_loss": (X, yoke.zeros(2, dtype=yoke.int64)), "binary_cross_entropy_with_logits": (X, TARGET, None),
           "binary_cross_entropy": (X, TARGET, None), "scaled_mm": (yoke.ones((1, 2)), yoke.ones((2, 1)), yoke.ones(1), yoke.ones(1))}


@pytest.mark.parametrize("name", [name for name, op in OPS.items() if op.places < len(op.arg_names)])
def test_a_place_that_is_pytorchs_for_another_argument_is_refused_with_the_keyword(name):
    op = OPS[name]
    arguments = BY_NAME.get(name, (X, TARGET))
    assert len(arguments) == op.places
    keyword = op.arg_names[op.places]
    said = rf"{name}\(\): argument '{keyword}' must be given by name, because .*, such as {keyword}=\.\.\.: {name}\(.*\*, {keyword}="
    with pytest.raises(yoke.TypeError, match=said):
        op.function(*arguments, None)
    with pytest.raises(yoke.TypeError, match=said):
        getattr(arguments[0], name)(*arguments[1:], False)
    op.function(*arguments)


def test_the_calls_that_meant_something_else_raise():
    for wrong in (lambda: X.var(0, False), lambda: X.std(1, True), lambda: X.var(False), lambda: X.sum(True), lambda: yoke.mse_loss(X, TARGET, "sum"),
                  lambda: yoke.cross_entropy(X, yoke.zeros(2, dtype=yoke.int64), yoke.ones(3))):
        with pytest.raises(yoke.TypeError):
            wrong()
    assert X.var(0, keepdim=True).shape == (1, 3) and yoke.std(X, axis=1, keepdim=True, correction=0).shape == (2, 1)
