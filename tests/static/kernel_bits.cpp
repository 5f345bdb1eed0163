// Hash over all parts of kernels/common that must give equal bits on every compiler, ISA level and optimisation:
// random numbers, conversions, sums. check_kernel_bits.py builds this program many times and compares the outputs.
#include <cstdio>

#include "kernels/common/philox.h"
#include "kernels/common/reduce.h"

using namespace yoke::kernels;

static uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a

static void take(const void *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; ++i)
        hash = (hash ^ ((const unsigned char *)data)[i]) * 0x100000001b3u;
}

template <class T>
static T buffer[1 << 16];

constexpr int64_t kCount = 1 << 16;

template <class T, class Distribution>
static void take_draw(const Distribution &distribution)
{
    random_fill(distribution, 0x0123456789abcdefu, 77, 0, kCount, buffer<T>);
    take(buffer<T>, sizeof(buffer<T>));
}

// Floats of every exponent, NaN included, to each narrower type.
template <class To>
static void take_conversion()
{
    for (int64_t i = 0; i < kCount; ++i)
        buffer<float>[i] = bit_cast<float>((uint32_t)i * 65537u + 4321u);
    convert_span(buffer<float>, kCount, buffer<To>);
    take(buffer<To>, sizeof(buffer<To>));
}

int main()
{
    take_draw<float>(Uniform<float>());
    take_draw<double>(Uniform<double>());
    take_draw<float>(UniformBetween<float>(-3, 5));
    take_draw<f16>(UniformBetween<f16>(-3, 5));
    take_draw<float>(ScaledNormal<float>{2, 3});
    take_draw<float>(Exponential<float>{3});
    take_draw<double>(Exponential<double>{3});
    take_draw<float>(StandardNormal<float>());
    float sum = reduce_span(Sum<float>(), buffer<float>, 1, kCount - 5);
    take_draw<bf16>(StandardNormal<bf16>());
    take_draw<double>(StandardNormal<double>());
    take_draw<int64_t>(UniformInteger{-1000, 1000000007});
    take_draw<bool>(Keep::dropping(0.1));
    take(&sum, sizeof(sum));
    take_conversion<f16>();
    take_conversion<bf16>();
    take_conversion<int32_t>();
    take_conversion<uint8_t>();
    take_conversion<int64_t>();
    for (int64_t i = 0; i < kCount; ++i) buffer<f16>[i].bits = (uint16_t)i;
    convert_span(buffer<f16>, kCount, buffer<float>);
    take(buffer<float>, sizeof(buffer<float>));
    printf("%016llx\n", (unsigned long long)hash);
}
