// Elements of each dtype from numbers, and back.
#include <cstring>

#include "kernels/common/numeric.h"
#include "ranks.h"

namespace yoke::test {

using namespace kernels;

const std::vector<yoke_dtype> kDtypes = {YOKE_F64,  YOKE_F32,     YOKE_F16,    YOKE_BF16,
                                         YOKE_I64,  YOKE_I32,     YOKE_I8,     YOKE_U8,
                                         YOKE_BOOL, YOKE_F8_E4M3, YOKE_F8_E5M2};

size_t size_of(yoke_dtype dtype)
{
    switch (dtype) {
        case YOKE_F64:
        case YOKE_I64:
            return 8;
        case YOKE_F32:
        case YOKE_I32:
            return 4;
        case YOKE_F16:
        case YOKE_BF16:
            return 2;
        default:
            return 1;
    }
}

namespace {

template <class T>
void put(std::string &bytes, T value)
{
    bytes.append(reinterpret_cast<const char *>(&value), sizeof value);
}

template <class T>
T get(const char *place)
{
    T value;
    memcpy(&value, place, sizeof value);
    return value;
}

void put_one(std::string &bytes, yoke_dtype dtype, double x)
{
    switch (dtype) {
        case YOKE_F64:
            return put(bytes, x);
        case YOKE_F32:
            return put(bytes, static_cast<float>(x));
        case YOKE_F16:
            return put(bytes, f32_to_f16(static_cast<float>(x)));
        case YOKE_BF16:
            return put(bytes, f32_to_bf16(static_cast<float>(x)));
        case YOKE_F8_E4M3:
            return put(bytes, f32_to_small<f8_e4m3>(static_cast<float>(x)));
        case YOKE_F8_E5M2:
            return put(bytes, f32_to_small<f8_e5m2>(static_cast<float>(x)));
        case YOKE_I64:
            return put(bytes, static_cast<int64_t>(x));
        case YOKE_I32:
            return put(bytes, static_cast<int32_t>(x));
        case YOKE_I8:
            return put(bytes, static_cast<int8_t>(x));
        case YOKE_BOOL:
            return put(bytes, static_cast<uint8_t>(x != 0));
        default:
            return put(bytes, static_cast<uint8_t>(x));
    }
}

double get_one(yoke_dtype dtype, const char *place)
{
    switch (dtype) {
        case YOKE_F64:
            return get<double>(place);
        case YOKE_F32:
            return static_cast<double>(get<float>(place));
        case YOKE_F16:
            return static_cast<double>(f16_to_f32(get<f16>(place)));
        case YOKE_BF16:
            return static_cast<double>(bf16_to_f32(get<bf16>(place)));
        case YOKE_F8_E4M3:
            return static_cast<double>(small_to_f32(get<f8_e4m3>(place)));
        case YOKE_F8_E5M2:
            return static_cast<double>(small_to_f32(get<f8_e5m2>(place)));
        case YOKE_I64:
            return static_cast<double>(get<int64_t>(place));
        case YOKE_I32:
            return get<int32_t>(place);
        case YOKE_I8:
            return get<int8_t>(place);
        default:
            return get<uint8_t>(place);
    }
}

}  // namespace

std::string encode(yoke_dtype dtype, const std::vector<double> &values)
{
    std::string bytes;
    bytes.reserve(values.size() * size_of(dtype));
    for (const double x : values) put_one(bytes, dtype, x);
    return bytes;
}

std::vector<double> decode(yoke_dtype dtype, const std::string &bytes)
{
    std::vector<double> values;
    for (size_t at = 0; at < bytes.size(); at += size_of(dtype))
        values.push_back(get_one(dtype, bytes.data() + at));
    return values;
}

}  // namespace yoke::test
