#include "core/machine/files.h"

#include "core/base/config.h"
#include "core/base/descriptor.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>

namespace yoke {

namespace {

std::string read_at(int folder, const char *name, size_t limit)
{
    std::string text(limit, '\0');  // before the open: an exception would leak the file
    // A fifo or a terminal in a hand-made root must not stop the snapshot.
    const int fd =
        above_standard(openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (fd < 0) return "";
    size_t length = 0;
    // Files of /proc come in pieces.
    while (length < limit) {
        const ssize_t got = read(fd, text.data() + length, limit - length);
        if (got <= 0) break;
        length += static_cast<size_t>(got);
    }
    close(fd);
    return trimmed(std::string_view(text).substr(0, length));
}

}  // namespace

Folder::Folder(const std::string &path)
    : fd_(above_standard(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)))
{
}

Folder::Folder(const Folder &parent, const std::string &name)
    : fd_(parent.fd_ < 0 ? -1
                         : above_standard(openat(parent.fd_, name.c_str(),
                                                 O_RDONLY | O_DIRECTORY | O_CLOEXEC)))
{
}

Folder::Folder(Folder &&other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

Folder::~Folder()
{
    if (fd_ >= 0) close(fd_);
}

std::string Folder::text(const std::string &name, size_t limit) const
{
    return fd_ < 0 ? "" : read_at(fd_, name.c_str(), limit);
}

int64_t Folder::number(const std::string &name, int64_t missing) const
{
    const std::string found = text(name, 64);
    char *end = nullptr;
    const long long value = strtoll(found.c_str(), &end, 0);
    return end == found.c_str() ? missing : value;
}

std::string Folder::link(const std::string &name) const
{
    char target[PATH_MAX];
    const ssize_t length = fd_ < 0 ? -1 : readlinkat(fd_, name.c_str(), target, sizeof target);
    return length < 0 ? "" : std::string(target, static_cast<size_t>(length));
}

bool Folder::has(const std::string &name) const noexcept
{
    return fd_ >= 0 && faccessat(fd_, name.c_str(), F_OK, 0) == 0;
}

std::vector<std::string> Folder::names() const
{
    std::vector<std::string> found;
    const int copy =
        fd_ < 0 ? -1 : above_standard(openat(fd_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (copy < 0) return found;
    const std::unique_ptr<DIR, int (*)(DIR *)> stream(fdopendir(copy), closedir);
    if (!stream) {
        const bool no_memory = errno == ENOMEM;
        close(copy);
        if (no_memory) throw std::bad_alloc();  // else existing names would be missing
        return found;
    }
    while (const dirent *entry = readdir(stream.get()))
        if (entry->d_name[0] != '.') found.emplace_back(entry->d_name);
    std::sort(found.begin(), found.end());
    return found;
}

std::string Root::text(std::string_view absolute, size_t limit) const
{
    return read_at(AT_FDCWD, path(absolute).c_str(), limit);
}

bool Root::has(std::string_view absolute) const
{
    return access(path(absolute).c_str(), F_OK) == 0;
}

Root configured_root()
{
    const char *prefix = config("YOKE_SYSROOT");
    return Root{prefix ? prefix : ""};
}

std::string base_name(const std::string &path)
{
    return path.substr(path.rfind('/') + 1);
}

std::string field_of(std::string_view text, std::string_view key)
{
    while (!text.empty()) {
        const std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(text.size(), line.size() + 1));
        if (line.substr(0, key.size()) != key) continue;
        const size_t colon = line.find_first_not_of(" \t", key.size());
        if (colon != std::string_view::npos && line[colon] == ':')
            return trimmed(line.substr(colon + 1));
    }
    return "";
}

std::string trimmed(std::string_view text)
{
    constexpr std::string_view kBlanks(" \t\r\n\0", 5);
    text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
    return std::string(text.substr(0, text.find_last_not_of(kBlanks) + 1));
}

// Returns the bytes of the character at the start of a text; 0 for a control character, and for invalid UTF-8.
static size_t character_length(std::string_view text)
{
    const auto at = [&](size_t i) -> unsigned {
        return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
    };
    const unsigned first = at(0);
    if (first < 0x80) return first >= ' ' && first != 0x7F;
    const size_t length = first < 0xC2   ? 0
                          : first < 0xE0 ? 2
                          : first < 0xF0 ? 3
                          : first < 0xF5 ? 4
                                         : 0;
    for (size_t i = 1; i < length; ++i)
        if ((at(i) & 0xC0) != 0x80) return 0;
    // Longer than need be, half of a pair of UTF-16, beyond the last character; control characters of two bytes.
    const unsigned pair = first << 8 | at(1);
    const bool refused = pair < 0xC2A0 || (pair >= 0xE080 && pair < 0xE0A0) ||
                         (pair >= 0xEDA0 && pair < 0xEE80) || (pair >= 0xF080 && pair < 0xF090) ||
                         pair >= 0xF490;
    return refused ? 0 : length;
}

std::string printable(std::string_view text)
{
    std::string shown;
    while (!text.empty()) {
        const size_t length = character_length(text);
        shown += length ? text.substr(0, length) : "?";
        text.remove_prefix(std::max<size_t>(length, 1));
    }
    return shown;
}

double number_of(std::string_view text, std::string_view *rest)
{
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
    double number = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (rest) *rest = text.substr(static_cast<size_t>(end - text.data()));
    return problem == std::errc() ? number : 0;
}

}  // namespace yoke
