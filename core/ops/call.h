// call.h: one op call on its way through run.cpp: its tensors, its plan, its launch record.
#pragma once

#include "core/ops/op_node.h"
#include "core/ops/plan.h"

#include <algorithm>
#include <memory>

namespace yoke {

// A list of plain values that is short for nearly every call. Made with a count, its items are not set yet.
template <class T, int Inline>
class ShortList {
public:
    explicit ShortList(size_t count = 0) : size_(count)
    {
        if (count > Inline) [[unlikely]]
            grow(count);
    }
    void push_back(const T &value)
    {
        if (size_ == capacity_) [[unlikely]]
            grow(2 * capacity_);
        items_[size_++] = value;
    }
    void clear() { size_ = 0; }
    T *data() { return items_; }
    T *begin() { return items_; }
    const T *begin() const { return items_; }
    T *end() { return items_ + size_; }
    size_t size() const { return size_; }
    T &operator[](size_t i) { return items_[i]; }

private:
    __attribute__((cold, noinline)) void grow(size_t capacity)
    {
        auto more = std::make_unique<T[]>(capacity);
        std::copy_n(items_, std::min(size_, capacity_), more.get());
        many_ = std::move(more);
        items_ = many_.get();
        capacity_ = capacity;
    }

    size_t size_ = 0, capacity_ = Inline;
    T inline_[Inline];
    T *items_ = inline_;
    std::unique_ptr<T[]> many_;
};

// A kernel of the op has failed: raises what it said, in a name that a script knows.
[[noreturn]] void raise_kernel_error(const OpDef &op, yoke_status status, const Device &device);

class Call {
public:
    Call(const OpDef &op, int32_t number, yoke_arg *args);
    void execute(Tensor *results);

private:
    // The steps of execute, in this order.
    static Device &find_device(const OpDef &op, const yoke_arg *args);
    void check_written();
    void separate_overlaps(int written);
    void collect_tensors();
    void check_gradient_of_written(const yoke_tensor &x);
    void launch();
    void record();
    void mark_written();
    void give(Tensor *results);

    // The other way: an op whose result is written into an argument.
    void execute_in_place(Tensor *results);
    void take_history(yoke_tensor &x);
    void check_result_fits(const yoke_tensor &x) const;

    void describe_scalar(yoke_operand &o, const yoke_arg &value) const;
    template <class Visit>
    void each_tensor(Visit visit) const;

    const OpDef &op_;
    const int32_t number_;
    yoke_arg *args_;
    Plan plan_;
    ShortList<yoke_tensor *, kMaxArgs>
        tensors_;         // in launch order; absent optional ones and scalars are null
    uint32_t needs_ = 0;  // a bit for each argument that wants a gradient
};

}  // namespace yoke
