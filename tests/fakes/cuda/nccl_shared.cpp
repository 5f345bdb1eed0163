// The memory file of a communicator. See nccl_shared.h.
#include "tests/fakes/cuda/nccl_shared.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <random>

namespace yoke::fake {
namespace {

// Places in the file: the board, a list of calls for each channel, and a part for each rank's data. The file is huge
// and takes memory only for what was written.
constexpr uint64_t kPage = 4096, kLists = uint64_t{1} << 50, kList = uint64_t{1} << 36,
                   kBrought = uint64_t{1} << 52, kOfRank = uint64_t{1} << 44,
                   kEnd = uint64_t{1} << 53;
constexpr char kMagic[] = "fake nccl id";

// Contents of an id.
struct Place {
    char magic[sizeof kMagic];
    int process, file;
    uint64_t cookie;
};
static_assert(sizeof(Place) <= sizeof(ncclUniqueId));

// Files of ids made in this process, by cookie, until all ranks have opened the file.
struct Made {
    std::mutex mutex;
    std::map<uint64_t, int> files;
};
Made &made()
{
    static Made *const only = new Made;
    return *only;
}

uint64_t place_of(int rank, int channel, uint64_t sequence)
{
    const uint64_t list = static_cast<uint64_t>(rank) * kChannels + static_cast<uint64_t>(channel);
    return kLists + list * kList + sequence * sizeof(Posted);
}

void write_all(int file, const void *bytes, uint64_t count, uint64_t offset)
{
    for (uint64_t done = 0; done < count;) {
        const ssize_t wrote = pwrite(file, static_cast<const char *>(bytes) + done, count - done,
                                     static_cast<off_t>(offset + done));
        if (wrote <= 0) {
            perror("fake NCCL: the shared memory cannot be written");
            abort();
        }
        done += static_cast<uint64_t>(wrote);
    }
}

Board *map_board(int file)
{
    void *const place = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    return place == MAP_FAILED ? nullptr : static_cast<Board *>(place);
}

}  // namespace

View::View(int file, uint64_t offset, uint64_t bytes) : bytes_(bytes)
{
    if (!bytes) return;
    data_ = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, static_cast<off_t>(offset));
    if (data_ != MAP_FAILED) return;
    perror("fake NCCL: the shared memory cannot be read");
    abort();
}

View::~View()
{
    if (data_) munmap(data_, bytes_);
}

bool Shared::make(ncclUniqueId &id)
{
    const int file = memfd_create("fake_nccl", MFD_CLOEXEC);
    if (file < 0) return false;
    Board *const board = ftruncate(file, static_cast<off_t>(kEnd)) ? nullptr : map_board(file);
    if (!board) {
        close(file);
        return false;
    }
    std::random_device random;
    Place place{{}, getpid(), file, uint64_t{random()} << 32 | random() | 1};
    memcpy(place.magic, kMagic, sizeof kMagic);
    board->cookie = place.cookie;
    munmap(board, sizeof *board);
    memset(&id, 0, sizeof id);
    memcpy(&id, &place, sizeof place);
    const std::lock_guard lock(made().mutex);
    made().files[place.cookie] = file;
    return true;
}

std::unique_ptr<Shared> Shared::open(const ncclUniqueId &id, int rank)
{
    Place place;
    memcpy(&place, &id, sizeof place);
    if (memcmp(place.magic, kMagic, sizeof kMagic) != 0) return nullptr;
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", place.process, place.file);
    const int file = ::open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) return nullptr;
    // Another file may have this number by now, and be shorter than a board.
    const bool is_whole = lseek(file, 0, SEEK_END) == static_cast<off_t>(kEnd);
    Board *const board = is_whole ? map_board(file) : nullptr;
    if (board && board->cookie == place.cookie)
        return std::unique_ptr<Shared>(new Shared(file, board, rank, place.cookie));
    if (board) munmap(board, sizeof *board);
    close(file);
    return nullptr;
}

Shared::Shared(int file, Board *board, int rank, uint64_t cookie)
    : file_(file),
      rank_(rank),
      board_(board),
      cookie_(cookie),
      end_(kBrought + static_cast<uint64_t>(rank) * kOfRank)
{
}

Shared::~Shared()
{
    munmap(board_, sizeof *board_);
    close(file_);
}

void Shared::release_id() const
{
    const std::lock_guard lock(made().mutex);
    const auto found = made().files.find(cookie_);
    if (found == made().files.end()) return;
    close(found->second);
    made().files.erase(found);
}

void Shared::post(int channel, Posted call, const void *bytes)
{
    const std::lock_guard lock(mutex_);
    std::atomic<uint64_t> &posted = board_->ranks[rank_].posted[channel];
    const uint64_t sequence = posted.load(std::memory_order_relaxed);
    call.offset = end_;
    write_all(file_, bytes, call.bytes, call.offset);
    write_all(file_, &call, sizeof call, place_of(rank_, channel, sequence));
    if (call.bytes) own_.push_back({channel, sequence, call.offset, call.bytes});
    end_ += (call.bytes + kPage - 1) / kPage * kPage;
    posted.store(sequence + 1, std::memory_order_release);
}

bool Shared::has(int rank, int channel, uint64_t sequence) const
{
    return board_->ranks[rank].posted[channel].load(std::memory_order_acquire) > sequence;
}

Posted Shared::read(int rank, int channel, uint64_t sequence) const
{
    Posted call{};
    const auto place = static_cast<off_t>(place_of(rank, channel, sequence));
    if (pread(file_, &call, sizeof call, place) == sizeof call) return call;
    perror("fake NCCL: the shared memory cannot be read");
    abort();
}

void Shared::take(int channel)
{
    board_->ranks[rank_].taken[channel].fetch_add(1, std::memory_order_release);
}

bool Shared::is_taken(const Own &call) const
{
    const auto has_taken = [&](int rank, int channel) {
        return board_->ranks[rank].taken[channel].load(std::memory_order_acquire) > call.sequence;
    };
    if (call.channel < kReceiveFrom) return has_taken(call.channel - kSendTo, kReceiveFrom + rank_);
    for (int rank = 0; rank < board_->size; ++rank)
        if (!has_taken(rank, call.channel)) return false;
    return true;
}

void Shared::reclaim()
{
    const std::lock_guard lock(mutex_);
    for (; !own_.empty() && is_taken(own_.front()); own_.pop_front())
        fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  static_cast<off_t>(own_.front().offset),
                  static_cast<off_t>((own_.front().bytes + kPage - 1) / kPage * kPage));
}

}  // namespace yoke::fake
