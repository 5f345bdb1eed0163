#include "core/state/file_calls.h"

#include "core/state/lacks.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace yoke {

namespace {

int list(int folder, std::vector<std::string> *names)
{
    // A new descriptor, so that the folder's own descriptor keeps its position and stays open.
    const int file = above_standard(openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (file < 0) return -1;
    names->clear();
    DIR *entries = fdopendir(file);
    if (!entries) {
        close(file);
        return -1;
    }
    errno = 0;
    while (const dirent *entry = readdir(entries)) {
        const std::string_view name = entry->d_name;
        if (name != "." && name != "..") names->emplace_back(name);
    }
    const int error = errno;
    closedir(entries);
    errno = error;
    return error ? -1 : 0;
}

int exchange(int folder, const char *one, const char *other)
{
#ifdef RENAME_EXCHANGE
    return renameat2(folder, one, folder, other, RENAME_EXCHANGE);
#else
    errno = ENOSYS;
    return -1;
#endif
}

int real_path(const char *path, std::string *to)
{
    char *found = realpath(path, nullptr);
    if (!found) return -1;
    *to = found;
    free(found);
    return 0;
}

int start_sync(int file, uint64_t from, uint64_t bytes)
{
#ifdef SYNC_FILE_RANGE_WRITE
    return sync_file_range(file, static_cast<off64_t>(from), static_cast<off64_t>(bytes),
                           SYNC_FILE_RANGE_WRITE);
#else
    errno = ENOSYS;
    return -1;
#endif
}

}  // namespace

template <class Result, class... Args>
Result FileCall<Result(Args...)>::operator()(Args... args) const
{
    Result result = call_(args...);
    while (result < 0 && errno == EINTR) result = call_(args...);
    return result;
}
template class FileCall<int(int, const char *, int, mode_t)>;
template class FileCall<int(int, const char *, struct stat *, int)>;
template class FileCall<int(int, struct stat *)>;
template class FileCall<ssize_t(int, const char *, char *, size_t)>;
template class FileCall<int(int, mode_t)>;
template class FileCall<ssize_t(int, void *, size_t, off_t)>;
template class FileCall<ssize_t(int, const void *, size_t)>;
template class FileCall<ssize_t(int, const void *, size_t, off_t)>;
template class FileCall<int(int, uint64_t, uint64_t)>;
template class FileCall<int(int)>;
template class FileCall<int(int, const char *, const char *)>;
template class FileCall<int(int, const char *)>;
template class FileCall<int(int, const char *, mode_t)>;
template class FileCall<int(int, std::vector<std::string> *)>;
template class FileCall<int(int, int)>;
template class FileCall<int(const char *, std::string *)>;

namespace {

constexpr FileCalls kSystem = {
    [](int folder, const char *path, int flags, mode_t mode) {
        return openat(folder, path, flags, mode);
    },
    ::close,
    ::fstatat,
    ::fstat,
    ::readlinkat,
    ::fchmod,
    ::pread,
    ::write,
    ::pwrite,
    start_sync,
    ::fsync,
    [](int folder, const char *from, const char *to) { return renameat(folder, from, folder, to); },
    exchange,
    [](int folder, const char *name) { return unlinkat(folder, name, 0); },
    ::mkdirat,
    [](int folder, const char *name) { return unlinkat(folder, name, AT_REMOVEDIR); },
    list,
    [](size_t bytes, int protection, int flags, int file) {
        return ::mmap(nullptr, bytes, protection, flags, file, 0);
    },
    ::munmap,
    ::flock,
    ::kill,
    real_path,
};

std::atomic<const FileCalls *> calls_in_use{&kSystem};

}  // namespace

const FileCalls &file_calls()
{
    return *calls_in_use.load(std::memory_order_acquire);
}

void set_file_calls(const FileCalls *calls)
{
    calls_in_use.store(calls ? calls : &kSystem, std::memory_order_release);
}

void fail_io(const char *call, const char *what, const std::string &path, int error)
{
    std::filesystem::path folder = std::filesystem::path(path).parent_path();
    std::error_code unknown;
    const auto is_missing = [&](const std::filesystem::path &each) {
        return !each.empty() && !std::filesystem::exists(each, unknown);
    };
    const bool no_folder = error == ENOENT && is_missing(folder);
    while (no_folder && is_missing(folder.parent_path())) folder = folder.parent_path();
    throw Error(YOKE_E_IO,
                format("%s: cannot %s '%s': %s%s", call, what, path.c_str(),
                       std::generic_category().message(error).c_str(),
                       no_folder ? (": there is no folder " + folder.string()).c_str() : ""),
                error);
}

// ---- Descriptors ------------------------------------------------------------------------------------------------

int close_file(int file)
{
    return file_calls().close(file);
}

FilePlace place_of(const std::string &path)
{
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos) return {".", path};
    return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

Descriptor opened_folder(const std::string &path)
{
    return Descriptor(
        file_calls().open(AT_FDCWD, path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0));
}

Descriptor open_folder(const char *call, const std::string &path)
{
    Descriptor folder = opened_folder(path);
    if (!folder.is_open()) fail_io(call, "open the folder", path, errno);
    return folder;
}

std::vector<std::string> list_folder(const char *call, const std::string &path)
{
    const Descriptor folder = open_folder(call, path);
    std::vector<std::string> names;
    if (file_calls().list(folder.get(), &names) != 0) fail_io(call, "list the folder", path, errno);
    return names;
}

namespace {

int sync(const Descriptor &file, Lack lack)
{
    if (file_calls().fsync(file.get()) == 0) return 0;
    const int error = errno;
    if (!is_lacking(lack, error)) return error;
    note_lack(lack, file, error);
    return 0;
}

}  // namespace

int sync_file(const Descriptor &file)
{
    return sync(file, Lack::kFileSync);
}

int sync_folder(const Descriptor &folder)
{
    return sync(folder, Lack::kFolderSync);
}

int rename_in(const Descriptor &folder, const char *from, const std::string &to)
{
    return file_calls().rename(folder.get(), from, to.c_str()) == 0 ? 0 : errno;
}

void fail_move(const char *call, const std::string &path, int error)
{
    if (error == EACCES || error == EBUSY)
        throw Error(
            YOKE_E_IO,
            format(
                "%s: cannot replace '%s': %s; the file is not yours, or is in use (CIFS reports both alike): release the tensors that were loaded from it",
                call, path.c_str(), std::generic_category().message(error).c_str()),
            error);
    if (error != ENOSYS && error != EOPNOTSUPP) fail_io(call, "replace", path, error);
    throw Error(
        YOKE_E_IO,
        format(
            "%s: cannot replace '%s': %s: its file system cannot rename files, which a save needs; save to a local folder, and copy the result there",
            call, path.c_str(), std::generic_category().message(error).c_str()),
        error);
}

}  // namespace yoke
