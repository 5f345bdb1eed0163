// new_folder.h: a folder that takes the place of the former one in one step, so that after a crash at any point one of
// the two is found, undamaged.
#pragma once

#include "core/state/new_file.h"

#include <memory>
#include <string>
#include <vector>

namespace yoke {

// A folder of files that takes the place of PARENT/NAME once it is whole.
class NewFolder {
public:
    // Removes what killed writers left among the entries of the parent.
    NewFolder(const char *call, const std::string &parent, const std::string &name,
              const std::vector<std::string> &entries);

    // A file in it, to be written; finish it when all of it is there, or leave that to commit.
    FileWriter &create(const std::string &name);
    // As NewFile's; then the former folder is removed.
    void commit();

private:
    Descriptor make(const std::vector<std::string> &entries);
    void put_in_place();
    void set_aside();
    void move();
    void check_files_move();
    void move_files();
    int make_folder_for(const std::string &file);
    int sync_inside();

    const char *call_;
    std::string path_, name_;
    std::string former_;  // where that is meanwhile, if there is one
    Descriptor parent_;
    Temporary temporary_;
    Descriptor folder_;
    std::vector<std::string> names_;
    std::vector<std::unique_ptr<FileWriter>> files_;
};

// At no moment a part of it is found under its name.
void remove_folder(const char *call, const std::string &path);

// The folders that the entries of a folder may be, by name: those that were set aside for a new one, which did not come
// to its place before a crash, under their own name too.
struct FoundFolder {
    std::string name;   // "step-4"
    std::string place;  // where it is: "step-4" or ".step-4.yoke-old"
};
std::vector<FoundFolder> find_folders(const std::vector<std::string> &entries);
// Returns where one of them is; "" if none of the entries is that folder.
std::string find_folder(const std::string &name, const std::vector<std::string> &entries);
// Returns whether a path, which is no link, leads to a folder. Raises YOKE_E_IO where the system refuses to tell.
bool is_folder(const char *call, const std::string &path);

// Makes a folder, and those above it that are missing; all are found after a crash.
void make_folders(const char *call, const std::string &path);

}  // namespace yoke
