// file_seam.h: the system's calls for state files, each of which a test can make fail, and a log of their changes.
#pragma once

#include "core/state/file_calls.h"

#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace yoke::test {

inline constexpr const char *kSaveCall = "yoke_save";  // name of the call in messages of tests

// Temporary folder, removed with its content.
class TemporaryFolder {
public:
    TemporaryFolder();
    ~TemporaryFolder() { std::filesystem::remove_all(path_); }
    TemporaryFolder(const TemporaryFolder &) = delete;
    TemporaryFolder &operator=(const TemporaryFolder &) = delete;

    std::string path() const { return path_; }
    std::string at(const std::string &name) const { return path_ + "/" + name; }
    std::vector<std::string> names() const;      // sorted
    std::vector<std::string> leftovers() const;  // names of temporaries

private:
    std::string path_;
};
std::string content_of(const std::string &path);
// Returns the number of open files of this process.
size_t open_files();

// Event of a file system, as a crash sees the event. Files and folders are numbers; the root folder is 0.
struct Event {
    enum Kind { kFolder, kEntries, kWrite, kSync, kBegin, kReturned };
    Kind kind;
    int node = 0;  // the folder or file
    std::vector<std::pair<std::string, int>>
        entries;       // new targets of names, in a single step; -1: no target
    std::string text;  // written text; for a mark the content
    std::string name;  // name for a mark
};

// Log of a folder and its content, as a test sees them.
class Log {
public:
    explicit Log(std::string root) : root_(std::move(root)) {}

    // Marks: from here on `name` may be found with `content`; and from here on nothing else.
    void begin(const std::string &name, const std::string &content);
    void returned(const std::string &name, const std::string &content);

    void opened(int file, int folder, const std::string &path, bool is_new);
    void closed(int file) { nodes_of_files_.erase(file); }
    void made_folder(int folder, const std::string &path);
    void removed(int folder, const std::string &path);
    void renamed(int folder, const std::string &from, const std::string &to);
    void exchanged(int folder, const std::string &one, const std::string &other);
    void wrote(int file, const void *data, size_t bytes);
    void synced(int file);

    std::vector<Event> events;

private:
    std::pair<int, std::string> place(int folder, const std::string &path) const;
    void change(int folder, std::vector<std::pair<std::string, int>> entries);

    std::string root_;
    int made_ = 0;
    std::map<int, std::map<std::string, int>> folders_{{0, {}}};
    std::map<int, int> nodes_of_files_;
};

constexpr int kShort = -1, kDead = -2;

// Hook for file calls, active while the object lives.
class Seam {
public:
    explicit Seam(Log *log = nullptr);
    ~Seam();
    Seam(const Seam &) = delete;
    Seam &operator=(const Seam &) = delete;

    // Decides the fate of a call, before the call: 0 for success, an errno, kShort: half of the call is done, or
    // kDead: this process is dead, and changes no file.
    std::function<int(const std::string &entry)> fate;

    Log *log;
    bool is_folder = false;  // true if the fsync or rename in question is of a folder
    bool syncs = true;       // false: no wait for the disk, in tests without crashes
};

}  // namespace yoke::test
