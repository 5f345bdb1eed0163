#pragma GCC diagnostic ignored "-Wunused-parameter"
#include "core/ops/family.h"
namespace yoke {
__attribute__((weak)) void infer_add(AddArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "add: pending"); }
__attribute__((weak)) void vjp_add(AddArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "add: pending"); }
__attribute__((weak)) void infer_sub(SubArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "sub: pending"); }
__attribute__((weak)) void vjp_sub(SubArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "sub: pending"); }
__attribute__((weak)) void infer_mul(MulArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "mul: pending"); }
__attribute__((weak)) void vjp_mul(MulArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "mul: pending"); }
__attribute__((weak)) void infer_div(DivArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "div: pending"); }
__attribute__((weak)) void vjp_div(DivArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "div: pending"); }
__attribute__((weak)) void infer_neg(NegArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "neg: pending"); }
__attribute__((weak)) void vjp_neg(NegArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "neg: pending"); }
__attribute__((weak)) void infer_exp(ExpArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "exp: pending"); }
__attribute__((weak)) void vjp_exp(ExpArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "exp: pending"); }
__attribute__((weak)) void infer_log(LogArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "log: pending"); }
__attribute__((weak)) void vjp_log(LogArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "log: pending"); }
__attribute__((weak)) void infer_relu(ReluArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "relu: pending"); }
__attribute__((weak)) void vjp_relu(ReluArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "relu: pending"); }
__attribute__((weak)) void infer_tanh(TanhArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "tanh: pending"); }
__attribute__((weak)) void vjp_tanh(TanhArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "tanh: pending"); }
__attribute__((weak)) void infer_gelu(GeluArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "gelu: pending"); }
__attribute__((weak)) void vjp_gelu(GeluArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "gelu: pending"); }
__attribute__((weak)) void infer_cast(CastArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "cast: pending"); }
__attribute__((weak)) void vjp_cast(CastArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "cast: pending"); }
__attribute__((weak)) void infer_clone(CloneArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "clone: pending"); }
__attribute__((weak)) void vjp_clone(CloneArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "clone: pending"); }
__attribute__((weak)) void infer_abs(AbsArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "abs: pending"); }
__attribute__((weak)) void vjp_abs(AbsArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "abs: pending"); }
__attribute__((weak)) void infer_sqrt(SqrtArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "sqrt: pending"); }
__attribute__((weak)) void vjp_sqrt(SqrtArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "sqrt: pending"); }
__attribute__((weak)) void infer_rsqrt(RsqrtArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "rsqrt: pending"); }
__attribute__((weak)) void vjp_rsqrt(RsqrtArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "rsqrt: pending"); }
__attribute__((weak)) void infer_reciprocal(ReciprocalArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "reciprocal: pending"); }
__attribute__((weak)) void vjp_reciprocal(ReciprocalArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "reciprocal: pending"); }
__attribute__((weak)) void infer_sin(SinArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "sin: pending"); }
__attribute__((weak)) void vjp_sin(SinArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "sin: pending"); }
__attribute__((weak)) void infer_cos(CosArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "cos: pending"); }
__attribute__((weak)) void vjp_cos(CosArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "cos: pending"); }
__attribute__((weak)) void infer_erf(ErfArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "erf: pending"); }
__attribute__((weak)) void vjp_erf(ErfArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "erf: pending"); }
__attribute__((weak)) void infer_sigmoid(SigmoidArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "sigmoid: pending"); }
__attribute__((weak)) void vjp_sigmoid(SigmoidArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "sigmoid: pending"); }
__attribute__((weak)) void infer_silu(SiluArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "silu: pending"); }
__attribute__((weak)) void vjp_silu(SiluArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "silu: pending"); }
__attribute__((weak)) void infer_softplus(SoftplusArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "softplus: pending"); }
__attribute__((weak)) void vjp_softplus(SoftplusArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "softplus: pending"); }
__attribute__((weak)) void infer_leaky_relu(LeakyReluArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "leaky_relu: pending"); }
__attribute__((weak)) void vjp_leaky_relu(LeakyReluArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "leaky_relu: pending"); }
__attribute__((weak)) void infer_elu(EluArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "elu: pending"); }
__attribute__((weak)) void vjp_elu(EluArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "elu: pending"); }
__attribute__((weak)) void infer_sign(SignArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "sign: pending"); }
__attribute__((weak)) void vjp_sign(SignArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "sign: pending"); }
__attribute__((weak)) void infer_floor(FloorArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "floor: pending"); }
__attribute__((weak)) void vjp_floor(FloorArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "floor: pending"); }
__attribute__((weak)) void infer_ceil(CeilArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "ceil: pending"); }
__attribute__((weak)) void vjp_ceil(CeilArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "ceil: pending"); }
__attribute__((weak)) void infer_round(RoundArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "round: pending"); }
__attribute__((weak)) void vjp_round(RoundArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "round: pending"); }
__attribute__((weak)) void infer_clamp(ClampArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "clamp: pending"); }
__attribute__((weak)) void vjp_clamp(ClampArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "clamp: pending"); }
__attribute__((weak)) void infer_isnan(IsnanArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "isnan: pending"); }
__attribute__((weak)) void infer_isfinite(IsfiniteArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "isfinite: pending"); }
__attribute__((weak)) void infer_pow(PowArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "pow: pending"); }
__attribute__((weak)) void vjp_pow(PowArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "pow: pending"); }
__attribute__((weak)) void infer_maximum(MaximumArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "maximum: pending"); }
__attribute__((weak)) void vjp_maximum(MaximumArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "maximum: pending"); }
__attribute__((weak)) void infer_minimum(MinimumArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "minimum: pending"); }
__attribute__((weak)) void vjp_minimum(MinimumArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "minimum: pending"); }
__attribute__((weak)) void infer_eq(EqArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "eq: pending"); }
__attribute__((weak)) void infer_ne(NeArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "ne: pending"); }
__attribute__((weak)) void infer_lt(LtArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "lt: pending"); }
__attribute__((weak)) void infer_le(LeArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "le: pending"); }
__attribute__((weak)) void infer_gt(GtArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "gt: pending"); }
__attribute__((weak)) void infer_ge(GeArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "ge: pending"); }
__attribute__((weak)) void infer_logical_and(LogicalAndArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "logical_and: pending"); }
__attribute__((weak)) void infer_logical_or(LogicalOrArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "logical_or: pending"); }
__attribute__((weak)) void infer_logical_xor(LogicalXorArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "logical_xor: pending"); }
__attribute__((weak)) void infer_logical_not(LogicalNotArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "logical_not: pending"); }
__attribute__((weak)) void infer_where(WhereArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "where: pending"); }
__attribute__((weak)) void vjp_where(WhereArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "where: pending"); }
__attribute__((weak)) void infer_copy_(CopyInplaceArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "copy_: pending"); }
__attribute__((weak)) void vjp_copy_(CopyInplaceArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "copy_: pending"); }
__attribute__((weak)) void infer_fill_(FillInplaceArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "fill_: pending"); }
__attribute__((weak)) void vjp_fill_(FillInplaceArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "fill_: pending"); }
__attribute__((weak)) void infer_sum(SumArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "sum: pending"); }
__attribute__((weak)) void vjp_sum(SumArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "sum: pending"); }
__attribute__((weak)) void infer_mean(MeanArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "mean: pending"); }
__attribute__((weak)) void vjp_mean(MeanArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "mean: pending"); }
__attribute__((weak)) void infer_amax(AmaxArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "amax: pending"); }
__attribute__((weak)) void vjp_amax(AmaxArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "amax: pending"); }
__attribute__((weak)) void infer_argmax(ArgmaxArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "argmax: pending"); }
__attribute__((weak)) void infer_amin(AminArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "amin: pending"); }
__attribute__((weak)) void vjp_amin(AminArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "amin: pending"); }
__attribute__((weak)) void infer_argmin(ArgminArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "argmin: pending"); }
__attribute__((weak)) void infer_all(AllArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "all: pending"); }
__attribute__((weak)) void infer_any(AnyArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "any: pending"); }
__attribute__((weak)) void infer_prod(ProdArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "prod: pending"); }
__attribute__((weak)) void vjp_prod(ProdArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "prod: pending"); }
__attribute__((weak)) void infer_var(VarArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "var: pending"); }
__attribute__((weak)) void vjp_var(VarArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "var: pending"); }
__attribute__((weak)) void infer_std(StdArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "std: pending"); }
__attribute__((weak)) void vjp_std(StdArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "std: pending"); }
__attribute__((weak)) void infer_norm(NormArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "norm: pending"); }
__attribute__((weak)) void vjp_norm(NormArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "norm: pending"); }
__attribute__((weak)) void infer_logsumexp(LogsumexpArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "logsumexp: pending"); }
__attribute__((weak)) void vjp_logsumexp(LogsumexpArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "logsumexp: pending"); }
__attribute__((weak)) void infer_cumsum(CumsumArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "cumsum: pending"); }
__attribute__((weak)) void vjp_cumsum(CumsumArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "cumsum: pending"); }
__attribute__((weak)) void infer_sort(SortArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "sort: pending"); }
__attribute__((weak)) void vjp_sort(SortArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "sort: pending"); }
__attribute__((weak)) void infer_argsort(ArgsortArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "argsort: pending"); }
__attribute__((weak)) void infer_topk(TopkArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "topk: pending"); }
__attribute__((weak)) void vjp_topk(TopkArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "topk: pending"); }
__attribute__((weak)) void infer_softmax(SoftmaxArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "softmax: pending"); }
__attribute__((weak)) void vjp_softmax(SoftmaxArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "softmax: pending"); }
__attribute__((weak)) void infer_log_softmax(LogSoftmaxArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "log_softmax: pending"); }
__attribute__((weak)) void vjp_log_softmax(LogSoftmaxArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "log_softmax: pending"); }
__attribute__((weak)) void infer_cross_entropy(CrossEntropyArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "cross_entropy: pending"); }
__attribute__((weak)) void vjp_cross_entropy(CrossEntropyArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "cross_entropy: pending"); }
__attribute__((weak)) void infer_nll_loss(NllLossArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "nll_loss: pending"); }
__attribute__((weak)) void vjp_nll_loss(NllLossArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "nll_loss: pending"); }
__attribute__((weak)) Tensor compose_mse_loss(MseLossArgs a){ fail(YOKE_E_UNSUPPORTED, "mse_loss: pending"); }
__attribute__((weak)) Tensor compose_l1_loss(L1LossArgs a){ fail(YOKE_E_UNSUPPORTED, "l1_loss: pending"); }
__attribute__((weak)) Tensor compose_smooth_l1_loss(SmoothL1LossArgs a){ fail(YOKE_E_UNSUPPORTED, "smooth_l1_loss: pending"); }
__attribute__((weak)) Tensor compose_binary_cross_entropy_with_logits(BinaryCrossEntropyWithLogitsArgs a){ fail(YOKE_E_UNSUPPORTED, "binary_cross_entropy_with_logits: pending"); }
__attribute__((weak)) Tensor compose_binary_cross_entropy(BinaryCrossEntropyArgs a){ fail(YOKE_E_UNSUPPORTED, "binary_cross_entropy: pending"); }
__attribute__((weak)) Tensor compose_kl_div(KlDivArgs a){ fail(YOKE_E_UNSUPPORTED, "kl_div: pending"); }
__attribute__((weak)) void infer_layer_norm(LayerNormArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "layer_norm: pending"); }
__attribute__((weak)) void vjp_layer_norm(LayerNormArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "layer_norm: pending"); }
__attribute__((weak)) void infer_rms_norm(RmsNormArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "rms_norm: pending"); }
__attribute__((weak)) void vjp_rms_norm(RmsNormArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "rms_norm: pending"); }
__attribute__((weak)) void infer_group_norm(GroupNormArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "group_norm: pending"); }
__attribute__((weak)) void vjp_group_norm(GroupNormArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "group_norm: pending"); }
__attribute__((weak)) Tensor compose_batch_norm(BatchNormArgs a){ fail(YOKE_E_UNSUPPORTED, "batch_norm: pending"); }
__attribute__((weak)) void infer_embedding(EmbeddingArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "embedding: pending"); }
__attribute__((weak)) void vjp_embedding(EmbeddingArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "embedding: pending"); }
__attribute__((weak)) void infer_matmul(MatmulArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "matmul: pending"); }
__attribute__((weak)) void vjp_matmul(MatmulArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "matmul: pending"); }
__attribute__((weak)) Tensor compose_outer(OuterArgs a){ fail(YOKE_E_UNSUPPORTED, "outer: pending"); }
__attribute__((weak)) Tensor compose_einsum(EinsumArgs a){ fail(YOKE_E_UNSUPPORTED, "einsum: pending"); }
__attribute__((weak)) Tensor compose_linear(LinearArgs a){ fail(YOKE_E_UNSUPPORTED, "linear: pending"); }
__attribute__((weak)) Tensor compose_scaled_dot_product_attention(ScaledDotProductAttentionArgs a){ fail(YOKE_E_UNSUPPORTED, "scaled_dot_product_attention: pending"); }
__attribute__((weak)) Tensor compose_reshape(ReshapeArgs a){ fail(YOKE_E_UNSUPPORTED, "reshape: pending"); }
__attribute__((weak)) void infer_view(ViewArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "view: pending"); }
__attribute__((weak)) void vjp_view(ViewArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "view: pending"); }
__attribute__((weak)) void infer_transpose(TransposeArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "transpose: pending"); }
__attribute__((weak)) void vjp_transpose(TransposeArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "transpose: pending"); }
__attribute__((weak)) void infer_permute(PermuteArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "permute: pending"); }
__attribute__((weak)) void vjp_permute(PermuteArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "permute: pending"); }
__attribute__((weak)) void infer_expand(ExpandArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "expand: pending"); }
__attribute__((weak)) void vjp_expand(ExpandArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "expand: pending"); }
__attribute__((weak)) Tensor compose_squeeze(SqueezeArgs a){ fail(YOKE_E_UNSUPPORTED, "squeeze: pending"); }
__attribute__((weak)) Tensor compose_unsqueeze(UnsqueezeArgs a){ fail(YOKE_E_UNSUPPORTED, "unsqueeze: pending"); }
__attribute__((weak)) void infer_slice(SliceArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "slice: pending"); }
__attribute__((weak)) void vjp_slice(SliceArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "slice: pending"); }
__attribute__((weak)) Tensor compose_contiguous(ContiguousArgs a){ fail(YOKE_E_UNSUPPORTED, "contiguous: pending"); }
__attribute__((weak)) void infer_index_select(IndexSelectArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "index_select: pending"); }
__attribute__((weak)) void vjp_index_select(IndexSelectArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "index_select: pending"); }
__attribute__((weak)) void infer_cat(CatArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "cat: pending"); }
__attribute__((weak)) void vjp_cat(CatArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "cat: pending"); }
__attribute__((weak)) Tensor compose_stack(StackArgs a){ fail(YOKE_E_UNSUPPORTED, "stack: pending"); }
__attribute__((weak)) std::vector<Tensor> compose_split(SplitArgs a){ fail(YOKE_E_UNSUPPORTED, "split: pending"); }
__attribute__((weak)) std::vector<Tensor> compose_chunk(ChunkArgs a){ fail(YOKE_E_UNSUPPORTED, "chunk: pending"); }
__attribute__((weak)) std::vector<Tensor> compose_unbind(UnbindArgs a){ fail(YOKE_E_UNSUPPORTED, "unbind: pending"); }
__attribute__((weak)) void infer_gather(GatherArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "gather: pending"); }
__attribute__((weak)) void vjp_gather(GatherArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "gather: pending"); }
__attribute__((weak)) void infer_scatter_add(ScatterAddArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "scatter_add: pending"); }
__attribute__((weak)) void vjp_scatter_add(ScatterAddArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "scatter_add: pending"); }
__attribute__((weak)) Tensor compose_nonzero(NonzeroArgs a){ fail(YOKE_E_UNSUPPORTED, "nonzero: pending"); }
__attribute__((weak)) Tensor compose_masked_select(MaskedSelectArgs a){ fail(YOKE_E_UNSUPPORTED, "masked_select: pending"); }
__attribute__((weak)) void infer_masked_fill(MaskedFillArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "masked_fill: pending"); }
__attribute__((weak)) void vjp_masked_fill(MaskedFillArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "masked_fill: pending"); }
__attribute__((weak)) Tensor compose_pad(PadArgs a){ fail(YOKE_E_UNSUPPORTED, "pad: pending"); }
__attribute__((weak)) Tensor compose_flip(FlipArgs a){ fail(YOKE_E_UNSUPPORTED, "flip: pending"); }
__attribute__((weak)) Tensor compose_roll(RollArgs a){ fail(YOKE_E_UNSUPPORTED, "roll: pending"); }
__attribute__((weak)) Tensor compose_tile(TileArgs a){ fail(YOKE_E_UNSUPPORTED, "tile: pending"); }
__attribute__((weak)) void infer_tril(TrilArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "tril: pending"); }
__attribute__((weak)) void vjp_tril(TrilArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "tril: pending"); }
__attribute__((weak)) void infer_triu(TriuArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "triu: pending"); }
__attribute__((weak)) void vjp_triu(TriuArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "triu: pending"); }
__attribute__((weak)) void infer_one_hot(OneHotArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "one_hot: pending"); }
__attribute__((weak)) Tensor compose_dropout(DropoutArgs a){ fail(YOKE_E_UNSUPPORTED, "dropout: pending"); }
__attribute__((weak)) Tensor compose_empty(EmptyArgs a){ fail(YOKE_E_UNSUPPORTED, "empty: pending"); }
__attribute__((weak)) Tensor compose_zeros(ZerosArgs a){ fail(YOKE_E_UNSUPPORTED, "zeros: pending"); }
__attribute__((weak)) Tensor compose_ones(OnesArgs a){ fail(YOKE_E_UNSUPPORTED, "ones: pending"); }
__attribute__((weak)) Tensor compose_full(FullArgs a){ fail(YOKE_E_UNSUPPORTED, "full: pending"); }
__attribute__((weak)) Tensor compose_arange(ArangeArgs a){ fail(YOKE_E_UNSUPPORTED, "arange: pending"); }
__attribute__((weak)) Tensor compose_linspace(LinspaceArgs a){ fail(YOKE_E_UNSUPPORTED, "linspace: pending"); }
__attribute__((weak)) Tensor compose_eye(EyeArgs a){ fail(YOKE_E_UNSUPPORTED, "eye: pending"); }
__attribute__((weak)) Tensor compose_rand(RandArgs a){ fail(YOKE_E_UNSUPPORTED, "rand: pending"); }
__attribute__((weak)) Tensor compose_randn(RandnArgs a){ fail(YOKE_E_UNSUPPORTED, "randn: pending"); }
__attribute__((weak)) Tensor compose_randint(RandintArgs a){ fail(YOKE_E_UNSUPPORTED, "randint: pending"); }
__attribute__((weak)) Tensor compose_randperm(RandpermArgs a){ fail(YOKE_E_UNSUPPORTED, "randperm: pending"); }
__attribute__((weak)) Tensor compose_empty_like(EmptyLikeArgs a){ fail(YOKE_E_UNSUPPORTED, "empty_like: pending"); }
__attribute__((weak)) Tensor compose_zeros_like(ZerosLikeArgs a){ fail(YOKE_E_UNSUPPORTED, "zeros_like: pending"); }
__attribute__((weak)) Tensor compose_ones_like(OnesLikeArgs a){ fail(YOKE_E_UNSUPPORTED, "ones_like: pending"); }
__attribute__((weak)) Tensor compose_full_like(FullLikeArgs a){ fail(YOKE_E_UNSUPPORTED, "full_like: pending"); }
__attribute__((weak)) Tensor compose_rand_like(RandLikeArgs a){ fail(YOKE_E_UNSUPPORTED, "rand_like: pending"); }
__attribute__((weak)) Tensor compose_randn_like(RandnLikeArgs a){ fail(YOKE_E_UNSUPPORTED, "randn_like: pending"); }
__attribute__((weak)) Tensor compose_randint_like(RandintLikeArgs a){ fail(YOKE_E_UNSUPPORTED, "randint_like: pending"); }
__attribute__((weak)) void infer_relu_backward(ReluBackwardArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_relu_backward: pending"); }
__attribute__((weak)) void infer_tanh_backward(TanhBackwardArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_tanh_backward: pending"); }
__attribute__((weak)) void infer_gelu_backward(GeluBackwardArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_gelu_backward: pending"); }
__attribute__((weak)) void infer_abs_backward(AbsBackwardArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_abs_backward: pending"); }
__attribute__((weak)) void infer_sqrt_backward(SqrtBackwardArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_sqrt_backward: pending"); }
__attribute__((weak)) void infer_rsqrt_backward(RsqrtBackwardArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_rsqrt_backward: pending"); }
__attribute__((weak)) void infer_reciprocal_backward(ReciprocalBackwardArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_reciprocal_backward: pending"); }
__attribute__((weak)) void infer_sin_backward(SinBackwardArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_sin_backward: pending"); }
__attribute__((weak)) void infer_cos_backward(CosBackwardArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_cos_backward: pending"); }
__attribute__((weak)) void infer_erf_backward(ErfBackwardArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_erf_backward: pending"); }
__attribute__((weak)) void infer_sigmoid_backward(SigmoidBackwardArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_sigmoid_backward: pending"); }
__attribute__((weak)) void infer_silu_backward(SiluBackwardArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_silu_backward: pending"); }
__attribute__((weak)) void infer_softplus_backward(SoftplusBackwardArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_softplus_backward: pending"); }
__attribute__((weak)) void infer_leaky_relu_backward(LeakyReluBackwardArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_leaky_relu_backward: pending"); }
__attribute__((weak)) void infer_elu_backward(EluBackwardArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_elu_backward: pending"); }
__attribute__((weak)) void infer_clamp_backward(ClampBackwardArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_clamp_backward: pending"); }
__attribute__((weak)) void infer_pow_backward(PowBackwardArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_pow_backward: pending"); }
__attribute__((weak)) void infer_pow_exponent_backward(PowExponentBackwardArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_pow_exponent_backward: pending"); }
__attribute__((weak)) void infer_maximum_backward(MaximumBackwardArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_maximum_backward: pending"); }
__attribute__((weak)) void infer_minimum_backward(MinimumBackwardArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_minimum_backward: pending"); }
__attribute__((weak)) void infer_reverse_cumsum(ReverseCumsumArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_reverse_cumsum: pending"); }
__attribute__((weak)) void infer_amax_backward(AmaxBackwardArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_amax_backward: pending"); }
__attribute__((weak)) void infer_prod_backward(ProdBackwardArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_prod_backward: pending"); }
__attribute__((weak)) void infer_var_backward(VarBackwardArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_var_backward: pending"); }
__attribute__((weak)) void infer_norm_backward(NormBackwardArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_norm_backward: pending"); }
__attribute__((weak)) void infer_logsumexp_backward(LogsumexpBackwardArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_logsumexp_backward: pending"); }
__attribute__((weak)) void infer_softmax_backward(SoftmaxBackwardArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_softmax_backward: pending"); }
__attribute__((weak)) void infer_log_softmax_backward(LogSoftmaxBackwardArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_log_softmax_backward: pending"); }
__attribute__((weak)) void infer_cross_entropy_backward(CrossEntropyBackwardArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_cross_entropy_backward: pending"); }
__attribute__((weak)) void infer_nll_loss_backward(NllLossBackwardArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_nll_loss_backward: pending"); }
__attribute__((weak)) void infer_pair_loss(PairLossArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_pair_loss: pending"); }
__attribute__((weak)) void vjp_pair_loss(PairLossArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "_pair_loss: pending"); }
__attribute__((weak)) void infer_pair_loss_backward(PairLossBackwardArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_pair_loss_backward: pending"); }
__attribute__((weak)) void infer_layer_norm_backward(LayerNormBackwardArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_layer_norm_backward: pending"); }
__attribute__((weak)) void infer_rms_norm_backward(RmsNormBackwardArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_rms_norm_backward: pending"); }
__attribute__((weak)) void infer_group_norm_backward(GroupNormBackwardArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_group_norm_backward: pending"); }
__attribute__((weak)) void infer_batch_norm_internal(BatchNormInternalArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_batch_norm: pending"); }
__attribute__((weak)) void vjp_batch_norm_internal(BatchNormInternalArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "_batch_norm: pending"); }
__attribute__((weak)) void infer_batch_norm_backward(BatchNormBackwardArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_batch_norm_backward: pending"); }
__attribute__((weak)) void infer_embedding_backward(EmbeddingBackwardArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_embedding_backward: pending"); }
__attribute__((weak)) void infer_linear_internal(LinearInternalArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_linear: pending"); }
__attribute__((weak)) void vjp_linear_internal(LinearInternalArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "_linear: pending"); }
__attribute__((weak)) void infer_linear_relu(LinearReluArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_linear_relu: pending"); }
__attribute__((weak)) void vjp_linear_relu(LinearReluArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "_linear_relu: pending"); }
__attribute__((weak)) void infer_linear_act(LinearActArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_linear_act: pending"); }
__attribute__((weak)) void vjp_linear_act(LinearActArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "_linear_act: pending"); }
__attribute__((weak)) void infer_attention(AttentionArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_attention: pending"); }
__attribute__((weak)) void vjp_attention(AttentionArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "_attention: pending"); }
__attribute__((weak)) void infer_attention_backward(AttentionBackwardArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_attention_backward: pending"); }
__attribute__((weak)) void infer_count_nonzero(CountNonzeroArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_count_nonzero: pending"); }
__attribute__((weak)) void infer_nonzero_internal(NonzeroInternalArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_nonzero: pending"); }
__attribute__((weak)) void infer_index(IndexArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_index: pending"); }
__attribute__((weak)) void vjp_index(IndexArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "_index: pending"); }
__attribute__((weak)) void infer_index_put(IndexPutArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_index_put: pending"); }
__attribute__((weak)) void vjp_index_put(IndexPutArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "_index_put: pending"); }
__attribute__((weak)) void infer_index_select_backward(IndexSelectBackwardArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_index_select_backward: pending"); }
__attribute__((weak)) void infer_dropout_internal(DropoutInternalArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_dropout: pending"); }
__attribute__((weak)) void vjp_dropout_internal(DropoutInternalArgs a, Backward &b){ fail(YOKE_E_UNSUPPORTED, "_dropout: pending"); }
__attribute__((weak)) void infer_uniform(UniformArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_uniform: pending"); }
__attribute__((weak)) void infer_normal(NormalArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_normal: pending"); }
__attribute__((weak)) void infer_randint_internal(RandintInternalArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_randint: pending"); }
__attribute__((weak)) void infer_randperm_internal(RandpermInternalArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_randperm: pending"); }
__attribute__((weak)) void infer_arange_internal(ArangeInternalArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_arange: pending"); }
__attribute__((weak)) void infer_eye_internal(EyeInternalArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_eye: pending"); }
__attribute__((weak)) void infer_sgd(SgdArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_sgd: pending"); }
__attribute__((weak)) void infer_adam(AdamArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_adam: pending"); }
__attribute__((weak)) void infer_adamw(AdamwArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_adamw: pending"); }
__attribute__((weak)) void infer_unscale(UnscaleArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_unscale: pending"); }
__attribute__((weak)) void infer_update_scale(UpdateScaleArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_update_scale: pending"); }
__attribute__((weak)) void infer_total_norm(TotalNormArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_total_norm: pending"); }
__attribute__((weak)) void infer_clip_all(ClipAllArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_clip_all: pending"); }
__attribute__((weak)) void infer_lerp_all(LerpAllArgs a, Plan &plan){ fail(YOKE_E_UNSUPPORTED, "_lerp_all: pending"); }
}
