// plan.h: output of a shape rule (in rules.h, or infer_<op>) for a call: its results, and the arguments to cast
// first.
//
// A shape rule checks the arguments, and settles them in place (axes become non-negative, absent values are filled
// in). The rule states each result once, in order. It launches nothing itself. If the rule needs another op first (a
// cast, a transfer, one_hot's largest index), it calls this op.
#pragma once

#include "core/ops/args.h"
#include "core/ops/op_def.h"

#include <vector>

namespace yoke {

class Plan {
public:
    enum class Source : uint8_t { kFresh, kView, kSelf };

    Plan(const OpDef &op, yoke_arg *args, Device &device) : op_(op), args_(args), device_(device) {}

    const char *name() const { return public_name(op_); }
    const char *argument(int arg) const { return op_.args[arg].name; }
    Device &device() const { return device_; }

    // Adds a result with memory of its own; row-major, or with given dense strides.
    void result(IntList shape, yoke_dtype dtype, const int64_t *strides = nullptr);
    // Returns a result that was stated before.
    const yoke_tensor &stated(int result) const { return *results_[result]; }
    // Adds a fresh result with x's shape, in x's axis order if x is dense.
    void result_like(const yoke_tensor &x, yoke_dtype dtype);
    // Adds a result that views x's memory, `offset` elements from x's first element.
    void view(const yoke_tensor &x, IntList shape, const int64_t *strides, int64_t offset);
    // Adds x itself as the result.
    void self(const yoke_tensor &x);

    // Casts tensor argument `arg` unless it has the dtype already; the tape records the cast like any op.
    void cast(int arg, yoke_dtype dtype)
    {
        if (args_[arg].kind == YOKE_ARG_TENSOR && args_[arg].v.tensor->dtype != dtype)
            replace_by_cast(arg, dtype);
    }
    // Casts every tensor of list argument `arg` that has another dtype.
    void cast_list(int arg, yoke_dtype dtype);
    // Replaces the list by other tensors, which live as long as the call.
    void replace_list(int arg, const std::vector<Tensor> &tensors);
    // Replaces the list's tensors by copies, if any of them shares memory with x.
    void separate_list(int arg, const yoke_tensor &x);
    // Replaces tensor argument `arg` and keeps the new tensor alive for the call.
    void replace(int arg, Tensor tensor);
    // Sets the dtype in which script scalars of this call reach the kernel.
    void scalar_dtype(yoke_dtype dtype) { scalar_dtype_ = dtype; }
    // Keeps integers as long as the call lives, for set_ints, and returns the kept list.
    IntList keep(const Dims &dims);
    // Sets the number of floating-point operations, for ops whose cost is not bytes.
    void work(double flops) { work_ = flops; }

private:
    friend class Call;
    void replace_by_cast(int arg, yoke_dtype dtype);
    template <class Make>
    void replace_each(int arg, Make make);

    const OpDef &op_;
    yoke_arg *args_;
    Device &device_;
    Tensor results_[kMaxResults];
    Source sources_[kMaxResults] = {};
    int result_count_ = 0;
    std::vector<Tensor> held_;         // replacements of arguments
    std::vector<yoke_tensor *> list_;  // tensors of the op's only list argument
    yoke_dtype scalar_dtype_ = YOKE_NONE;
    double work_ = 0;
    Dims kept_[4];
    int kept_count_ = 0;
};

}  // namespace yoke
