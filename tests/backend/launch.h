// launch.h: launch records by hand, as core/ops/call.cpp would make them.
#pragma once

#include "contract.h"

#include <cstring>
#include <numeric>
#include <optional>

namespace yoke::test {

template <class T>
constexpr yoke_dtype dtype_of()
{
    if constexpr (std::is_same_v<T, double>)
        return YOKE_F64;
    else if constexpr (std::is_same_v<T, float>)
        return YOKE_F32;
    else if constexpr (std::is_same_v<T, int64_t>)
        return YOKE_I64;
    else if constexpr (std::is_same_v<T, int32_t>)
        return YOKE_I32;
    else if constexpr (std::is_same_v<T, uint16_t>)
        return YOKE_F16;  // its bits
    else if constexpr (std::is_same_v<T, bool>)
        return YOKE_BOOL;
    else
        return YOKE_U8;
}

inline std::vector<int64_t> row_major(const std::vector<int64_t> &shape)
{
    std::vector<int64_t> strides(shape.size());
    int64_t step = 1;
    for (size_t i = shape.size(); i-- > 0; step *= std::max<int64_t>(shape[i], 1))
        strides[i] = step;
    return strides;
}

// Tensors and parameters of a launch. While a record is built, lists keep their addresses.
class Record {
public:
    Record(int32_t op, void *device, void *stream = nullptr)
        : op_(op), device_(device), stream_(stream)
    {
    }

    template <class T>
    Record &in(const T *data, std::vector<int64_t> shape,
               std::optional<std::vector<int64_t>> strides = {})
    {
        return add(const_cast<T *>(data), dtype_of<T>(), std::move(shape), std::move(strides),
                   YOKE_OPERAND_READ);
    }
    template <class T>
    Record &out(T *data, std::vector<int64_t> shape,
                std::optional<std::vector<int64_t>> strides = {})
    {
        return add(data, dtype_of<T>(), std::move(shape), std::move(strides), YOKE_OPERAND_WRITE);
    }
    template <class T>
    Record &change(T *data, std::vector<int64_t> shape,
                   std::optional<std::vector<int64_t>> strides = {})
    {
        return add(data, dtype_of<T>(), std::move(shape), std::move(strides),
                   YOKE_OPERAND_READ | YOKE_OPERAND_WRITE);
    }
    // Sets the dtype of the last operand, for dtypes without a C++ type.
    Record &as(yoke_dtype dtype)
    {
        operands_.back().dtype = dtype;
        return *this;
    }
    Record &absent()
    {
        operands_.push_back({});
        return *this;
    }
    template <class T>
    Record &scalar(T value)
    {
        yoke_operand o{};
        o.numel = 1;
        o.dtype = dtype_of<T>();
        o.flags = YOKE_OPERAND_READ | YOKE_OPERAND_SCALAR | YOKE_OPERAND_CONTIGUOUS;
        memcpy(&o.immediate, &value, sizeof value);
        operands_.push_back(o);
        return *this;
    }
    Record &param(int64_t value, int32_t kind = YOKE_ARG_INT)
    {
        yoke_arg arg{kind, 0, {}};
        arg.v.i = value;
        params_.push_back(arg);
        return *this;
    }
    Record &param(double value)
    {
        yoke_arg arg{YOKE_ARG_FLOAT, 0, {}};
        arg.v.f = value;
        params_.push_back(arg);
        return *this;
    }
    Record &axes(const std::vector<int64_t> &list)
    {
        lists_.push_back(std::make_unique<std::vector<int64_t>>(list));
        yoke_arg arg{YOKE_ARG_INTS, static_cast<int32_t>(list.size()), {}};
        arg.v.ints = lists_.back()->data();
        params_.push_back(arg);
        return *this;
    }
    Record &text(const char *value)
    {
        yoke_arg arg{YOKE_ARG_STRING, 0, {}};
        arg.v.string = value;
        params_.push_back(arg);
        return *this;
    }

    Record &allow(uint32_t flags)
    {
        flags_ = flags;
        return *this;
    }
    Record &limit_workspace(uint64_t bytes)
    {
        workspace_limit_ = bytes;
        return *this;
    }

    yoke_status run(const yoke_backend &table)
    {
        double bytes = 0;
        for (yoke_operand &o : operands_) {
            bytes += static_cast<double>(o.bytes);
            if (o.flags & YOKE_OPERAND_SCALAR) o.data = &o.immediate;
        }
        const yoke_launch launch{sizeof(yoke_launch),
                                 op_,
                                 operands_.data(),
                                 params_.data(),
                                 static_cast<int32_t>(operands_.size()),
                                 static_cast<int32_t>(params_.size()),
                                 device_,
                                 stream_,
                                 bytes,
                                 nullptr,
                                 flags_,
                                 10,
                                 workspace_limit_};
        const yoke_kernel_fn kernel = table.kernels[op_];
        return table.launch ? table.launch(&launch, kernel) : kernel(&launch);
    }

private:
    Record &add(void *data, yoke_dtype dtype, std::vector<int64_t> shape,
                std::optional<std::vector<int64_t>> strides, uint32_t flags);

    int32_t op_;
    void *device_, *stream_;
    uint32_t flags_ = 0;
    uint64_t workspace_limit_ = 256 << 20;
    std::vector<yoke_operand> operands_;
    std::vector<yoke_arg> params_;
    std::vector<std::unique_ptr<std::vector<int64_t>>> lists_;
};

inline Record &Record::add(void *data, yoke_dtype dtype, std::vector<int64_t> shape,
                           std::optional<std::vector<int64_t>> strides, uint32_t flags)
{
    static constexpr uint64_t kSizes[] = {0, 8, 4, 2, 2, 8, 4, 1, 1, 1};
    yoke_operand o{};
    const std::vector<int64_t> dense = row_major(shape), steps = strides.value_or(dense);
    int64_t lowest = 0, highest = 0;
    o.numel = 1;
    for (size_t i = 0; i < shape.size(); ++i) {
        o.numel *= shape[i];
        const int64_t reach = std::max<int64_t>(shape[i] - 1, 0) * steps[i];
        (reach < 0 ? lowest : highest) += reach;
    }
    o.data = data;
    o.ndim = static_cast<int32_t>(shape.size());
    o.dtype = dtype;
    o.flags = flags | (steps == dense || o.numel == 0 ? YOKE_OPERAND_CONTIGUOUS : 0);
    const auto size = static_cast<int64_t>(kSizes[dtype]);
    o.begin = static_cast<char *>(data) + lowest * size;
    o.bytes = o.numel ? static_cast<uint64_t>((highest - lowest + 1) * size) : 0;
    lists_.push_back(std::make_unique<std::vector<int64_t>>(std::move(shape)));
    o.shape = lists_.back()->data();
    lists_.push_back(std::make_unique<std::vector<int64_t>>(steps));
    o.strides = lists_.back()->data();
    operands_.push_back(o);
    return *this;
}

// 0, step, 2 step, …
template <class T>
std::vector<T> ramp(size_t count, T start = 0, T step = 1)
{
    std::vector<T> values(count);
    for (size_t i = 0; i < count; ++i) values[i] = static_cast<T>(start + static_cast<T>(i) * step);
    return values;
}

}  // namespace yoke::test
