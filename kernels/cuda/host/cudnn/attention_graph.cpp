#include "kernels/cuda/host/cudnn/attention_graph.h"

#include <algorithm>

namespace yoke::cuda {

namespace {

using Node = Graph::Node;
using Name = AttentionName;

// Tensors and steps common to the graphs of attention and of its gradient.
class Attention {
public:
    Attention(Graph &graph, const AttentionShape &shape)
        : g(graph),
          s(shape),
          type(cudnn_type(shape.dtype)),
          query(heads(Name::kQuery, s.query, s.heads, s.queries, s.width)),
          key_across(across(Name::kKey, s.key, s.keys, s.width)),
          statistics(g.tensor(CUDNN_DATA_FLOAT, rows(), Name::kStatistics, s.statistics_alignment)),
          scale(g.number(Name::kScale))
    {
    }

    CudnnShape dense(int64_t count, int64_t length, int64_t width) const
    {
        return {{s.batch, count, length, width},
                {count * length * width, length * width, width, 1}};
    }
    CudnnShape scores() const { return dense(s.heads, s.queries, s.keys); }
    CudnnShape rows() const { return dense(s.heads, s.queries, 1); }

    Node heads(int64_t name, const HeadStrides &strides, int64_t count, int64_t length,
               int64_t width)
    {
        return g.tensor(
            type, {{s.batch, count, length, width}, {strides.batch, strides.head, strides.row, 1}},
            name, 16);
    }
    // Makes the tensor of key or value, with the last two axes exchanged.
    Node across(int64_t name, const HeadStrides &strides, int64_t length, int64_t width)
    {
        return g.tensor(
            type,
            {{s.batch, s.key_heads, width, length}, {strides.batch, strides.head, 1, strides.row}},
            name, 16);
    }
    Node between(const CudnnShape &shape) { return g.between(CUDNN_DATA_FLOAT, shape); }

    Node apply(cudnnPointwiseMode_t mode, Node x, Node b, const CudnnShape &shape)
    {
        const Node y = between(shape);
        g.pointwise(mode, x, b, y);
        return y;
    }
    Node reduce(cudnnReduceTensorOp_t op, Node x)
    {
        const Node y = between(rows());
        g.reduce(op, x, y);
        return y;
    }
    Node multiply(Node a, Node b, const CudnnShape &shape)
    {
        const Node y = between(shape);
        g.matmul(a, b, y);
        return y;
    }
    // Makes the scaled scores, plus the bias if there is one.
    Node scaled_scores();
    Node bias();
    Node mask(Node x);
    // Returns scores with the last two axes exchanged, as the left operand of a product.
    Node transposed_scores(Node x);
    void sum_over_sharers(Node x, Node transposed, int64_t width, Node to);

    Graph &g;
    const AttentionShape &s;
    const cudnnDataType_t type;
    const Node query, key_across, statistics, scale;
};

// Makes the bias. A batch or a head that all share has length 1; a shared row has all its length, and a stride of 0.
// cuDNN plans other forms of a bias as well; programs of many users have this form.
Node Attention::bias()
{
    const HeadStrides &at = s.bias;
    const int64_t batches = at.batch ? s.batch : 1, heads = at.head ? s.heads : 1,
                  rows = s.queries * std::max(at.row, s.keys);
    return g.tensor(type,
                    {{batches, heads, s.queries, s.keys},
                     {at.batch ? at.batch : heads * rows, at.head ? at.head : rows, at.row, 1}},
                    Name::kBias, s.bias_alignment);
}

Node Attention::scaled_scores()
{
    const Node scaled =
        apply(CUDNN_POINTWISE_MUL, multiply(query, key_across, scores()), scale, scores());
    return s.has_bias ? apply(CUDNN_POINTWISE_ADD, scaled, bias(), scores()) : scaled;
}

Node Attention::mask(Node x)
{
    if (!s.causal) return x;
    const Node row = g.between(CUDNN_DATA_INT32, scores()),
               column = g.between(CUDNN_DATA_INT32, scores()),
               allowed = g.between(CUDNN_DATA_BOOLEAN, scores()), masked = between(scores());
    g.index(2, x, row);
    g.index(3, x, column);
    g.compare(CUDNN_POINTWISE_CMP_GE, row, column, allowed);
    g.pointwise(CUDNN_POINTWISE_BINARY_SELECT, x, g.number(Name::kMasked), masked, allowed);
    return masked;
}

Node Attention::transposed_scores(Node x)
{
    const int64_t all = s.queries * s.keys;
    const Node y =
        g.between(type, {{s.batch, s.heads, s.keys, s.queries}, {s.heads * all, all, 1, s.keys}});
    g.reshape(x, y);
    return y;
}

// Adds the gradient of key or value: a product for each head of query. If heads share a head of keys, also adds the
// sum of their products.
void Attention::sum_over_sharers(Node x, Node transposed, int64_t width, Node to)
{
    if (s.heads == s.key_heads) return g.matmul(transposed, x, to);
    const Node each = g.between(type, dense(s.heads, s.keys, width));
    g.matmul(transposed, x, each);
    g.reduce(CUDNN_REDUCE_TENSOR_ADD, each, to);
}

}  // namespace

bool build_attention(Graph &graph, const AttentionShape &shape)
{
    Attention a(graph, shape);
    const AttentionShape &s = shape;
    const Node value = a.heads(Name::kValue, s.value, s.key_heads, s.keys, s.value_width),
               result = a.heads(Name::kResult, s.result, s.heads, s.queries, s.value_width),
               scores = a.mask(a.scaled_scores()), most = a.reduce(CUDNN_REDUCE_TENSOR_MAX, scores),
               weights = a.apply(CUDNN_POINTWISE_EXP,
                                 a.apply(CUDNN_POINTWISE_SUB, scores, most, a.scores()), nullptr,
                                 a.scores()),
               sum = a.reduce(CUDNN_REDUCE_TENSOR_ADD, weights),
               log = a.apply(CUDNN_POINTWISE_LOG, sum, nullptr, a.rows()),
               probabilities = graph.between(a.type, a.scores());
    graph.pointwise(CUDNN_POINTWISE_ADD, most, log, a.statistics);
    graph.pointwise(CUDNN_POINTWISE_DIV, weights, sum, probabilities);
    graph.matmul(probabilities, value, result);
    return graph.finish();
}

bool build_attention_backward(Graph &graph, const AttentionShape &shape, bool deterministic)
{
    Attention a(graph, shape);
    const AttentionShape &s = shape;
    const CudnnShape by_score = a.scores(), by_query = a.dense(s.heads, s.queries, s.value_width);
    const Node value_across = a.across(Name::kValue, s.value, s.keys, s.value_width),
               result = a.heads(Name::kResult, s.result, s.heads, s.queries, s.value_width),
               gradient = a.heads(Name::kGradient, s.gradient, s.heads, s.queries, s.value_width),
               row_sum = graph.tensor(CUDNN_DATA_FLOAT, a.rows(), Name::kRowSum, 16);
    // Each row's result with its gradient. The product with 1, dropout's scale elsewhere, is part of the pattern.
    graph.pointwise(
        CUDNN_POINTWISE_MUL,
        a.reduce(CUDNN_REDUCE_TENSOR_ADD, a.apply(CUDNN_POINTWISE_MUL, gradient, result, by_query)),
        graph.number(Name::kOne), row_sum);
    // The probabilities, from the statistics of the forward pass, and the gradient of value.
    const Node shifted = a.apply(CUDNN_POINTWISE_SUB, a.scaled_scores(), a.statistics, by_score),
               probabilities = a.apply(CUDNN_POINTWISE_EXP, a.mask(shifted), nullptr, by_score);
    a.sum_over_sharers(
        gradient, a.transposed_scores(probabilities), s.value_width,
        a.heads(Name::kValueGradient, s.value_gradient, s.key_heads, s.keys, s.value_width));
    // The gradient of scores, and of key.
    const Node passed = a.apply(CUDNN_POINTWISE_SUB, a.multiply(gradient, value_across, by_score),
                                row_sum, by_score),
               scores = a.apply(CUDNN_POINTWISE_MUL,
                                a.apply(CUDNN_POINTWISE_MUL, passed, probabilities, by_score),
                                a.scale, by_score);
    a.sum_over_sharers(a.query, a.transposed_scores(scores), s.width,
                       a.heads(Name::kKeyGradient, s.key_gradient, s.key_heads, s.keys, s.width));
    // The gradient of query.
    const Node key = graph.between(a.type, {{s.batch, s.key_heads, s.keys, s.width},
                                            {s.key.batch, s.key.head, s.key.row, 1}}),
               query_gradient =
                   a.heads(Name::kQueryGradient, s.query_gradient, s.heads, s.queries, s.width);
    graph.reshape(a.key_across, key);
    if (deterministic) {
        graph.matmul(scores, key, query_gradient);
        return graph.finish();
    }
    const Node sums = graph.tensor(CUDNN_DATA_FLOAT, a.dense(s.heads, s.queries, s.width),
                                   Name::kAccumulator, 16);
    graph.matmul(scores, key, sums);
    graph.pointwise(CUDNN_POINTWISE_IDENTITY, sums, nullptr, query_gradient);
    return graph.finish();
}

}  // namespace yoke::cuda
