#include "bindings/python/src/values/elements.h"

#include "bindings/python/src/values/dtypes.inc"

#include <algorithm>
#include <cmath>

namespace yoke_python {
namespace {

template <class T>
T load_element(const void *at)
{
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

struct DtypeFacts {
    yoke_dtype dtype;
    char kind;  // 'f' float, 'i' signed, 'u' unsigned, 'b' truth
    uint8_t bits;
    uint8_t exponent;  // bits of a float's exponent, and of its fraction
    uint8_t fraction;
    bool is_finite;  // has no infinity: the largest pattern is NaN
    const char *letter;
    const char *array_type;
};

const DtypeFacts kDtypes[] = {{YOKE_NONE, '?', 0, 0, 0, false, nullptr, nullptr},
#define YOKE_FACTS(dtype, kind, bits, exponent, fraction, is_finite, letter, array_type) \
    {dtype, kind, bits, exponent, fraction, is_finite, letter, array_type},
                              YOKE_PY_DTYPES(YOKE_FACTS)
#undef YOKE_FACTS
};

const DtypeFacts &facts_of(yoke_dtype dtype)
{
    return kDtypes[dtype > 0 && dtype < YOKE_DTYPE_COUNT ? dtype : YOKE_NONE];
}

// Returns the value of a float of 8 or 16 bits.
double from_narrow(unsigned bits, const DtypeFacts &facts)
{
    const int fraction_bits = facts.fraction, bias = (1 << (facts.exponent - 1)) - 1;
    const int exponent = static_cast<int>(bits >> fraction_bits) & ((1 << facts.exponent) - 1);
    const int fraction = static_cast<int>(bits) & ((1 << fraction_bits) - 1);
    const bool is_last = exponent == (1 << facts.exponent) - 1;
    double value;
    if (is_last && (!facts.is_finite || fraction == (1 << fraction_bits) - 1))
        value = fraction ? NAN : INFINITY;
    else
        value = std::ldexp(exponent ? (1 << fraction_bits) + fraction : fraction,
                           std::max(exponent, 1) - bias - fraction_bits);
    return bits >> (facts.bits - 1) & 1 ? -value : value;
}

// Returns the bits of an element, with zeros above.
uint64_t bits_at(const void *at, int bits)
{
    uint64_t value = 0;
    std::memcpy(&value, at, static_cast<size_t>(bits) / 8);
    return value;
}

double float_at(const void *at, const DtypeFacts &facts)
{
    return facts.bits == 64   ? load_element<double>(at)
           : facts.bits == 32 ? load_element<float>(at)
                              : from_narrow(static_cast<unsigned>(bits_at(at, facts.bits)), facts);
}

// Letters. On some platforms two letters mean the same class, with different sizes of the element.
struct Format {
    char letter;
    char kind;  // as in the facts
};

const Format kFormats[] = {
    {'d', 'f'}, {'f', 'f'}, {'e', 'f'}, {'b', 'i'}, {'h', 'i'}, {'i', 'i'}, {'l', 'i'}, {'q', 'i'},
    {'n', 'i'}, {'B', 'u'}, {'H', 'u'}, {'I', 'u'}, {'L', 'u'}, {'Q', 'u'}, {'N', 'u'}, {'?', 'b'},
};

}  // namespace

PyObject *read_element(yoke_dtype dtype, const void *at)
{
    const DtypeFacts &facts = facts_of(dtype);
    const int above = 64 - facts.bits;
    switch (facts.kind) {
        case 'f':
            return PyFloat_FromDouble(float_at(at, facts));
        case 'i':
            return PyLong_FromLongLong(static_cast<int64_t>(bits_at(at, facts.bits) << above) >>
                                       above);
        case 'u':
            return PyLong_FromUnsignedLongLong(bits_at(at, facts.bits));
        case 'b':
            return PyBool_FromLong(load_element<uint8_t>(at));
        default:
            return raise_error(YOKE_E_UNSUPPORTED, "tolist", "dtype %d has no Python number",
                               dtype);
    }
}

bool is_floating(yoke_dtype dtype)
{
    return facts_of(dtype).kind == 'f';
}

const char *buffer_format(yoke_dtype dtype)
{
    static_assert(sizeof(long) == 8, "the letter of int64 is \"l\" in the table");
    return facts_of(dtype).letter;
}

const char *array_type(yoke_dtype dtype)
{
    return facts_of(dtype).array_type;
}

const char *conversion_of(const char *format)
{
    while (*format && std::strchr("@=<>!", *format)) format++;
    if (*format == 'Z') return ".real";
    if (*format == 'd' || *format == 'g') return ".astype(\"float64\")";
    for (const Format &known : kFormats)
        if (known.letter == *format && (known.kind == 'i' || known.kind == 'u'))
            return ".astype(\"int64\")";
    return ".astype(\"float32\")";
}

yoke_dtype buffer_dtype(const char *format, int64_t itemsize)
{
    if (!format) format = "B";  // the protocol's meaning of null
    if (*format == '@' || *format == '=' || *format == '<')
        format++;  // '<' is this machine's order
    if (!format[0] || format[1]) return YOKE_NONE;
    for (const Format &known : kFormats) {
        if (known.letter != format[0]) continue;
        for (const DtypeFacts &facts : kDtypes)
            if (facts.kind == known.kind && facts.bits == itemsize * 8 && facts.letter)
                return facts.dtype;
    }
    return YOKE_NONE;
}

}  // namespace yoke_python
