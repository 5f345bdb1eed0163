#include "kernels/cpu/comm/shm.h"

#include <algorithm>

namespace yoke::cpu::comm {

// Bytes written between two looks of the reader. The reader works on the first bytes while the writer writes the next
// bytes.
constexpr size_t kPublishBytes = 64 << 10;

yoke_status Block::map(int fd, int ring)
{
    if (yoke_status status = map_shared(fd, 0, page_bytes(), &head_)) return status;
    return map_shared(fd, offset(ring), page_bytes(), &words_);
}

yoke_status Block::map_ring(int fd, int ring, Mapping *out) const
{
    return map_mirrored(fd, offset(ring) + page_bytes(), ring_bytes_, out);
}

size_t ShmLink::write(const iovec *parts, int count)
{
    size_t sent = 0, pending = 0, room = out_.room();
    for (int i = 0; i < count && room; ++i) {
        const char *from = static_cast<const char *>(parts[i].iov_base);
        for (size_t done = 0; done < parts[i].iov_len && room;) {
            const size_t bytes = std::min({parts[i].iov_len - done, room, kPublishBytes - pending});
            out_.put(from ? from + done : nullptr, bytes);
            done += bytes;
            sent += bytes;
            room -= bytes;
            pending += bytes;
            if (pending < kPublishBytes) continue;
            out_.publish();
            ring(theirs_.bell(), kForData, event_.get());
            pending = 0;
        }
    }
    if (pending) {
        out_.publish();
        ring(theirs_.bell(), kForData, event_.get());
    }
    return sent;
}

const char *ShmLink::peek(size_t bytes)
{
    return in_.available(bytes) >= bytes ? in_.data() : nullptr;
}

void ShmLink::consume(size_t bytes)
{
    in_.take(bytes);
    ring(theirs_.bell(), kForRoom, event_.get());
}

size_t ShmLink::read(char *to, size_t bytes)
{
    const size_t now = std::min(in_.available(1), bytes);
    if (!now) return 0;
    memcpy(to, in_.data(), now);
    consume(now);
    return now;
}

size_t ShmLink::skip(size_t bytes)
{
    const size_t now = std::min(in_.available(1), bytes);
    if (now) consume(now);
    return now;
}

}  // namespace yoke::cpu::comm
