// file_set.h: how a set of files comes to the disk whole: its files first, and last the index that names them.
//
// The files are written under names that each set draws anew, so that no other set is touched, and the index takes its
// place in one step. Behind that the files of former sets go, and those of writers that were killed: what no index of
// the folder names, unless its writer lives. A writer's index is there under a temporary name before its files are, and
// leaves that name when it takes its place; who finds the temporary of a dead one removes it first. So no set can come
// to its place whose files are gone.
#pragma once

#include "core/state/new_file.h"

#include <optional>

namespace yoke {

class NewSet {
public:
    // In the place of the file at `path`, be that a file, a set or nothing; behind a link, of what the link names.
    NewSet(const char *call, const std::string &path);
    ~NewSet();  // what has not come to its place goes
    NewSet(const NewSet &) = delete;
    NewSet &operator=(const NewSet &) = delete;

    // Returns the name of file `i`, from 0, of `count`.
    std::string name_of(size_t i, size_t count) const;
    // A file of it, which what is written from now on goes to.
    void begin(const std::string &name);
    void write(const void *from, size_t bytes) { writer_->write(from, bytes); }
    // The set is on the disk, and is found there, behind this, and what it replaces is not. Where it raises, that is
    // whole; only a failure of the last steps comes when the new one is in place already.
    void commit(std::string_view index);

private:
    struct Target {
        Target(const char *call, const std::string &path);
        struct stat status {};  // which finding the path fills in
        std::string path, name;
        Descriptor folder;
    };
    void end_file();
    void remove_file();

    const char *call_;
    Target target_;  // the file that would be there if the set were one
    NewFile index_;
    pid_t owner_;  // a forked child leaves all of it alone
    std::vector<std::string> made_;
    std::optional<FileWriter> writer_;
};

// Where a file has taken the place of a set: removes the set, if it is one of NewSet's. What cannot be removed stays.
void remove_former_set(const Descriptor &folder, const std::string &file) noexcept;

}  // namespace yoke
