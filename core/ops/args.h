// args.h: typed reading and writing of an op's argument list. The accessor structs of ops.h, one an op, derive from
// Args.
//
// The list is borrowed. Tensors in it are borrowed too, and set_* keeps no copy: what a shape rule writes must live as
// long as the call (Plan::keep).
#pragma once

#include "core/base/shape.h"
#include "core/tensor/tensor.h"

#include <optional>
#include <string_view>

namespace yoke {

using FloatList = std::span<const double>;

inline bool is_scalar(const yoke_arg &value)
{
    return value.kind == YOKE_ARG_BOOL || value.kind == YOKE_ARG_INT ||
           value.kind == YOKE_ARG_FLOAT;
}
inline double scalar_f64(const yoke_arg &value)
{
    return value.kind == YOKE_ARG_FLOAT ? value.v.f : static_cast<double>(value.v.i);
}

inline yoke_arg arg_none()
{
    return {YOKE_ARG_NONE, 0, {}};
}
inline yoke_arg arg_tensor(const yoke_tensor &x)
{
    yoke_arg arg{YOKE_ARG_TENSOR, 0, {}};
    arg.v.tensor = const_cast<yoke_tensor *>(&x);
    return arg;
}
inline yoke_arg arg_optional_tensor(const yoke_tensor *x)
{
    return x ? arg_tensor(*x) : arg_none();
}
inline yoke_arg arg_int(int64_t i)
{
    yoke_arg arg{YOKE_ARG_INT, 0, {}};
    arg.v.i = i;
    return arg;
}
inline yoke_arg arg_bool(bool b)
{
    yoke_arg arg{YOKE_ARG_BOOL, 0, {}};
    arg.v.i = b;
    return arg;
}
inline yoke_arg arg_float(double f)
{
    yoke_arg arg{YOKE_ARG_FLOAT, 0, {}};
    arg.v.f = f;
    return arg;
}
inline yoke_arg arg_ints(IntList list)
{
    yoke_arg arg{YOKE_ARG_INTS, static_cast<int32_t>(list.size()), {}};
    arg.v.ints = list.data();
    return arg;
}
inline yoke_arg arg_floats(FloatList list)
{
    yoke_arg arg{YOKE_ARG_FLOATS, static_cast<int32_t>(list.size()), {}};
    arg.v.floats = list.data();
    return arg;
}
inline yoke_arg arg_tensors(TensorList list)
{
    yoke_arg arg{YOKE_ARG_TENSORS, static_cast<int32_t>(list.size()), {}};
    arg.v.tensors = list.data();
    return arg;
}
inline yoke_arg arg_string(const char *text)
{
    yoke_arg arg{YOKE_ARG_STRING, 0, {}};
    arg.v.string = text;
    return arg;
}
inline yoke_arg arg_device(yoke_device *device)
{
    yoke_arg arg{device ? YOKE_ARG_DEVICE : YOKE_ARG_NONE, 0, {}};
    arg.v.device = device;
    return arg;
}

inline yoke_arg arg_generator(yoke_generator *generator)
{
    yoke_arg arg{generator ? YOKE_ARG_GENERATOR : YOKE_ARG_NONE, 0, {}};
    arg.v.generator = generator;
    return arg;
}

// Value of an `operand` argument: a tensor, or a script scalar.
class Operand {
public:
    Operand(const yoke_tensor &x) : value_(arg_tensor(x)) {}
    Operand(const Tensor &x) : value_(arg_tensor(*x)) {}
    Operand(double x) : value_(arg_float(x)) {}
    Operand(int64_t x) : value_(arg_int(x)) {}
    Operand(const yoke_arg &x) : value_(x) {}
    const yoke_arg &arg() const { return value_; }

private:
    yoke_arg value_;
};

class Args {
public:
    explicit Args(yoke_arg *values) : values_(values) {}

    const yoke_arg &value(int i) const { return values_[i]; }
    const yoke_arg *value_or_null(int i) const { return absent(i) ? nullptr : &values_[i]; }
    bool absent(int i) const { return values_[i].kind == YOKE_ARG_NONE; }

    const yoke_tensor &tensor(int i) const { return *values_[i].v.tensor; }
    yoke_tensor &mut(int i) const { return *values_[i].v.tensor; }
    const yoke_tensor *tensor_or_null(int i) const
    {
        return absent(i) ? nullptr : values_[i].v.tensor;
    }
    TensorList tensors(int i) const
    {
        return {values_[i].v.tensors, static_cast<size_t>(values_[i].count)};
    }
    int64_t integer(int i) const { return values_[i].v.i; }
    std::optional<int64_t> optional_integer(int i) const
    {
        return absent(i) ? std::nullopt : std::optional<int64_t>(values_[i].v.i);
    }
    IntList ints(int i) const { return {values_[i].v.ints, static_cast<size_t>(values_[i].count)}; }
    std::optional<IntList> optional_ints(int i) const
    {
        return absent(i) ? std::nullopt : std::optional<IntList>(ints(i));
    }
    std::optional<FloatList> optional_floats(int i) const
    {
        if (absent(i)) return std::nullopt;
        return FloatList(values_[i].v.floats, static_cast<size_t>(values_[i].count));
    }
    double real(int i) const { return scalar_f64(values_[i]); }
    bool boolean(int i) const { return values_[i].v.i != 0; }
    yoke_dtype dtype_of(int i) const
    {
        return absent(i) ? YOKE_NONE : static_cast<yoke_dtype>(values_[i].v.i);
    }
    std::string_view string(int i) const { return values_[i].v.string; }
    Device *device_or_null(int i) const { return absent(i) ? nullptr : values_[i].v.device; }

    yoke_generator *generator_or_null(int i) const
    {
        return absent(i) ? nullptr : values_[i].v.generator;
    }

    void set_tensor(int i, const yoke_tensor &x) { values_[i] = arg_tensor(x); }
    void set_integer(int i, int64_t v) { values_[i] = arg_int(v); }
    void set_ints(int i, IntList v) { values_[i] = arg_ints(v); }
    void set_dtype_of(int i, yoke_dtype v) { values_[i] = arg_int(v); }

protected:
    yoke_arg *values_;
};

}  // namespace yoke
