// file_seam.h: the system's calls for files of state, each of which a test can let fail, and a log of what they
// changed.
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

inline constexpr const char *kSaveCall = "yoke_save";  // the call in messages of what tests save

// A new folder, which goes with all in it.
class TemporaryFolder {
public:
    TemporaryFolder();
    ~TemporaryFolder() { std::filesystem::remove_all(path_); }
    TemporaryFolder(const TemporaryFolder &) = delete;
    TemporaryFolder &operator=(const TemporaryFolder &) = delete;

    std::string path() const { return path_; }
    std::string at(const std::string &name) const { return path_ + "/" + name; }
    std::vector<std::string> names() const;      // sorted
    std::vector<std::string> leftovers() const;  // those of temporaries

private:
    std::string path_;
};
std::string content_of(const std::string &path);
// Of this process.
size_t open_files();

// One thing that happened, as a crash sees it. Files and folders are numbers; the folder of all is 0.
struct Event {
    enum Kind { kFolder, kEntries, kWrite, kSync, kBegin, kReturned };
    Kind kind;
    int node = 0;  // the folder or file
    std::vector<std::pair<std::string, int>>
        entries;       // what names lead to, in one step; -1: to nothing
    std::string text;  // what is written; of a mark the content
    std::string name;  // of a mark
};

// What a test sees of a folder and of all in it.
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

// While it lives, calls go through it.
class Seam {
public:
    explicit Seam(Log *log = nullptr);
    ~Seam();
    Seam(const Seam &) = delete;
    Seam &operator=(const Seam &) = delete;

    // What becomes of a call, asked before each: 0 as ever, an errno, kShort: half of it is done, or kDead: this
    // process is no more, and changes nothing.
    std::function<int(const std::string &entry)> fate;

    Log *log;
    bool is_folder = false;  // whether the fsync or rename that is asked about is of a folder
    bool syncs = true;       // what a test never crashes need not wait for the disk
};

}  // namespace yoke::test
