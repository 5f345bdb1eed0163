// files.h: reading the small files of /sys, /proc and /dev, under another root where one is given.
//
// A server's tree has thousands of them, so each is one openat and one read, without a stream or a path built for it.
// What is not there, or cannot be read, is "" or -1: on one machine or another everything is missing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace yoke {

// A folder that is held open; names are looked up from there.
class Folder {
public:
    explicit Folder(const std::string &path);
    Folder(const Folder &parent, const std::string &name);
    Folder(Folder &&other) noexcept;
    ~Folder();
    Folder(const Folder &) = delete;
    Folder &operator=(const Folder &) = delete;

    bool is_open() const noexcept { return fd_ >= 0; }

    // The text of a file, at most `limit` bytes, without the blanks and NULs at its end.
    std::string text(const std::string &name, size_t limit = 4096) const;

    // The number that a file starts with, decimal or 0x...; `missing` without one.
    int64_t number(const std::string &name, int64_t missing = -1) const;

    // Where a symbolic link points, "" when it is none.
    std::string link(const std::string &name) const;

    bool has(const std::string &name) const noexcept;

    // The names in it, sorted, without those that begin with a dot.
    std::vector<std::string> names() const;

private:
    int fd_;
};

// The root that is looked at: "" is the machine's own.
struct Root {
    std::string prefix;

    std::string path(std::string_view absolute) const { return prefix + std::string(absolute); }
    Folder folder(std::string_view absolute) const { return Folder(path(absolute)); }
    std::string text(std::string_view absolute, size_t limit = 4096) const;
    bool has(std::string_view absolute) const;
};

// What YOKE_SYSROOT names.
Root configured_root();

// The part of a path behind its last slash.
std::string base_name(const std::string &path);

// The rest of the first line that starts with `key` and a colon ("MemTotal: 5 kB" -> "5 kB"), "" if there is none.
std::string field_of(std::string_view text, std::string_view key);

// Cuts blanks, line ends and NULs at both ends.
std::string trimmed(std::string_view text);

// A text of the host's as it may be shown: '?' for each control character and each byte that is no UTF-8.
std::string printable(std::string_view text);

// The number that a text starts with ("32.0 GT/s": 32), 0 without one; `rest` is what stands behind it. Unlike strtod()
// it does not ask the host's locale, which may want a comma where the kernel writes a point.
double number_of(std::string_view text, std::string_view *rest = nullptr);

}  // namespace yoke
