#include "tests/core/state/file_seam.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <iterator>

namespace yoke::test {

// ---- Folders ----------------------------------------------------------------------------------------------------

TemporaryFolder::TemporaryFolder()
{
    std::string pattern = (std::filesystem::temp_directory_path() / "yoke_files_XXXXXX").string();
    path_ = mkdtemp(pattern.data());
}

std::vector<std::string> TemporaryFolder::names() const
{
    std::vector<std::string> all;
    for (const auto &entry : std::filesystem::directory_iterator(path_))
        all.push_back(entry.path().filename().string());
    std::ranges::sort(all);
    return all;
}

std::vector<std::string> TemporaryFolder::leftovers() const
{
    std::vector<std::string> all = names();
    std::erase_if(all,
                  [](const std::string &name) { return name.find(".yoke-") == std::string::npos; });
    return all;
}

std::string content_of(const std::string &path)
{
    std::ifstream in(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
}

size_t open_files()
{
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return static_cast<size_t>(std::distance(begin(all), end(all)));
}

// ---- The log ----------------------------------------------------------------------------------------------------

void Log::begin(const std::string &name, const std::string &content)
{
    events.push_back({Event::kBegin, 0, {}, content, name});
}

void Log::returned(const std::string &name, const std::string &content)
{
    events.push_back({Event::kReturned, 0, {}, content, name});
}

std::pair<int, std::string> Log::place(int folder, const std::string &path) const
{
    const std::string below = folder == AT_FDCWD ? path.substr(root_.size()) : path;
    int node = folder == AT_FDCWD ? 0 : nodes_of_files_.at(folder);
    std::string name;
    for (size_t at = 0; at < below.size();) {
        const size_t end = std::min(below.find('/', at), below.size());
        if (end > at) {
            if (!name.empty()) node = folders_.at(node).at(name);
            name = below.substr(at, end - at);
        }
        at = end + 1;
    }
    return {node, name};
}

void Log::change(int folder, std::vector<std::pair<std::string, int>> entries)
{
    for (const auto &[name, node] : entries)
        if (node < 0)
            folders_[folder].erase(name);
        else
            folders_[folder][name] = node;
    events.push_back({Event::kEntries, folder, std::move(entries), "", ""});
}

void Log::opened(int file, int folder, const std::string &path, bool is_new)
{
    const auto [node, name] = place(folder, path);
    if (is_new) change(node, {{name, ++made_}});
    nodes_of_files_[file] = name.empty() ? node : folders_.at(node).at(name);
}

void Log::made_folder(int folder, const std::string &path)
{
    const auto [node, name] = place(folder, path);
    folders_[++made_];
    events.push_back({Event::kFolder, made_, {}, "", ""});
    change(node, {{name, made_}});
}

void Log::removed(int folder, const std::string &path)
{
    const auto [node, name] = place(folder, path);
    change(node, {{name, -1}});
}

void Log::renamed(int folder, const std::string &from, const std::string &to)
{
    const int node = place(folder, from).first;
    change(node, {{from, -1}, {to, folders_.at(node).at(from)}});
}

void Log::exchanged(int folder, const std::string &one, const std::string &other)
{
    const int node = place(folder, one).first;
    const auto &entries = folders_.at(node);
    change(node, {{one, entries.at(other)}, {other, entries.at(one)}});
}

void Log::wrote(int file, const void *data, size_t bytes)
{
    events.push_back({Event::kWrite,
                      nodes_of_files_.at(file),
                      {},
                      std::string(static_cast<const char *>(data), bytes),
                      ""});
}

void Log::synced(int file)
{
    events.push_back({Event::kSync, nodes_of_files_.at(file), {}, "", ""});
}

// ---- The seam ------------------------------------------------------------------------------------------------------

namespace {

Seam *current;
FileCalls real;

int fate_of(const char *entry)
{
    return current->fate ? current->fate(entry) : 0;
}

// Makes a call, unless its fate is a failure.
template <class Result, class Call>
Result called(const char *entry, Result failed, const Call &call)
{
    const int fate = fate_of(entry);
    if (fate == 0 || fate == kShort) return call(fate == kShort);
    errno = fate == kDead ? EIO : fate;
    return failed;
}

// Makes a call, and logs it after a success.
template <class Call, class Note>
int noted(const char *entry, const Call &call, const Note &note)
{
    const int result = called(entry, -1, [&](bool) { return call(); });
    if (result >= 0 && current->log) note(*current->log, result);
    return result;
}

int open_file(int folder, const char *path, int flags, mode_t mode)
{
    return noted(
        "open", [&] { return real.open(folder, path, flags, mode); },
        [&](Log &log, int file) { log.opened(file, folder, path, flags & O_CREAT); });
}

// Closes the file in any case, because a failed close of the system closes the file too.
int close_file(int file)
{
    const int fate = fate_of("close");
    const int result = real.close(file);
    if (current->log) current->log->closed(file);
    if (fate <= 0) return result;
    errno = fate;
    return -1;
}

ssize_t write_file(int file, const void *from, size_t bytes)
{
    return called("write", ssize_t{-1}, [&](bool is_short) {
        const ssize_t done = real.write(file, from, is_short ? (bytes + 1) / 2 : bytes);
        if (done > 0 && current->log) current->log->wrote(file, from, static_cast<size_t>(done));
        return done;
    });
}

int rename_entry(int folder, const char *from, const char *to)
{
    struct stat about {};
    current->is_folder =
        real.status(folder, from, &about, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(about.st_mode);
    return noted(
        "rename", [&] { return real.rename(folder, from, to); },
        [&](Log &log, int) { log.renamed(folder, from, to); });
}

int exchange_entries(int folder, const char *one, const char *other)
{
    return noted(
        "exchange", [&] { return real.exchange(folder, one, other); },
        [&](Log &log, int) { log.exchanged(folder, one, other); });
}

int unlink_entry(int folder, const char *name)
{
    return noted(
        "unlink", [&] { return real.unlink(folder, name); },
        [&](Log &log, int) { log.removed(folder, name); });
}

int remove_empty(int folder, const char *name)
{
    return noted(
        "rmdir", [&] { return real.rmdir(folder, name); },
        [&](Log &log, int) { log.removed(folder, name); });
}

int make_folder(int folder, const char *name, mode_t mode)
{
    return noted(
        "mkdir", [&] { return real.mkdir(folder, name, mode); },
        [&](Log &log, int) { log.made_folder(folder, name); });
}

int sync_file(int file)
{
    struct stat about {};
    current->is_folder = real.file_status(file, &about) == 0 && S_ISDIR(about.st_mode);
    return noted(
        "fsync", [&] { return current->syncs ? real.fsync(file) : 0; },
        [&](Log &log, int) { log.synced(file); });
}

ssize_t read_file(int file, void *to, size_t bytes, off_t from)
{
    return called("pread", ssize_t{-1}, [&](bool is_short) {
        return real.pread(file, to, is_short ? (bytes + 1) / 2 : bytes, from);
    });
}

int unmap(void *begin, size_t bytes)
{
    const int fate = fate_of("munmap");
    real.munmap(begin, bytes);
    errno = fate;
    return fate ? -1 : 0;
}

const FileCalls kSeamCalls = {
    open_file,
    close_file,
    [](int folder, const char *path, struct stat *to, int flags) {
        return called("status", -1, [&](bool) { return real.status(folder, path, to, flags); });
    },
    [](int file, struct stat *to) {
        return called("file_status", -1, [&](bool) { return real.file_status(file, to); });
    },
    [](int folder, const char *path, char *to, size_t bytes) {
        return called("read_link", ssize_t{-1},
                      [&](bool) { return real.read_link(folder, path, to, bytes); });
    },
    [](int file, mode_t mode) {
        return called("chmod", -1, [&](bool) { return real.chmod(file, mode); });
    },
    read_file,
    write_file,
    [](int file, const void *from, size_t bytes, off_t to) {
        return called("pwrite", ssize_t{-1}, [&](bool is_short) {
            return real.pwrite(file, from, is_short ? bytes / 2 : bytes, to);
        });
    },
    [](int file, uint64_t from, uint64_t bytes) {
        return called("start_sync", -1, [&](bool) { return real.start_sync(file, from, bytes); });
    },
    sync_file,
    rename_entry,
    exchange_entries,
    unlink_entry,
    make_folder,
    remove_empty,
    [](int folder, std::vector<std::string> *names) {
        return called("list", -1, [&](bool) { return real.list(folder, names); });
    },
    [](size_t bytes, int protection, int flags, int file) {
        return called("mmap", MAP_FAILED,
                      [&](bool) { return real.mmap(bytes, protection, flags, file); });
    },
    unmap,
    [](int file, int how) {
        return called("flock", -1, [&](bool) { return real.flock(file, how); });
    },
    [](pid_t process, int signal) {
        return called("kill", -1, [&](bool) { return real.kill(process, signal); });
    },
    [](const char *path, std::string *to) {
        return called("real_path", -1, [&](bool) { return real.real_path(path, to); });
    },
};

}  // namespace

Seam::Seam(Log *to) : log(to)
{
    set_file_calls(nullptr);
    real = file_calls();
    current = this;
    set_file_calls(&kSeamCalls);
}

Seam::~Seam()
{
    set_file_calls(nullptr);
    current = nullptr;
}

}  // namespace yoke::test
