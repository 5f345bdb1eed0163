// file_set.h: how a set of files comes to the disk whole: first its files, last their index.
//
// The files have new random names for each set, so no other set is touched. The index takes its place in one step.
// After that, the files of former sets and of killed writers are removed: files that no index of the folder names,
// unless their writer lives. A writer makes its index first, under a temporary name, before its files. The temporary
// gets its final name at the end. A process that finds the temporary of a dead writer removes the temporary first. So
// a set whose files are gone can never get its final name.
#pragma once

#include "core/state/new_file.h"

#include <optional>

namespace yoke {

class NewSet {
public:
    // Prepares to replace the file at `path`: a file, a set or an empty place. If `path` is a link, replaces the
    // link's target.
    NewSet(const char *call, const std::string &path);
    ~NewSet();  // removes the files of a set without a commit
    NewSet(const NewSet &) = delete;
    NewSet &operator=(const NewSet &) = delete;

    // Returns the name of file `i`, from 0, of `count`. The name has this set's random digits.
    std::string name_of(size_t i, size_t count) const;
    // Begins a file of the set, and finishes the file before. Later writes go to the new file.
    void begin(const std::string &name);
    void write(const void *from, size_t bytes) { writer_->write(from, bytes); }
    // Finishes the last file and puts the set in place. After the return, the set is on the disk under its name, and
    // the former state is gone. If the call raises, the former state is whole, except after a failure of the last
    // steps: the new set is then in place already.
    void commit(std::string_view index);

private:
    struct Target {
        Target(const char *call, const std::string &path);
        struct stat status {};  // set while the path is resolved
        std::string path, name;
        Descriptor folder;
    };
    void end_file();
    void remove_file();

    const char *call_;
    Target target_;  // file to replace, as if the set were a single file
    NewFile index_;
    pid_t owner_;  // a forked child removes no files
    std::vector<std::string> made_;
    std::optional<FileWriter> writer_;
};

// Removes the set that a file has replaced, if NewSet wrote the set. Does nothing if the set's index cannot be read.
// Files that cannot be removed stay.
void remove_former_set(const Descriptor &folder, const std::string &file) noexcept;

}  // namespace yoke
