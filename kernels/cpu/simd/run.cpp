// Runs of elements, by size or by narrow dtype.
#include "kernels/cpu/simd/run.h"

#include <cstring>

#include "kernels/common/span.h"

YOKE_SIMD_BEGIN

// Calls f.operator()<T>() with the unsigned integer type of `size` bytes.
template <class F>
static void by_size(int64_t size, const F &f)
{
#define YOKE_SIZE_CASE(value, type) \
    case value:                     \
        return f.template operator()<type>();
    switch (size) {
        YOKE_SIZE_TYPES(YOKE_SIZE_CASE)
    }
#undef YOKE_SIZE_CASE
}

void repeat_element(char *to, int64_t size, int64_t n)
{
    by_size(size, [&]<class T>() {
        const T value = *(const T *)to;
#pragma omp simd
        for (int64_t i = 1; i < n; i++) ((T *)to)[i] = value;
    });
}

void gather_run(const char *from, int64_t stride, int64_t n, int64_t size, char *to)
{
    if (stride == size) {
        memcpy(to, from, (size_t)(n * size));
        return;
    }
    if (stride == 0) {
        memcpy(to, from, (size_t)size);
        return repeat_element(to, size, n);
    }
    by_size(size, [&]<class T>() {
        for (int64_t i = 0; i < n; i++) ((T *)to)[i] = *(const T *)(from + i * stride);
    });
}

void scatter_run(const char *from, char *to, int64_t stride, int64_t n, int64_t size)
{
    if (stride == size) {
        memcpy(to, from, (size_t)(n * size));
        return;
    }
    by_size(size, [&]<class T>() {
        for (int64_t i = 0; i < n; i++) *(T *)(to + i * stride) = ((const T *)from)[i];
    });
}

void copy_run(char *const *data, const int64_t *stride, int64_t n, int64_t size)
{
    if (n <= 0) return;
    if (stride[0] == size) return gather_run(data[1], stride[1], n, size, data[0]);
    if (stride[1] == size) return scatter_run(data[1], data[0], stride[0], n, size);
    by_size(size, [&]<class T>() {
        for (int64_t i = 0; i < n; i++)
            *(T *)(data[0] + i * stride[0]) = *(const T *)(data[1] + i * stride[1]);
    });
}

void widen_run(yoke_dtype dtype, const void *from, int64_t n, float *to)
{
    switch (dtype) {
#define YOKE_WIDEN(value, type) \
    case value:                 \
        return kernels::convert_span((const type *)from, n, to);
        YOKE_NARROW_TYPES(YOKE_WIDEN)
#undef YOKE_WIDEN
        default:
            break;  // no loop has another
    }
}

void narrow_run(yoke_dtype dtype, const float *from, int64_t n, void *to)
{
    switch (dtype) {
#define YOKE_NARROW(value, type) \
    case value:                  \
        return kernels::convert_span(from, n, (type *)to);
        YOKE_NARROW_TYPES(YOKE_NARROW)
#undef YOKE_NARROW
        default:
            break;
    }
}

static bool is_narrow_dtype(yoke_dtype dtype)
{
    switch (dtype) {
#define YOKE_IS_NARROW(value, type) case value:
        YOKE_NARROW_TYPES(YOKE_IS_NARROW)
#undef YOKE_IS_NARROW
        return true;
        default:
            return false;
    }
}

const void *load_elements(yoke_dtype dtype, const char *from, int64_t stride, int64_t n,
                          void *buffer)
{
    const int64_t size = dtype_size(dtype);
    if (!is_narrow_dtype(dtype)) {
        if (stride == size) return from;
        gather_run(from, stride, n, size, (char *)buffer);
        return buffer;
    }
    alignas(64) char raw[kMostElements * 2];
    if (stride != size) {
        gather_run(from, stride, n, size, raw);
        from = raw;
    }
    widen_run(dtype, from, n, (float *)buffer);
    return buffer;
}

void store_elements(yoke_dtype dtype, const void *from, char *to, int64_t stride, int64_t n)
{
    const int64_t size = dtype_size(dtype);
    if (!is_narrow_dtype(dtype)) return scatter_run((const char *)from, to, stride, n, size);
    if (stride == size) return narrow_run(dtype, (const float *)from, n, to);
    alignas(64) char raw[kMostElements * 2];
    narrow_run(dtype, (const float *)from, n, raw);
    scatter_run(raw, to, stride, n, size);
}

YOKE_SIMD_END
