#include "core/state/new_file.h"

#include "core/state/lacks.h"

#include <fcntl.h>

#include <algorithm>
#include <utility>

namespace yoke {

// ---- A file being written ---------------------------------------------------------------------------------------

FileWriter::FileWriter(const char *call, std::string path, Descriptor file)
    : call_(call), path_(std::move(path)), file_(std::move(file))
{
}

void FileWriter::check_open() const
{
    if (is_lost_ || is_finished())
        fail(YOKE_E_STATE, "%s: '%s' is %s; make a new file", call_, path_.c_str(),
             is_lost_ ? "lost by an earlier failure" : "finished");
}

void FileWriter::fail_lost(const char *what, int error)
{
    is_lost_ = true;
    fail_io(call_, what, path_, error);
}

void FileWriter::write(const void *from, size_t bytes)
{
    check_open();
    const auto *at = static_cast<const char *>(from);
    while (bytes > 0) {
        const ssize_t done = file_calls().write(file_.get(), at, std::min(bytes, kWriteBehind));
        if (done <= 0) fail_lost("write", done < 0 ? errno : ENOSPC);
        at += done;
        bytes -= static_cast<size_t>(done);
        bytes_ += static_cast<uint64_t>(done);
        start_sync();
    }
}

void FileWriter::start_sync()
{
    const uint64_t whole = bytes_ / kWriteBehind * kWriteBehind;
    if (whole == started_) return;
    const int done = file_calls().start_sync(file_.get(), started_, whole - started_);
    // If the system has no such call, the save goes on. But if the system reports lost data here, fsync may not
    // report the loss again.
    const bool is_lost = errno == EIO || errno == ENOSPC || errno == EDQUOT;
    if (done != 0 && is_lost) fail_lost("write", errno);
    started_ = whole;
}

void FileWriter::finish()
{
    check_open();
    const int synced = sync_file(file_);
    const int closed = file_.close();
    if (synced || closed) fail_lost(synced ? "sync" : "close", synced ? synced : closed);
}

// ---- A file that replaces another -------------------------------------------------------------------------------

namespace {

// The system itself follows as many links.
constexpr int kMostLinks = 40;

}  // namespace

std::string target_of(const char *call, std::string path, struct stat *status)
{
    const auto at = [&](int flags) {
        return file_calls().status(AT_FDCWD, path.c_str(), status, flags);
    };
    if (at(0) == 0) {
        if (S_ISDIR(status->st_mode)) fail_io(call, "write", path, EISDIR);
        if (!S_ISREG(status->st_mode))
            throw Error(YOKE_E_IO,
                        format("%s: cannot write '%s': it is not a regular file; name another file",
                               call, path.c_str()),
                        EINVAL);
    } else if (errno != ENOENT) {
        fail_io(call, "write", path, errno);
    }
    for (int i = 0; i < kMostLinks; ++i) {
        if (at(AT_SYMLINK_NOFOLLOW) != 0) {
            if (errno != ENOENT) fail_io(call, "write", path, errno);
            status->st_mode = 0;
            return path;
        }
        if (!S_ISLNK(status->st_mode)) return path;
        char to[4096];
        const ssize_t length = file_calls().read_link(AT_FDCWD, path.c_str(), to, sizeof to);
        if (length < 0) fail_io(call, "follow the link", path, errno);
        const std::string link(to, static_cast<size_t>(length));
        path = link.starts_with('/') ? link : place_of(path).folder + "/" + link;
    }
    fail_io(call, "write", path, ELOOP);
}

NewFile::NewFile(const char *call, const std::string &path, const struct stat *former) : call_(call)
{
    struct stat status {};
    path_ = target_of(call, path, &status);
    FilePlace place = place_of(path_);
    if (place.name.empty()) fail_io(call, "write", path, path.empty() ? ENOENT : EISDIR);
    name_ = std::move(place.name);
    folder_ = opened_folder(place.folder);
    if (!folder_.is_open()) fail_io(call, "write", path_, errno);
    remove_leftovers(folder_, name_);
    const struct stat &kept = former && !S_ISREG(status.st_mode) ? *former : status;
    mode_ = kept.st_mode & 0777;
    keeps_mode_ = S_ISREG(kept.st_mode);
    temporary_ = std::make_unique<Temporary>(folder_, name_);
    Descriptor file = open_new(temporary_->name());
    temporary_->made();
    keep_mode(file);
    writer_ = std::make_unique<FileWriter>(call_, path_, std::move(file));
}

Descriptor NewFile::open_new(const char *name) const
{
    Descriptor file(file_calls().open(folder_.get(), name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                                      keeps_mode_ ? mode_ | 0600 : 0666));
    if (!file.is_open()) fail_io(call_, "make a file beside", path_, errno);
    return file;
}

void NewFile::keep_mode(const Descriptor &file) const
{
    if (!keeps_mode_ || file_calls().chmod(file.get(), mode_) == 0) return;
    const int error = errno;
    if (!is_lacking(Lack::kMode, error)) fail_io(call_, "keep the permissions of", path_, error);
    note_lack(Lack::kMode, file, error);
}

FileWriter NewFile::create_beside(const std::string &name) const
{
    Descriptor file = open_new(name.c_str());
    try {
        keep_mode(file);
    } catch (...) {
        remove_entry(folder_, name.c_str());
        throw;
    }
    return {call_, place_of(path_).folder + "/" + name, std::move(file)};
}

void NewFile::commit()
{
    // The data must reach the disk first. Else the name could lead to missing data, a damaged file: the system may
    // keep the name without the data.
    writer_->finish();
    if (const int error = rename_in(folder_, temporary_->name(), name_))
        fail_move(call_, path_, error);
    temporary_->gone();
    is_in_place_ = true;
    if (const int error = sync_folder(folder_)) fail_io(call_, "sync the folder of", path_, error);
}

}  // namespace yoke
