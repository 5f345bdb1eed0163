#include "core/base/store_wire.h"

#include <bit>
#include <cstring>

namespace yoke::wire {

static_assert(std::endian::native == std::endian::little, "numbers are sent as they lie in memory");

Writer::Writer(Kind kind, uint64_t request)
{
    const Header header{0, kind, request};
    bytes_.assign(reinterpret_cast<const char *>(&header), sizeof header);
}

Writer &Writer::text(std::string_view text)
{
    const auto length = static_cast<uint32_t>(text.size());
    bytes_.append(reinterpret_cast<const char *>(&length), sizeof length).append(text);
    return *this;
}

Writer &Writer::number(int64_t number)
{
    bytes_.append(reinterpret_cast<const char *>(&number), sizeof number);
    return *this;
}

Writer &Writer::request(uint64_t number)
{
    memcpy(bytes_.data() + offsetof(Header, number), &number, sizeof number);
    return *this;
}

std::string Writer::take() &&
{
    const auto length = static_cast<uint32_t>(bytes_.size() - sizeof(Header));
    memcpy(bytes_.data() + offsetof(Header, bytes), &length, sizeof length);
    return std::move(bytes_);
}

std::string Reader::text()
{
    uint32_t length = 0;
    is_whole_ = is_whole_ && left_.size() >= sizeof length;
    if (!is_whole_) return {};
    memcpy(&length, left_.data(), sizeof length);
    left_.remove_prefix(sizeof length);
    is_whole_ = left_.size() >= length;
    if (!is_whole_) return {};
    const std::string text(left_.substr(0, length));
    left_.remove_prefix(length);
    return text;
}

int64_t Reader::number()
{
    int64_t number = 0;
    is_whole_ = is_whole_ && left_.size() >= sizeof number;
    if (!is_whole_) return 0;
    memcpy(&number, left_.data(), sizeof number);
    left_.remove_prefix(sizeof number);
    return number;
}

}  // namespace yoke::wire
