#include "core/store/store_wire.h"

#include <bit>
#include <cstring>

namespace yoke::wire {

static_assert(std::endian::native == std::endian::little,
              "numbers are sent in the byte order of memory");

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

std::optional<Frame> receive_frame(int socket, size_t longest, Deadline deadline)
{
    Frame frame{};
    char *const head = reinterpret_cast<char *>(&frame.header);
    if (!receive_all(socket, head, sizeof frame.header, deadline) || frame.header.bytes > longest)
        return std::nullopt;
    frame.body.resize(frame.header.bytes);
    if (!receive_all(socket, frame.body.data(), frame.body.size(), deadline)) return std::nullopt;
    return frame;
}

std::string hello(const PeerOptions &options)
{
    return std::move(Writer(Kind::kHello, kMagic)
                         .number(kVersion)
                         .number(options.rank)
                         .text(options.cookie)
                         .text(options.about)
                         .number(options.start))
        .take();
}

}  // namespace yoke::wire
