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
    "mm": "input mat2", "bmm": "input mat2", "mv": "input vec", "dot": "input tensor", "addmm": "input mat1 mat2",
    "baddbmm": "input batch1 batch2", "trace": "input", "cdist": "x1 x2 p compute_mode", "normalize": "input p dim eps",
    "cosine_similarity": "x1 x2 dim eps", "interpolate": "input size scale_factor mode align_corners recompute_scale_factor",
    "pixel_shuffle": "input upscale_factor", "pixel_unshuffle": "input downscale_factor", "bernoulli": "input p",
    "multinomial": "input num_samples replacement", "normal": "mean std size", "normal_": "input mean std", "uniform_": "input from to",
    "bernoulli_": "input p", "random_": "input from to", "exponential_": "input lambd", "tril_indices": "row col offset",
    "triu_indices": "row col offset",
    "randperm": "n", "full_like": "input fill_value", "randint_like": "input low high",
    "flatten": "input start_dim end_dim", "unflatten": "input dim sizes", "ravel": "input", "movedim": "input source destination",
    "swapaxes": "input axis0 axis1", "narrow": "input dim start length", "diagonal": "input offset dim1 dim2", "diag": "input diagonal",
    "unfold": "input dimension size step", "repeat_interleave": "input repeats dim", "meshgrid": "tensors indexing", "nonzero_tuple": "input",
    "tensor_split": "input indices_or_sections dim", "scatter": "input dim index src", "take_along_dim": "input indices dim",
    "index_put": "input indices values accumulate", "index_add": "input dim index source", "index_copy": "input dim index source",
    "index_fill": "input dim index value", "masked_scatter": "input mask source", "searchsorted": "sorted_sequence input",
    "bucketize": "input boundaries", "unique": "input sorted return_inverse return_counts dim", "bincount": "input weights minlength",
    "histc": "input bins min max",
    **dict.fromkeys("log1p expm1 log2 log10 exp2 square tan atan asin acos sinh cosh trunc frac erfinv isinf bitwise_not aminmax".split(), "input"),
    **dict.fromkeys("atan2 fmod remainder floor_divide logaddexp equal bitwise_and bitwise_or bitwise_xor bitwise_left_shift "
                    "bitwise_right_shift".split(), "input other"),
    **dict.fromkeys("isclose allclose".split(), "input other rtol atol equal_nan"),
    **dict.fromkeys("addcmul addcdiv".split(), "input tensor1 tensor2"), **dict.fromkeys("max min median mode".split(), "input dim keepdim"),
    **dict.fromkeys("var_mean std_mean".split(), "input dim unbiased keepdim"), "nan_to_num": "input nan posinf neginf",
    "lerp": "input end weight", "cumprod": "input dim", "count_nonzero": "input dim", "quantile": "input q dim keepdim",
    "kthvalue": "input k dim keepdim",
}
# Yoke's own ops, or ops with a meaning of their own: no script expects PyTorch's order.
OWN = {"cast", "slice", "batch_norm_add_relu", "add_layer_norm"}
# Yoke's names for arguments of PyTorch.
WORDS = {"dim": {"axis", "axes"}, "dims": {"axes", "reps"}, "dim0": {"axis0"}, "dim1": {"axis1"}, "input": {"x", "index", "tensors"}, "other": {"y", "x"},
         "size": {"shape", "size"}, "tensors": {"tensors"}, "operands": {"tensors"}, "fill_value": {"value"}, "end": {"stop", "y"}, "attn_mask": {"mask"},
         "pad": {"padding"}, "mat2": {"y"}, "vec": {"y"}, "tensor": {"y"}, "x1": {"x"}, "x2": {"y"}, "from": {"low"}, "to": {"high"}, "start_dim": {"start_axis"}, "end_dim": {"end_axis"}, "dim2": {"axis2"}, "dimension": {"axis"},
         "indices_or_sections": {"sections"}, "split_size": {"size"}, "scale_a": {"scale_x"}, "scale_b": {"scale_y"}}


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
CLASSES, CUBE, DRAWN = yoke.zeros(2, dtype=yoke.int64), yoke.ones((2, 2, 2)), yoke.ones((2, 3))
BY_NAME = {"var_mean": (X, 0), "std_mean": (X, 0), "addcmul": (X, X, X), "addcdiv": (X, X, X), "addcmul_": (X, X, X), "addcdiv_": (X, X, X),
           "aminmax": (X,),
           "quantile": (X, 0.5, 0, False), "var": (X, 0), "std": (X, 0), "norm": (X, 2.0, 0, False), "cross_entropy": (X, CLASSES, None), "nll_loss": (X, CLASSES, None),
           "addmm": (yoke.ones(2), CUBE[0], CUBE[1]), "baddbmm": (CUBE, CUBE, CUBE), "bernoulli": (X, 0.5), "multinomial": (X, 2, False),
           "normal": (X, X, None), "normal_": (DRAWN, 0, 1), "uniform_": (DRAWN, 0, 1), "bernoulli_": (DRAWN, 0.5), "random_": (DRAWN, 0, 5),
           "exponential_": (DRAWN, 1),
           "tril_indices": (2, 3, 0), "triu_indices": (2, 3, 0), "rand": ((2,), None, None), "randn": ((2,), None, None),
           "randint": (0, 5, (2,), None, None), "randperm": (3, None, None), "rand_like": (X, None, None), "randn_like": (X, None, None),
           "randint_like": (X, 0, 5, None, None), "binary_cross_entropy_with_logits": (X, TARGET, None),
           "repeat_interleave": (X, 2, 0), "tensor_split": (X, 2, 0), "scatter": (X, 0, CLASSES[:, None], X), "scatter_": (X, 0, CLASSES[:, None], X),
           "index_add": (X, 0, CLASSES, X), "index_add_": (X, 0, CLASSES, X), "index_put": (X, [CLASSES], X, False),
           "index_put_": (X, [CLASSES], X, False), "bucketize": (X, yoke.ones(3)),
           "binary_cross_entropy": (X, TARGET, None), "scaled_mm": (yoke.ones((1, 2)), yoke.ones((2, 1)), yoke.ones(1), yoke.ones(1))}


@pytest.mark.parametrize("name", [name for name, op in OPS.items() if op.places < len(op.arg_names)])
def test_a_place_that_is_pytorchs_for_another_argument_is_refused_with_the_keyword(name):
    op = OPS[name]
    arguments = [x.clone() if isinstance(x, yoke.Tensor) else x for x in BY_NAME.get(name, (X, TARGET))]  # an op in place may change them
    assert len(arguments) == op.places
    keyword = op.arg_names[op.places]
    said = rf"{name}\(\): argument '{keyword}' must be given by name, because .*, such as {keyword}=\.\.\.: {name}\(.*\*, {keyword}="
    with pytest.raises(yoke.TypeError, match=said):
        op.function(*arguments, None)
    if isinstance(arguments[0], yoke.Tensor):
        with pytest.raises(yoke.TypeError, match=said):
            getattr(arguments[0], name)(*arguments[1:], False)
    op.function(*arguments)


def test_the_calls_that_meant_something_else_raise():
    for wrong in (lambda: X.var(0, False), lambda: X.std(1, True), lambda: X.var(False), lambda: X.sum(True), lambda: yoke.mse_loss(X, TARGET, "sum"),
                  lambda: yoke.cross_entropy(X, yoke.zeros(2, dtype=yoke.int64), None, False)):
        with pytest.raises(yoke.TypeError):
            wrong()
    assert X.var(0, keepdim=True).shape == (1, 3) and yoke.std(X, axis=1, keepdim=True, correction=0).shape == (2, 1)
