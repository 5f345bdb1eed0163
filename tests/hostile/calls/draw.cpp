#include "draw.h"

#include <unistd.h>
#include <cmath>
#include <cstdarg>
#include <cstdlib>
#include <limits>
#include <utility>

namespace hostile {

namespace {

constexpr int64_t kExtremes[] = {INT64_MIN,
                                 INT64_MIN + 1,
                                 INT64_MAX,
                                 INT64_MAX - 1,
                                 int64_t{1} << 31,
                                 int64_t{1} << 32,
                                 int64_t{1} << 40,
                                 int64_t{1} << 62,
                                 INT32_MAX,
                                 INT32_MIN,
                                 -1,
                                 -2,
                                 -5,
                                 1 << 24,
                                 65536,
                                 1000};

}  // namespace

Draw::Draw(World &world, uint64_t seed, int64_t number, const char *name, std::string *text)
    : world_(world),
      state_(seed * 0xD1342543DE82EF95u + static_cast<uint64_t>(number) * 0x2545F4914F6CDD1Du + 1),
      name_(name),
      text_(text)
{
    if (text_) *text_ = std::string(name) + "(";
}

Draw::~Draw()
{
    for (void *memory : owned_) std::free(memory);
}

uint64_t Draw::bits()
{
    // SplitMix64: neighbouring seeds give unrelated numbers.
    uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

void Draw::show(const char *format, ...)
{
    if (!text_) return;
    char *piece = nullptr;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&piece, format, arguments) < 0) std::abort();
    va_end(arguments);
    *text_ += (shown_++ ? ", " : "") + std::string(piece);
    std::free(piece);
}

void Draw::open(const char *text)
{
    show("%s", text);
    shown_ = 0;
}

void Draw::close(const char *text)
{
    if (text_) *text_ += text;
    shown_ = 1;
}

void *Draw::bytes(size_t size)
{
    owned_.reserve(owned_.size() + 1);
    void *memory = std::malloc(size ? size : 1);
    if (!memory) throw NoRoom();
    owned_.push_back(memory);
    return memory;
}

void *Draw::freed_one()
{
    return world_.freed[below(world_.freed.size())];
}

int64_t Draw::extreme()
{
    const int64_t number = kExtremes[below(std::size(kExtremes))];
    // If memory cannot be limited, no size that the system might grant is drawn, and none with such a square.
    // Gibibytes take minutes to fill, or are more than the machine has.
    const bool might_be_granted = number >= 65536 && number < int64_t{1} << 44;
    return kSanitized && might_be_granted ? INT64_MAX : number;
}

int64_t Draw::int64()
{
    const uint64_t kind = below(16);
    int64_t number =
        kind < 12 ? static_cast<int64_t>(below(7)) - 2 : static_cast<int64_t>(below(40)) - 4;
    if (kind == 15) number = extreme();
    show("%lld", static_cast<long long>(number));
    return number;
}

int32_t Draw::int32()
{
    constexpr int32_t extremes[] = {INT32_MIN, INT32_MAX, -1, 1 << 16, 1024, 1025};
    const int32_t number =
        one_in(16) ? extremes[below(std::size(extremes))] : static_cast<int32_t>(below(6)) - 1;
    show("%d", number);
    return number;
}

uint32_t Draw::uint32()
{
    const uint32_t number = one_in(8) ? ~0u : static_cast<uint32_t>(below(4));
    show("%uu", number);
    return number;
}

double Draw::real()
{
    constexpr double odd[] = {0,     -0.0,   1,      -1,   0.5,   2,   1e-5, 0.9,
                              1e308, -1e308, 5e-324, 1e30, 1e-30, 0.1, 3,    1e18};
    double number = odd[below(std::size(odd))];
    const uint64_t kind = below(12);
    if (kind == 0) number = std::numeric_limits<double>::quiet_NaN();
    if (kind == 1) number = std::numeric_limits<double>::infinity();
    if (kind == 2) number = -std::numeric_limits<double>::infinity();
    if (std::isfinite(number))
        show("%.17g", number);
    else
        show("%s", std::isnan(number) ? "NAN" : number > 0 ? "INFINITY" : "-INFINITY");
    return number;
}

yoke_dtype Draw::dtype()
{
    constexpr yoke_dtype usual[] = {YOKE_F32, YOKE_F16, YOKE_BF16, YOKE_F64, YOKE_I64, YOKE_NONE};
    const uint64_t kind = below(16);
    if (kind == 0) return int32();
    const yoke_dtype drawn = kind < 10 ? usual[below(std::size(usual))]
                                       : static_cast<yoke_dtype>(below(YOKE_DTYPE_COUNT));
    show("%d", drawn);
    return drawn;
}

void *Draw::native()
{
    const uintptr_t number = one_in(3) ? 1 + below(2) : 0;
    show("(void *)%llu", static_cast<unsigned long long>(number));
    return reinterpret_cast<void *>(number);
}

void Draw::announce()
{
    if (text_) {
        *text_ += ");\n";  // written before the call, which may be the last
        if (::write(STDOUT_FILENO, text_->data(), text_->size()) < 0) std::abort();
    }
    message_before_ = yoke_last_error()->message;
}

void Draw::finish(yoke_status status)
{
    if (status != YOKE_OK) return failed(status);
    ++world_.succeeded;
    if (yoke_last_error()->message != message_before_)
        throw Defect("succeeded and changed the last error");
    for (const Out &out : outs_)
        if (out.keep) out.keep(world_, out.place, *out.slot);
    for (int64_t i = 0; list_ && list_count_ && i < *list_count_ && i < list_capacity_; ++i)
        world_.put(any_place<yoke_tensor>(), list_[i]);
}

void Draw::failed(yoke_status status)
{
    const yoke_error *error = yoke_last_error();
    const std::string what = yoke_status_name(status);
    if (status < 0 || status > YOKE_E_INTERNAL)
        throw Defect("gave " + std::to_string(status) + ", which is no status");
    if (error->status != status)
        throw Defect("gave " + what + ", but the last error is " + yoke_status_name(error->status));
    if (!error->message || !*error->message) throw Defect("gave " + what + " without a message");
    if (!error->call || std::strcmp(error->call, name_) != 0)
        throw Defect("gave " + what + " in the name of " + (error->call ? error->call : "nobody"));
    if (status == YOKE_E_INTERNAL)
        throw Defect("gave an internal error: " + std::string(error->message));
    for (const Out &out : outs_)
        if (*out.slot)
            throw Defect("failed and left an output that is not NULL: " +
                         std::string(error->message));
    for (const Number &number : numbers_)
        for (size_t i = 0; !gives_list_ && i < number.size; ++i)
            if (static_cast<const unsigned char *>(number.at)[i] != 0x5A)
                throw Defect("failed and changed a number: " + std::string(error->message));
    for (int64_t i = 0; list_ && i < list_capacity_; ++i)
        if (list_[i])
            throw Defect("failed and left a tensor in its list: " + std::string(error->message));
}

}  // namespace hostile
