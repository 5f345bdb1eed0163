#include "core/doctor/recorded_root.h"

#include "core/base/descriptor.h"
#include "core/doctor/log.h"
#include "core/machine/files.h"
#include "core/machine/inventory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string_view>

namespace yoke::doctor {

namespace {

OwnedFile opened(const std::string &path)
{
    constexpr int kFlags = O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY;
    return OwnedFile(open(under_sysroot(path).c_str(), kFlags));
}

constexpr size_t kMostLog = 4 * 1024 * 1024;

// Returns the kernel's records in /dev/kmsg, which gives a single record per read.
std::string records_of(int kmsg)
{
    std::string text;
    char record[8192];
    while (text.size() < kMostLog) {
        const ssize_t size = read(kmsg, record, sizeof record);
        if (size < 0 && errno == EPIPE) continue;  // overwritten meanwhile: read the next
        if (size <= 0) break;
        text += text_of_record(std::string(record, static_cast<size_t>(size)));
    }
    return text;
}

std::string owner_of(const struct stat &status)
{
    // Not getpwuid: it may ask the network. Names of a few well-known numbers do.
    const auto name = [](unsigned number) {
        return number == 0 ? std::string("root") : std::to_string(number);
    };
    return name(status.st_uid) + ":" + (status.st_gid == 44 ? "video" : name(status.st_gid));
}

}  // namespace

bool RecordedRoot::is_foreign()
{
    return under_sysroot("/") != "/";
}

std::optional<std::string> RecordedRoot::text(const std::string &path, size_t limit)
{
    const OwnedFile file = opened(path);
    problem_ = file.is_open() ? 0 : errno;
    if (!file.is_open()) return std::nullopt;
    std::string all(limit, '\0');
    size_t used = 0;
    while (used < limit) {
        const ssize_t size = read(file.get(), all.data() + used, limit - used);
        if (size < 0 && errno == EINTR) continue;
        if (size < 0) problem_ = errno;
        if (size < 0 && used == 0) return std::nullopt;
        if (size <= 0) break;
        used += static_cast<size_t>(size);
    }
    all.resize(used);
    texts_[path] = all;
    return all;
}

std::string RecordedRoot::line(const std::string &path)
{
    return trimmed(text(path).value_or(""));
}

std::vector<std::string> RecordedRoot::list(const std::string &path)
{
    std::vector<std::string> names;
    const std::unique_ptr<DIR, int (*)(DIR *)> folder(opendir(under_sysroot(path).c_str()),
                                                      closedir);
    if (folder) {
        present_.insert(path);
        while (const dirent *entry = readdir(folder.get()))
            if (entry->d_name[0] != '.') names.push_back(entry->d_name);
    } else if (errno == ENOMEM) {
        throw std::bad_alloc();
    }
    std::sort(names.begin(), names.end());
    return names;
}

std::string RecordedRoot::link(const std::string &path)
{
    char target[4096];
    const ssize_t size = readlink(under_sysroot(path).c_str(), target, sizeof target);
    if (size <= 0) return "";
    const std::string whole(target, static_cast<size_t>(size));
    links_[path] = whole;
    return whole.substr(whole.rfind('/') + 1);
}

bool RecordedRoot::exists(const std::string &path)
{
    const bool there = access(under_sysroot(path).c_str(), F_OK) == 0;
    if (there) present_.insert(path);
    return there;
}

std::string RecordedRoot::end_of(const std::string &path, size_t limit)
{
    const OwnedFile file = opened(path);
    struct stat status {};
    if (!file.is_open() || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return "";
    const off_t most = static_cast<off_t>(limit);
    if (status.st_size > most && lseek(file.get(), status.st_size - most, SEEK_SET) < 0) return "";
    std::string all(limit, '\0');
    size_t used = 0;
    for (ssize_t size = 1; size > 0 && used < limit;
         used += static_cast<size_t>(std::max<ssize_t>(size, 0)))
        size = read(file.get(), all.data() + used, limit - used);
    all.resize(used);
    return all;
}

std::optional<std::string> RecordedRoot::kernel_log()
{
    std::string all;
    if (is_foreign()) {
        all = end_of("/dev/kmsg", kMostLog);
        if (all.empty() && !exists("/dev/kmsg")) return std::nullopt;
    } else {
        const OwnedFile kmsg = opened("/dev/kmsg");
        if (kmsg.is_open()) all = records_of(kmsg.get());
        for (const char *path : {"/var/log/kern.log", "/var/log/dmesg", "/var/log/messages"})
            if (all.empty()) all = since_start(end_of(path, kMostLog));
        if (all.empty()) return std::nullopt;
    }
    return texts_["/dev/kmsg"] = of_interest(all);
}

// Returns how a device file may be used. In another root, a device file is a text, "0660 root:video", or "0600
// root:root denied". A file unreadable for other users counts as denied, too, because the reader has no rights there.
std::optional<RecordedRoot::Node> RecordedRoot::node(const std::string &path)
{
    struct stat status {};
    const std::string place = under_sysroot(path);
    if (stat(place.c_str(), &status) != 0 || S_ISDIR(status.st_mode)) return std::nullopt;
    char mode[16];
    snprintf(mode, sizeof mode, "%04o", status.st_mode & 07777u);
    Node node{mode, true};
    if (is_foreign()) {
        const std::string said = line(path);
        const size_t end = said.rfind(" denied");
        node.granted = end == said.npos && (status.st_mode & S_IROTH);
        if (!said.empty()) node.mode = said.substr(0, end);
    } else {
        node.granted = access(place.c_str(), R_OK | W_OK) == 0;
        node.mode += " " + owner_of(status);
    }
    texts_[path] = node.mode + (node.granted ? "" : " denied") + "\n";
    return node;
}

std::string RecordedRoot::text_behind(const std::string &path, const std::string &marker,
                                      size_t length, const std::string &word)
{
    const OwnedFile file = opened(path);
    struct stat status {};
    if (!file.is_open() || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
        status.st_size <= 0)
        return "";
    const size_t size = std::min<size_t>(static_cast<size_t>(status.st_size), 64u << 20);
    void *mapped = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
    if (mapped == MAP_FAILED) return "";
    const std::string_view all(static_cast<const char *>(mapped), size);
    std::string found;
    for (size_t at = 0; found.empty() && (at = all.find(marker, at)) != all.npos;) {
        at += marker.size();
        std::string text(all.substr(at, length));
        const auto is_end = [](unsigned char c) { return c < ' '; };
        text.erase(std::find_if(text.begin(), text.end(), is_end), text.end());
        if (text.find(word) != text.npos) found = text;
    }
    if (!found.empty()) texts_[path] = marker + found + "\n";
    munmap(mapped, size);
    return found;
}

}  // namespace yoke::doctor
