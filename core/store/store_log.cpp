#include "core/store/store_log.h"

#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/store/store_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>

namespace yoke {

namespace {

struct Head {
    uint32_t check;  // checksum of the rest
    uint32_t change;
    uint32_t key_bytes, value_bytes;
};

// Bytes of the file used only as locks.
constexpr off_t kPresence = off_t{1} << 40, kWriting = kPresence + 1;

// Tries to lock a byte of the open file, or to unlock the byte, and returns whether that succeeded. Such a lock
// belongs to the open file, so threads and forked children do not share it by mistake.
bool try_lock(int fd, off_t byte, short kind)
{
    struct flock wanted {};
    wanted.l_type = kind;
    wanted.l_whence = SEEK_SET;
    wanted.l_start = byte;
    wanted.l_len = 1;
    return fcntl(fd, F_OFD_SETLK, &wanted) == 0;
}

uint32_t check_of(const Head &head, std::string_view body)
{
    uint32_t hash = 0x811c9dc5;  // FNV-1a
    const auto mix = [&](std::string_view bytes) {
        for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x01000193;
    };
    mix({reinterpret_cast<const char *>(&head.change), sizeof head - sizeof head.check});
    mix(body);
    return hash;
}

std::string encode(StoreLog::Change change, std::string_view key, std::string_view value)
{
    std::string body(key);
    body += value;
    Head head{0, static_cast<uint32_t>(change), static_cast<uint32_t>(key.size()),
              static_cast<uint32_t>(value.size())};
    head.check = check_of(head, body);
    return std::string(reinterpret_cast<const char *>(&head), sizeof head) + body;
}

}  // namespace

StoreLog::StoreLog(std::string path, const std::string &run, Deadline deadline)
    : path_(std::move(path))
{
    constexpr double kPause = 0.001;
    while (!open(run)) {
        if (deadline.has_passed())
            fail(
                YOKE_E_TIMEOUT,
                "the store's file '%s' could not be opened within %g s: another process keeps it locked; check whether a process of the job is stopped",
                path_.c_str(), deadline.given_s());
        sleep_until(deadline.within(kPause));
    }
}

// Opens the file. The first process begins a new log; other processes join. Returns false if another process is
// opening the file, or has just removed it. Raises YOKE_E_COMM if the file belongs to a living job of another name.
bool StoreLog::open(const std::string &run)
{
    constexpr mode_t kOwner = 0600;
    file_ =
        Socket::adopt([&] { return ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kOwner); });
    if (!file_.present()) fail_io("opened");
    const bool is_alone = try_lock(file_.fd(), kPresence, F_WRLCK);
    if (!is_alone && !try_lock(file_.fd(), kPresence, F_RDLCK)) return false;
    struct stat found {};
    if (fstat(file_.fd(), &found) != 0) fail_io("inspected");
    if (found.st_nlink == 0) return false;
    if (!is_alone) return check_run(run), true;
    if (found.st_size) check_ours();
    if (ftruncate(file_.fd(), 0) != 0) fail_io("emptied");
    append(Change::kRun, "run", run);
    return try_lock(file_.fd(), kPresence, F_RDLCK);
}

// Raises YOKE_E_IO if the file's contents are not Yoke's. A file left over from a former job is reused.
void StoreLog::check_ours()
{
    bool is_ours = false;
    read_on([&](Change change, std::string_view, std::string_view) {
        is_ours |= change == Change::kRun;
    });
    read_ = 0;
    if (!is_ours)
        fail(YOKE_E_IO, "the store's file '%s' has data that Yoke did not write; give another path",
             path_.c_str());
}

void StoreLog::check_run(const std::string &run)
{
    std::string other;
    bool is_there = false;
    read_on([&](Change change, std::string_view, std::string_view value) {
        if (change != Change::kRun) return;
        is_there = true;
        other = value;
    });
    read_ = 0;
    if (is_there && other == run) return;
    fail(
        YOKE_E_COMM,
        "the store's file '%s' is in use by running processes of another job, '%s' (this job is '%s'); give each job its own file",
        path_.c_str(), other.c_str(), run.c_str());
}

StoreLog::~StoreLog()
{
    // A process that waits to open the file sees that the name has gone, and makes a new file.
    if (is_open() && try_lock(file_.fd(), kPresence, F_WRLCK)) unlink(path_.c_str());
}

void StoreLog::fail_io(const char *what) const
{
    const int failure = errno;
    fail(YOKE_E_IO, "the store's file '%s' cannot be %s: %s; %s", path_.c_str(), what,
         strerror(failure),
         is_shortage(failure) ? "see ulimit -n" : "give a path that all ranks may write");
}

bool StoreLog::read_on(const OnChange &on_change)
{
    struct stat found {};
    if (fstat(file_.fd(), &found) != 0) fail_io("inspected");
    const uint64_t end = static_cast<uint64_t>(found.st_size);
    if (end <= read_) return false;
    std::string bytes(end - read_, '\0');
    const ssize_t got = pread(file_.fd(), bytes.data(), bytes.size(), static_cast<off_t>(read_));
    if (got < 0) fail_io("read");
    std::string_view left(bytes.data(), static_cast<size_t>(got));
    Head head{};
    while (left.size() >= sizeof head) {
        memcpy(&head, left.data(), sizeof head);
        const uint64_t length = uint64_t{head.key_bytes} + head.value_bytes;
        if (left.size() - sizeof head < length) break;  // half written
        const std::string_view body = left.substr(sizeof head, length);
        if (check_of(head, body) != head.check) break;
        on_change(static_cast<Change>(head.change), body.substr(0, head.key_bytes),
                  body.substr(head.key_bytes));
        left.remove_prefix(sizeof head + length);
        read_ += sizeof head + length;
    }
    return true;
}

bool StoreLog::lock(Deadline deadline)
{
    if (try_lock(file_.fd(), kWriting, F_WRLCK)) return true;
    if (deadline.has_passed())
        fail(
            YOKE_E_TIMEOUT,
            "the store's file '%s' stayed locked for %g s; check whether a process that writes it is stopped",
            path_.c_str(), deadline.given_s());
    return false;
}

void StoreLog::unlock() noexcept
{
    try_lock(file_.fd(), kWriting, F_UNLCK);
}

void StoreLog::append(Change change, std::string_view key, std::string_view value)
{
    const std::string bytes = encode(change, key, value);
    if (read_ + bytes.size() > kLongestStoreFile)
        fail(YOKE_E_VALUE, "the store's file '%s' would have more than %zu bytes with '%s'",
             path_.c_str(), kLongestStoreFile, std::string(key).c_str());
    // Cuts off the rest left by a killed writer. The rest is incomplete, so no process has read it.
    if (ftruncate(file_.fd(), static_cast<off_t>(read_)) != 0) fail_io("cut");
    const ssize_t written =
        pwrite(file_.fd(), bytes.data(), bytes.size(), static_cast<off_t>(read_));
    if (written != static_cast<ssize_t>(bytes.size())) fail_io("written");
}

}  // namespace yoke
