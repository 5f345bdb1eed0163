#include "kernels/cpu/comm/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>

namespace yoke::cpu::comm {

// Bit for each descriptor, in memory that the system gives at the first touch. A lock would not do: a fork may happen
// while another thread holds the lock. Linux hands out no number above 2^20, the default of fs.nr_open.
constexpr int kMostDescriptors = 1 << 20;
static std::atomic<uint64_t> g_ours[kMostDescriptors / 64];
static std::atomic<uint32_t> g_generation{0};

static void mark(int fd, bool is_ours)
{
    if (fd < 0 || fd >= kMostDescriptors) return;
    const uint64_t bit = uint64_t{1} << (fd % 64);
    if (is_ours)
        g_ours[fd / 64].fetch_or(bit);
    else
        g_ours[fd / 64].fetch_and(~bit);
}

// Mutex held during a fork; in the child, the mutex is free again. A recursive mutex would not do: only the locking
// thread may unlock such a mutex, and in a child this thread has another number.
static pthread_mutex_t g_unforked = PTHREAD_MUTEX_INITIALIZER;
static thread_local int g_depth = 0;

static void hold()
{
    if (g_depth++ == 0) pthread_mutex_lock(&g_unforked);
}

static void let_go()
{
    if (--g_depth == 0) pthread_mutex_unlock(&g_unforked);
}

[[maybe_unused]] static const int g_is_known = pthread_atfork(hold, let_go, let_go);

Unforked::Unforked()
{
    hold();
}

Unforked::~Unforked()
{
    const int failure = errno;
    let_go();
    errno = failure;
}

uint32_t generation()
{
    return g_generation.load(std::memory_order_relaxed);
}

void close_in_child()
{
    g_generation.fetch_add(1);
    const long most = sysconf(_SC_OPEN_MAX);
    const int words =
        (most > 0 && most < kMostDescriptors ? static_cast<int>(most) + 63 : kMostDescriptors) / 64;
    for (int word = 0; word < words; ++word)
        for (uint64_t bits = g_ours[word].exchange(0); bits; bits &= bits - 1)
            close(word * 64 + __builtin_ctzll(bits));
}

Descriptor &Descriptor::operator=(Descriptor &&other) noexcept
{
    if (this == &other) return *this;
    reset();
    fd_ = other.fd_;
    generation_ = other.generation_;
    other.fd_ = -1;
    return *this;
}

// Moves a descriptor above the standard streams. Otherwise output to a closed standard stream would go to a peer.
static int above_standard(int fd)
{
    if (fd < 0 || fd > STDERR_FILENO) return fd;
    const int moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    const int failure = errno;
    close(fd);
    errno = failure;
    return moved;
}

void Descriptor::reset(int fd)
{
    if (fd_ >= 0 && generation_ == generation()) {
        const Unforked unforked;
        mark(fd_, false);  // before another file can get the number
        close(fd_);
    }
    fd_ = above_standard(fd);
    generation_ = generation();
    mark(fd_, true);
}

}  // namespace yoke::cpu::comm
