// probe.h: nodes made by no op, with notes of the walk's calls.
#pragma once

#include "core/autograd/backward.h"
#include "core/memory/memory.h"
#include "core/ops/ops.h"

#include <functional>
#include <string>
#include <vector>

namespace yoke::test {

using Log = std::vector<std::string>;

inline Tensor number(double value, bool requires_grad = false)
{
    Tensor x = ops::full({}, value, YOKE_F64);
    if (requires_grad) set_requires_grad(*x, true);
    return x;
}

inline double value_of(const Tensor &x)
{
    double value = 0;
    copy_to_host(*x, &value, sizeof value, "a test");
    return value;
}

// Node with any number of edges. Hands its gradient to each edge, and notes each call.
class ProbeNode final : public Node {
public:
    ProbeNode(const char *name, std::vector<Edge> edges, int outputs, std::vector<std::string> &log)
        : name_(name), edges_(std::move(edges)), outputs_(outputs), log_(log)
    {
    }
    ~ProbeNode() override { log_.push_back(std::string("free ") + name_); }
    const char *name() const noexcept override { return name_; }
    int output_count() const noexcept override { return outputs_; }
    std::span<const Edge> edges() const noexcept override { return edges_; }
    const Edge *casts_f32() const noexcept override { return is_cast ? &edges_[0] : nullptr; }
    void release_saved() noexcept override { log_.push_back(std::string("release ") + name_); }
    void backward(std::span<Tensor> gradients, std::span<Tensor> out) override
    {
        log_.push_back(name_);
        if (action)
            action(gradients, out);
        else
            for (Tensor &one : out) one = gradients[0];
    }

    std::function<void(std::span<Tensor>, std::span<Tensor>)> action;
    bool is_cast = false;  // the node stands for a cast from float32 to a half

private:
    const char *name_;
    std::vector<Edge> edges_;
    int outputs_;
    std::vector<std::string> &log_;
};

inline Edge edge_to(const Tensor &x)
{
    return {Ref<Node>::share(node_of(*x)), x->output_index};
}

struct Made {
    Tensor tensor;
    ProbeNode *node;
};

// Returns a number made by a node of this name with these edges.
inline Made made_by(const char *name, std::vector<Edge> edges, std::vector<std::string> &log,
                    int outputs = 1, int output = 0)
{
    auto *node = new ProbeNode(name, std::move(edges), outputs, log);
    Tensor x = number(0);
    set_node(*x, Ref<Node>::adopt(node), static_cast<uint32_t>(output));
    return {x, node};
}

inline void go_back(const Tensor &x, bool retain = false)
{
    yoke_tensor *root = x.get();
    backward({&root, 1}, {}, retain);
}

}  // namespace yoke::test
