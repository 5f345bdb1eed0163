// files.h: reads the small files of /sys, /proc and /dev, or of another root if given.
//
// A server's tree has thousands of such files, so each read is an openat and a read, without a stream or a path. A
// missing or unreadable file gives "" or -1: any file is missing on some machine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace yoke {

// Open folder for lookups by name.
class Folder {
public:
    explicit Folder(const std::string &path);
    Folder(const Folder &parent, const std::string &name);
    Folder(Folder &&other) noexcept;
    ~Folder();
    Folder(const Folder &) = delete;
    Folder &operator=(const Folder &) = delete;

    bool is_open() const noexcept { return fd_ >= 0; }

    // Returns the text of a file, at most `limit` bytes, without the blanks and NULs at both ends.
    std::string text(const std::string &name, size_t limit = 4096) const;

    // Returns the number at the start of a file, decimal or 0x...; `missing` without a number.
    int64_t number(const std::string &name, int64_t missing = -1) const;

    // Returns the target of a symbolic link, or "".
    std::string link(const std::string &name) const;

    bool has(const std::string &name) const noexcept;

    // Returns the sorted names in the folder, without names that begin with a dot.
    std::vector<std::string> names() const;

private:
    int fd_;
};

// Root to read: "" is the machine's own root.
struct Root {
    std::string prefix;

    std::string path(std::string_view absolute) const { return prefix + std::string(absolute); }
    Folder folder(std::string_view absolute) const { return Folder(path(absolute)); }
    std::string text(std::string_view absolute, size_t limit = 4096) const;
    bool has(std::string_view absolute) const;
};

// Returns the root named by YOKE_SYSROOT.
Root configured_root();

// Returns the part of a path after the last slash.
std::string base_name(const std::string &path);

// Returns the rest of the first line with `key` and a colon in front ("MemTotal: 5 kB" -> "5 kB"), or "".
std::string field_of(std::string_view text, std::string_view key);

// Returns a text without the blanks, line ends and NULs at both ends.
std::string trimmed(std::string_view text);

// Returns a text of the host in printable form: '?' for each control character and each byte of invalid UTF-8.
std::string printable(std::string_view text);

// Returns the number at the start of a text ("32.0 GT/s": 32), 0 without a number; `rest` is the text after. Unlike
// strtod(), ignores the host program's locale, which may want a comma where the kernel writes a point.
double number_of(std::string_view text, std::string_view *rest = nullptr);

}  // namespace yoke
