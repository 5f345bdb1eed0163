// plan.h: what a shape rule (of rules.h, or infer_<op>) says about a call: its results, and which arguments are cast
// first.
//
// A shape rule checks the arguments, settles them in place (axes become non-negative, absent values are filled in) and
// states each result once, in order. It launches nothing itself; where it needs the value of another op first (a cast,
// a transfer, one_hot's largest index), it calls that op.
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

    // A result with memory of its own; row-major, or with given dense strides.
    void result(IntList shape, yoke_dtype dtype, const int64_t *strides = nullptr);
    // A result that was stated before.
    const yoke_tensor &stated(int result) const { return *results_[result]; }
    // A fresh result with x's shape; it keeps x's axis order where x is dense.
    void result_like(const yoke_tensor &x, yoke_dtype dtype);
    // A result that views x's memory, `offset` elements from its first.
    void view(const yoke_tensor &x, IntList shape, const int64_t *strides, int64_t offset);
    // The result is x itself.
    void self(const yoke_tensor &x);

    // Casts tensor argument `arg` unless it has that dtype already; recorded on the tape like any op.
    void cast(int arg, yoke_dtype dtype)
    {
        if (args_[arg].kind == YOKE_ARG_TENSOR && args_[arg].v.tensor->dtype != dtype)
            replace_by_cast(arg, dtype);
    }
    // The same for every tensor of list argument `arg`.
    void cast_list(int arg, yoke_dtype dtype);
    // Copies of the list's tensors in their place, if one of them shares memory with x.
    void separate_list(int arg, const yoke_tensor &x);
    // Replaces tensor argument `arg` and keeps the new one alive for the call.
    void replace(int arg, Tensor tensor);
    // The dtype in which script scalars of this call reach the kernel.
    void scalar_dtype(yoke_dtype dtype) { scalar_dtype_ = dtype; }
    // Integers that live as long as the call, for set_ints.
    IntList keep(const Dims &dims);
    // Floating-point operations, for ops whose cost is not bytes.
    void work(double flops) { work_ = flops; }

private:
    friend class Call;
    void replace_by_cast(int arg, yoke_dtype dtype);
    template <class Make>
    void replace_list(int arg, Make make);

    const OpDef &op_;
    yoke_arg *args_;
    Device &device_;
    Tensor results_[kMaxResults];
    Source sources_[kMaxResults] = {};
    int result_count_ = 0;
    std::vector<Tensor> held_;         // what replaces arguments
    std::vector<yoke_tensor *> list_;  // of the one list argument that an op has
    yoke_dtype scalar_dtype_ = YOKE_NONE;
    double work_ = 0;
    Dims kept_[4];
    int kept_count_ = 0;
};

}  // namespace yoke
