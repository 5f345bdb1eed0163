#include "core/state/read_file.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <utility>

namespace yoke {

namespace {

// Maximum bytes of a single read: the system gives little more.
constexpr size_t kMostAtOnce = size_t{1} << 30;

}  // namespace

MappedFile::~MappedFile()
{
    if (data_) file_calls().munmap(data_, bytes_);
}

ReadFile::ReadFile(const char *call, std::string path) : ReadFile(call, AT_FDCWD, std::move(path))
{
}

ReadFile::ReadFile(const char *call, const Descriptor &folder, std::string name)
    : ReadFile(call, folder.get(), std::move(name))
{
}

ReadFile::ReadFile(const char *call, int folder, std::string path)
    : call_(call), path_(std::move(path)), file_(opened(folder)), status_(status_of(file_))
{
}

Descriptor ReadFile::opened(int folder) const
{
    // O_NONBLOCK: a pipe without a writer must be refused, and its open must not hang before.
    Descriptor file(file_calls().open(folder, path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0));
    if (!file.is_open()) fail_io(call_, "open", path_, errno);
    return file;
}

ReadFile::Status ReadFile::status_of(const Descriptor &file) const
{
    struct stat status {};
    if (file_calls().file_status(file.get(), &status) != 0) fail_io(call_, "read", path_, errno);
    if (S_ISDIR(status.st_mode)) fail_io(call_, "read", path_, EISDIR);
    if (!S_ISREG(status.st_mode))
        throw Error(YOKE_E_IO,
                    format("%s: '%s' is not a regular file; write the data to a file first", call_,
                           path_.c_str()),
                    EINVAL);
    return {static_cast<uint64_t>(status.st_size), status.st_dev, status.st_ino};
}

void ReadFile::rest()
{
    file_.close();
}

const Descriptor &ReadFile::awake(Descriptor &again) const
{
    if (file_.is_open()) return file_;
    again = opened(AT_FDCWD);
    if (!(status_of(again) == status_))
        throw Error(YOKE_E_IO,
                    format("%s: another file replaced '%s' during the read; load again", call_,
                           path_.c_str()),
                    ESTALE);
    return again;
}

void ReadFile::read(uint64_t from, void *to, size_t bytes) const
{
    auto *at = static_cast<char *>(to);
    Descriptor again;
    const Descriptor &file = awake(again);
    for (size_t done = 0; done < bytes;) {
        const ssize_t got =
            file_calls().pread(file.get(), at + done, std::min(bytes - done, kMostAtOnce),
                               static_cast<off_t>(from + done));
        if (got < 0) fail_io(call_, "read", path_, errno);
        if (got == 0)
            throw Error(
                YOKE_E_IO,
                format(
                    "%s: '%s' ends early, at byte %llu of the %llu to read; write or fetch the file again",
                    call_, path_.c_str(), static_cast<unsigned long long>(from + done),
                    static_cast<unsigned long long>(from + bytes)),
                EIO);
        done += static_cast<size_t>(got);
    }
}

std::shared_ptr<MappedFile> ReadFile::map() const
{
    if (size() == 0) return std::make_shared<MappedFile>(nullptr, 0);
    Descriptor again;
    const Descriptor &file = awake(again);
    // MAP_NORESERVE: no memory is reserved for later writes, so a file may be larger than the machine's memory.
    void *data =
        file_calls().mmap(size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file.get());
    if (data == MAP_FAILED) return nullptr;
    return std::make_shared<MappedFile>(data, size());
}

}  // namespace yoke
