#include "elements.h"

#include <cmath>

namespace yoke_python {
namespace {

template <class T>
T load(const void *at)
{
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

double from_half(uint16_t bits)
{
    const int exponent = bits >> 10 & 31;
    const int fraction = bits & 1023;
    double value;
    if (exponent == 31)
        value = fraction ? NAN : INFINITY;
    else
        value = exponent ? std::ldexp(1024 + fraction, exponent - 25) : std::ldexp(fraction, -24);
    return bits & 0x8000 ? -value : value;
}

double from_bfloat(uint16_t bits)
{
    const uint32_t wide = static_cast<uint32_t>(bits) << 16;
    return load<float>(&wide);
}

double from_e4m3(uint8_t bits)
{
    const int exponent = bits >> 3 & 15, fraction = bits & 7;
    double value;
    if (exponent == 15 && fraction == 7)
        value = NAN;
    else
        value = exponent ? std::ldexp(8 + fraction, exponent - 10) : std::ldexp(fraction, -9);
    return bits & 0x80 ? -value : value;
}

struct Format {
    char letter;
    char kind;  // 'f' float, 'i' signed, 'u' unsigned, 'b' truth
};

// Letters whose size depends on the platform are told apart by the size of their element.
const Format kFormats[] = {
    {'d', 'f'}, {'f', 'f'}, {'e', 'f'}, {'b', 'i'}, {'h', 'i'}, {'i', 'i'},
    {'l', 'i'}, {'q', 'i'}, {'n', 'i'}, {'B', 'u'}, {'?', 'b'},
};

}  // namespace

PyObject *read_element(yoke_dtype dtype, const void *at)
{
    switch (dtype) {
        case YOKE_F64:
            return PyFloat_FromDouble(load<double>(at));
        case YOKE_F32:
            return PyFloat_FromDouble(load<float>(at));
        case YOKE_F16:
            return PyFloat_FromDouble(from_half(load<uint16_t>(at)));
        case YOKE_BF16:
            return PyFloat_FromDouble(from_bfloat(load<uint16_t>(at)));
        case YOKE_I64:
            return PyLong_FromLongLong(load<int64_t>(at));
        case YOKE_I32:
            return PyLong_FromLong(load<int32_t>(at));
        case YOKE_I8:
            return PyLong_FromLong(load<int8_t>(at));
        case YOKE_U8:
            return PyLong_FromLong(load<uint8_t>(at));
        case YOKE_BOOL:
            return PyBool_FromLong(load<uint8_t>(at));
        case YOKE_F8_E4M3:
            return PyFloat_FromDouble(from_e4m3(load<uint8_t>(at)));
        case YOKE_F8_E5M2:
            return PyFloat_FromDouble(from_half(static_cast<uint16_t>(load<uint8_t>(at) << 8)));
        default:
            return raise_error(YOKE_E_UNSUPPORTED, "tolist", "dtype %d has no Python number",
                               dtype);
    }
}

const char *buffer_format(yoke_dtype dtype)
{
    switch (dtype) {
        case YOKE_F64:
            return "d";
        case YOKE_F32:
            return "f";
        case YOKE_F16:
            return "e";
        case YOKE_I64:
            return sizeof(long) == 8 ? "l" : "q";
        case YOKE_I32:
            return "i";
        case YOKE_I8:
            return "b";
        case YOKE_U8:
            return "B";
        case YOKE_BOOL:
            return "?";
        default:
            return nullptr;
    }
}

yoke_dtype buffer_dtype(const char *format, int64_t itemsize)
{
    if (!format) format = "B";  // what the protocol says null means
    if (*format == '@' || *format == '=' || *format == '<')
        format++;  // '<' is this machine's order
    if (!format[0] || format[1]) return YOKE_NONE;
    for (const Format &known : kFormats) {
        if (known.letter != format[0]) continue;
        switch (known.kind) {
            case 'f':
                return itemsize == 8 ? YOKE_F64 : itemsize == 4 ? YOKE_F32 : YOKE_F16;
            case 'i':
                return itemsize == 8   ? YOKE_I64
                       : itemsize == 4 ? YOKE_I32
                       : itemsize == 1 ? YOKE_I8
                                       : YOKE_NONE;
            case 'u':
                return YOKE_U8;
            default:
                return YOKE_BOOL;
        }
    }
    return YOKE_NONE;
}

}  // namespace yoke_python
