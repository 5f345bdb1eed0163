#include "tests/kernels/cpu_harness.h"

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "kernels/common/numeric.h"

extern "C" yoke_status yoke_cpu_backend_get(const yoke_host *host, const yoke_backend **out);

namespace cpu_test {

using yoke::kernels::bf16;
using yoke::kernels::bool8;
using yoke::kernels::convert;
using yoke::kernels::f16;

static thread_local std::string t_error;
static thread_local std::string t_log;
static const char *g_isa;
static std::atomic<int> g_threads{2};

static yoke_status set_error(yoke_status status, int64_t, const char *message)
{
    t_error = message;
    return status;
}

static const char *config(const char *key)
{
    return strcmp(key, "YOKE_CPU_ISA") == 0 ? g_isa : nullptr;
}

static yoke_status scratch_alloc(void *, uint64_t bytes, void *, uint32_t, void **out)
{
    *out = malloc(bytes);
    return *out ? YOKE_OK : YOKE_E_OOM;
}

static const yoke_host g_host = {
    sizeof(yoke_host),
    YOKE_BACKEND_ABI,
    set_error,
    [](int32_t, const char *message) { t_log += message; },
    config,
    [] { return (int32_t)g_threads.load(); },
    scratch_alloc,
    [](void *, void *pointer, void *) { free(pointer); },
};

static const yoke_backend *g_backend;

const std::vector<Level> &levels()
{
    static const std::vector<Level> found = [] {
        std::vector<Level> list;
        for (const char *isa : {"base", "v3", "v4"}) {
            g_isa = isa;
            if (yoke_cpu_backend_get(&g_host, &g_backend) == YOKE_OK)
                list.push_back({isa, g_backend->kernels});
        }
        return list;
    }();
    return found;
}

const yoke_backend &backend()
{
    levels();
    return *g_backend;
}

std::string take_error()
{
    std::string error;
    error.swap(t_error);
    return error;
}

std::string take_log()
{
    return std::exchange(t_log, "");
}

void set_threads(int threads)
{
    g_threads = threads;
}

static const int kSizes[] = {0, 8, 4, 2, 2, 8, 4, 1, 1, 1};

template <class F>
static auto with_type(yoke_dtype dtype, F f)
{
    switch (dtype) {
        case YOKE_F64:
            return f.template operator()<double>();
        case YOKE_F32:
            return f.template operator()<float>();
        case YOKE_F16:
            return f.template operator()<f16>();
        case YOKE_BF16:
            return f.template operator()<bf16>();
        case YOKE_I64:
            return f.template operator()<int64_t>();
        case YOKE_I32:
            return f.template operator()<int32_t>();
        case YOKE_I8:
            return f.template operator()<int8_t>();
        case YOKE_U8:
            return f.template operator()<uint8_t>();
        default:
            return f.template operator()<bool8>();
    }
}

Array::Array(yoke_dtype type, std::vector<int64_t> sizes)
    : dtype(type), shape(std::move(sizes)), strides(shape.size())
{
    int64_t count = 1;
    for (size_t i = shape.size(); i-- > 0;) {
        strides[i] = count;
        count *= shape[i];
    }
    // The memory has a pattern, so that an element forgotten by a kernel is not a zero.
    storage = std::make_shared<std::vector<char>>(count * kSizes[type] + 64, (char)0x01);
}

Array::Array(yoke_dtype type, std::vector<int64_t> sizes, const std::vector<double> &values)
    : Array(type, std::move(sizes))
{
    set(values);
}

Array Array::absent()
{
    Array none(YOKE_BOOL, {0});
    none.present = false;
    return none;
}

Array Array::permuted(const std::vector<int> &axes) const
{
    Array view = *this;
    for (size_t i = 0; i < axes.size(); i++) {
        view.shape[i] = shape[axes[i]];
        view.strides[i] = strides[axes[i]];
    }
    return view;
}

Array Array::expanded(const std::vector<int64_t> &sizes) const
{
    Array view = *this;
    size_t added = sizes.size() - shape.size();
    view.shape = sizes;
    view.strides.assign(sizes.size(), 0);
    for (size_t i = 0; i < shape.size(); i++)
        view.strides[added + i] = shape[i] == sizes[added + i] ? strides[i] : 0;
    return view;
}

Array Array::sliced(int axis, int64_t start, int64_t step, int64_t count) const
{
    Array view = *this;
    view.offset += start * strides[axis] * kSizes[dtype];
    view.strides[axis] *= step;
    view.shape[axis] = count;
    return view;
}

int64_t Array::numel() const
{
    int64_t count = 1;
    for (int64_t length : shape) count *= length;
    return count;
}

template <class F>
static void visit(const Array &array, F f)
{
    std::vector<int64_t> at(array.shape.size());
    for (int64_t i = 0; i < array.numel(); i++) {
        int64_t place = 0, rest = i;
        for (size_t axis = at.size(); axis-- > 0; rest /= array.shape[axis])
            place += rest % array.shape[axis] * array.strides[axis];
        f(i, array.data() + place * kSizes[array.dtype]);
    }
}

std::vector<double> Array::values() const
{
    std::vector<double> list(numel());
    with_type(dtype, [&]<class T>() {
        visit(*this, [&](int64_t i, const char *p) { list[i] = convert<double>(*(const T *)p); });
    });
    return list;
}

// Any byte but 0 is true, and masks from outside have such.
void Array::set(const std::vector<double> &values)
{
    static constexpr uint8_t kTrue[] = {1, 255, 2, 128, 127};
    with_type(dtype, [&]<class T>() {
        visit(*this, [&](int64_t i, char *p) {
            T x = convert<T>(values[i]);
            if constexpr (std::is_same_v<T, bool8>) x.byte = x.byte ? kTrue[i % 5] : 0;
            *(T *)p = x;
        });
    });
}

yoke_operand Array::operand(uint32_t flags) const
{
    int64_t dense = 1;
    bool contiguous = true;
    for (size_t i = shape.size(); i-- > 0; dense *= shape[i])
        contiguous &= shape[i] == 1 || strides[i] == dense;
    yoke_operand o = {};
    if (!present) return o;
    o.data = data();
    o.shape = shape.data();
    o.strides = strides.data();
    o.numel = numel();
    o.ndim = (int32_t)shape.size();
    o.dtype = dtype;
    o.flags = flags | (contiguous ? YOKE_OPERAND_CONTIGUOUS : 0);
    o.begin = storage->data();
    o.bytes = storage->size();
    return o;
}

std::vector<double> ramp(int64_t n, double from, double step, int period)
{
    std::vector<double> list(n);
    for (int64_t i = 0; i < n; i++) list[i] = from + step * (double)(i * 5 % period);
    return list;
}

std::vector<yoke_dtype> all_dtypes()
{
    return {YOKE_F64, YOKE_F32, YOKE_F16, YOKE_BF16, YOKE_I64,
            YOKE_I32, YOKE_I8,  YOKE_U8,  YOKE_BOOL};
}

std::vector<yoke_dtype> float_dtypes()
{
    return {YOKE_F64, YOKE_F32, YOKE_F16, YOKE_BF16};
}

double tolerance(yoke_dtype dtype)
{
    return dtype == YOKE_F64 ? 1e-13 : dtype == YOKE_F32 ? 2e-6 : dtype == YOKE_F16 ? 1e-3 : 8e-3;
}

yoke_arg integer(int64_t value)
{
    yoke_arg arg = {YOKE_ARG_INT, 0, {}};
    arg.v.i = value;
    return arg;
}

yoke_arg number(double value)
{
    yoke_arg arg = {YOKE_ARG_FLOAT, 0, {}};
    arg.v.f = value;
    return arg;
}

yoke_arg text(const char *value)
{
    yoke_arg arg = {YOKE_ARG_STRING, 0, {}};
    arg.v.string = value;
    return arg;
}

yoke_arg integers(const std::vector<int64_t> &values)
{
    yoke_arg arg = {YOKE_ARG_INTS, (int32_t)values.size(), {}};
    arg.v.ints = values.data();
    return arg;
}

yoke_status launch(const Level &level, int op, const std::vector<Array> &operands,
                   size_t first_written, const std::vector<yoke_arg> &params,
                   const std::vector<bool> &written)
{
    std::vector<yoke_operand> list;
    for (size_t i = 0; i < operands.size(); i++) {
        bool writes = i >= first_written || (i < written.size() && written[i]);
        list.push_back(operands[i].operand(writes ? YOKE_OPERAND_WRITE : YOKE_OPERAND_READ));
    }
    void *device = nullptr;
    backend().device_open(0, &device);
    yoke_launch record = {sizeof(yoke_launch),
                          op,
                          list.data(),
                          params.data(),
                          (int32_t)list.size(),
                          (int32_t)params.size(),
                          device,
                          nullptr,
                          0,
                          nullptr,
                          0,
                          0,
                          0};
    return level.kernels[op](&record);
}

void expect_near(const std::vector<double> &got, const std::vector<double> &want, double relative,
                 const std::string &what)
{
    ASSERT_EQ(got.size(), want.size()) << what;
    for (size_t i = 0; i < got.size(); i++) {
        if (std::isnan(want[i]) && std::isnan(got[i])) continue;
        if (got[i] == want[i]) continue;
        ASSERT_NEAR(got[i], want[i], relative * (1 + std::fabs(want[i])))
            << what << ", element " << i;
    }
}

}  // namespace cpu_test
