// create.cpp: new tensors from sizes and values.
#include "core/base/default_dtype.h"
#include "core/ops/family.h"
#include "core/ops/scalar.h"
#include "core/select/select.h"

#include <algorithm>
#include <cmath>

namespace yoke {

namespace {

Tensor made(IntList shape, yoke_dtype dtype, Device *device, const char *call)
{
    const yoke_dtype chosen = dtype == YOKE_NONE ? default_dtype() : dtype;
    check_dtype(chosen, call);
    return make_empty(device ? *device : current_device(), chosen, shape, call);
}

Tensor filled(Tensor x, const Operand &value)
{
    ops::fill_(x, value);
    return x;
}

Tensor made_like(const yoke_tensor &x, yoke_dtype dtype, Device *device, const char *call)
{
    return made(x.shape(), dtype == YOKE_NONE ? x.dtype : dtype, device ? device : x.device, call);
}

Tensor made_full(IntList shape, yoke_dtype dtype, Device *device, const yoke_arg &value,
                 const char *call)
{
    check_dtype(dtype, call);
    check_scalar_fits(value, dtype, call, "value");
    return filled(made(shape, dtype, device, call), value);
}

// Returns the dtype of a script's number without a given dtype.
yoke_dtype dtype_of_scalar(const yoke_arg &value)
{
    return value.kind == YOKE_ARG_FLOAT  ? default_dtype()
           : value.kind == YOKE_ARG_BOOL ? YOKE_BOOL
                                         : YOKE_I64;
}

// Returns whether steps from start reach stop, or the range is empty. Integers are compared as integers: beyond 2^53,
// different integers may be the same double.
bool leads_somewhere(const yoke_arg &start, const yoke_arg &stop, const yoke_arg &step)
{
    const double from = scalar_f64(start), to = scalar_f64(stop), pace = scalar_f64(step);
    if (!std::isfinite(to - from) || !std::isfinite(pace) || pace == 0) return false;
    const bool floating = start.kind == YOKE_ARG_FLOAT || stop.kind == YOKE_ARG_FLOAT;
    const bool up = floating ? from < to : start.v.i < stop.v.i,
               down = floating ? from > to : start.v.i > stop.v.i;
    return pace > 0 ? !down : !up;
}

// Returns the number of elements of `arange`, within the precision of a double. Raises YOKE_E_VALUE if the steps lead
// nowhere, or memory cannot address the elements.
double checked_length(const yoke_arg &start, const yoke_arg &stop, const yoke_arg &step)
{
    if (!leads_somewhere(start, stop, step)) {
        const double distance = scalar_f64(stop) - scalar_f64(start);
        if (!std::isfinite(distance) || !std::isfinite(scalar_f64(step)))
            fail(
                YOKE_E_VALUE,
                "arange: arguments 'start', 'stop' and 'step' are %s, %s and %s; all three must be finite",
                text_of(start).c_str(), text_of(stop).c_str(), text_of(step).c_str());
        // The step has the wrong sign. Large integers may have no distance as doubles.
        const double pace = scalar_f64(step);
        const bool is_down = pace != 0 ? pace > 0 : distance < 0;
        fail(YOKE_E_VALUE, "arange: argument 'step' is %s; it must be %s 0 to go from %s to %s",
             text_of(step).c_str(), is_down ? "below" : "above", text_of(start).c_str(),
             text_of(stop).c_str());
    }
    const double length = std::ceil((scalar_f64(stop) - scalar_f64(start)) / scalar_f64(step));
    if (length >= 0x1p62)
        fail(
            YOKE_E_VALUE,
            "arange: arguments 'start', 'stop' and 'step' are %s, %s and %s; the %g elements must fit in memory",
            text_of(start).c_str(), text_of(stop).c_str(), text_of(step).c_str(), length);
    return length;
}

// Counts integer steps exactly, also beyond 2^53; the caller has seen that the steps lead from start to stop.
int64_t exact_count(int64_t start, int64_t stop, int64_t step)
{
    const auto from = static_cast<uint64_t>(step > 0 ? start : stop),
               to = static_cast<uint64_t>(step > 0 ? stop : start);
    const uint64_t pace = step > 0 ? static_cast<uint64_t>(step) : 0 - static_cast<uint64_t>(step);
    return static_cast<int64_t>((to - from) / pace + ((to - from) % pace != 0));
}

}  // namespace

Tensor compose_empty(EmptyArgs a)
{
    return made(a.shape(), a.dtype(), a.device(), "empty");
}

Tensor compose_zeros(ZerosArgs a)
{
    return filled(made(a.shape(), a.dtype(), a.device(), "zeros"), int64_t{0});
}

Tensor compose_ones(OnesArgs a)
{
    return filled(made(a.shape(), a.dtype(), a.device(), "ones"), int64_t{1});
}

Tensor compose_full(FullArgs a)
{
    const yoke_dtype dtype = a.dtype() == YOKE_NONE ? dtype_of_scalar(a.value()) : a.dtype();
    return made_full(a.shape(), dtype, a.device(), a.value(), "full");
}

Tensor compose_empty_like(EmptyLikeArgs a)
{
    return made_like(a.x(), a.dtype(), a.device(), "empty_like");
}

Tensor compose_zeros_like(ZerosLikeArgs a)
{
    return filled(made_like(a.x(), a.dtype(), a.device(), "zeros_like"), int64_t{0});
}

Tensor compose_ones_like(OnesLikeArgs a)
{
    return filled(made_like(a.x(), a.dtype(), a.device(), "ones_like"), int64_t{1});
}

Tensor compose_full_like(FullLikeArgs a)
{
    const yoke_dtype dtype = a.dtype() == YOKE_NONE ? a.x().dtype : a.dtype();
    Device *device = a.device() ? a.device() : a.x().device;
    return made_full(a.x().shape(), dtype, device, a.value(), "full_like");
}

Tensor compose_arange(ArangeArgs a)
{
    const yoke_arg start = a.stop() ? a.start() : arg_int(0),
                   stop = a.stop() ? *a.stop() : a.start();
    const bool floating = start.kind == YOKE_ARG_FLOAT || stop.kind == YOKE_ARG_FLOAT ||
                          a.step().kind == YOKE_ARG_FLOAT;
    const double length = checked_length(start, stop, a.step());
    const int64_t count =
        floating ? static_cast<int64_t>(length) : exact_count(start.v.i, stop.v.i, a.step().v.i);
    const yoke_dtype dtype = a.dtype() != YOKE_NONE ? a.dtype()
                             : floating             ? default_dtype()
                                                    : YOKE_I64;
    Tensor x = made({&count, 1}, dtype, a.device(), "arange");
    ops::arange_internal(x, start, a.step());
    return x;
}

Tensor compose_linspace(LinspaceArgs a)
{
    const int64_t steps = a.steps();
    if (steps < 0)
        fail(YOKE_E_VALUE, "linspace: argument 'steps' is %lld; it must not be negative",
             static_cast<long long>(steps));
    Tensor x = made({&steps, 1}, a.dtype(), a.device(), "linspace");
    const double start = scalar_f64(a.start()), stop = scalar_f64(a.stop());
    const auto gaps = static_cast<double>(steps - 1);
    if (steps > 2 && std::isfinite(start) && std::isfinite(stop) && !std::isfinite(stop - start)) {
        // The distance of the ends exceeds a double, so each half counts from its own end.
        const double step = stop / gaps - start / gaps;
        const int64_t half = steps / 2, one = 1;
        ops::arange_internal(make_view(x, Dims{half}, &one, 0), start, step);
        ops::arange_internal(make_view(x, Dims{steps - half}, &one, half),
                             stop - static_cast<double>(steps - half - 1) * step, step);
    } else {
        ops::arange_internal(x, start, steps > 1 ? (stop - start) / gaps : 0.0);
    }
    if (steps > 1)  // the last value is exactly `stop`, without rounding
        ops::fill_(make_view(x, {}, nullptr, steps - 1), stop);
    return x;
}

// Returns how many places of a row × col matrix lie in its lower triangle, up to a diagonal.
static int64_t count_lower(int64_t row, int64_t col, int64_t offset)
{
    // Row i has min(max(i + offset + 1, 0), col) of them: none, then more by one a row, then whole rows.
    const int64_t first = std::clamp<int64_t>(-offset, 0, row),
                  whole = std::clamp<int64_t>(col - offset, first, row), rising = whole - first;
    return rising * (first + offset + 1) + rising * (rising - 1) / 2 + (row - whole) * col;
}

// Returns the indices of a triangle of a matrix, row by row.
static Tensor triangle_indices(int64_t row, int64_t col, int64_t offset, bool lower,
                               yoke_dtype dtype, Device *device, const char *call)
{
    if (row < 0 || col < 0)
        fail(YOKE_E_VALUE, "%s: argument 'row' is %lld and 'col' %lld; neither must be negative",
             call, static_cast<long long>(row), static_cast<long long>(col));
    const yoke_dtype chosen = dtype == YOKE_NONE ? YOKE_I64 : dtype;
    check_dtype(chosen, call);
    if (chosen != YOKE_I64 && chosen != YOKE_I32)
        fail(YOKE_E_TYPE, "%s: argument 'dtype' is %s; it takes int64 or int32", call,
             name(chosen));
    if (row == 0 || col == 0) return made(Dims{2, 0}, chosen, device, call);
    const Tensor all = filled(made(Dims{row, col}, YOKE_U8, device, call), int64_t{1});
    // Beyond the edges the diagonal has no effect, but its sums could overflow.
    offset = std::clamp(offset, -row - 1, col + 1);
    const int64_t below = count_lower(row, col, lower ? offset : offset - 1);
    const Tensor places = ops::nonzero_internal(
        lower ? ops::tril(all, offset) : ops::triu(all, offset), lower ? below : row * col - below);
    return ops::cast(ops::contiguous(ops::transpose(places, 0, 1)), chosen);
}

Tensor compose_tril_indices(TrilIndicesArgs a)
{
    return triangle_indices(a.row(), a.col(), a.offset(), true, a.dtype(), a.device(),
                            "tril_indices");
}

Tensor compose_triu_indices(TriuIndicesArgs a)
{
    return triangle_indices(a.row(), a.col(), a.offset(), false, a.dtype(), a.device(),
                            "triu_indices");
}

Tensor compose_eye(EyeArgs a)
{
    Tensor x = made(Dims{a.n(), a.m().value_or(a.n())}, a.dtype(), a.device(), "eye");
    ops::eye_internal(x);
    return x;
}

}  // namespace yoke
