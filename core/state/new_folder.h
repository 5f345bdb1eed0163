// new_folder.h: a folder that replaces the former folder in one step. After a crash at any point, either folder is
// there, undamaged.
#pragma once

#include "core/state/new_file.h"

#include <memory>
#include <string>
#include <vector>

namespace yoke {

// Folder of files that replaces PARENT/NAME once complete.
class NewFolder {
public:
    // Begins a temporary folder in the parent. First removes leftovers of killed writers among the parent's entries,
    // and moves back a former folder that was set aside.
    NewFolder(const char *call, const std::string &parent, const std::string &name,
              const std::vector<std::string> &entries);

    // Creates a file in the folder. The caller may finish the complete file, or leave the finish to commit().
    FileWriter &create(const std::string &name);
    // Finishes all files and puts the folder in place, then removes the former folder. After the return, the new
    // folder is on the disk under its name. If the call raises, the former folder is whole, or the new folder is in
    // place already. Only where the file system renames no folders, both may be lost.
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
    std::string former_;  // current name of the former folder, if there is any
    Descriptor parent_;
    Temporary temporary_;
    Descriptor folder_;
    std::vector<std::string> names_;
    std::vector<std::unique_ptr<FileWriter>> files_;
};

// Removes a folder with its files. Its name never leads to a part of the folder, unless the file system cannot rename
// folders. Raises YOKE_E_IO on failure.
void remove_folder(const char *call, const std::string &path);

// Folder among a folder's entries. If a crash came before the replacement, a folder that was set aside is found under
// its own name too.
struct FoundFolder {
    std::string name;   // "step-4"
    std::string place;  // current place: "step-4" or ".step-4.yoke-old"
};
std::vector<FoundFolder> find_folders(const std::vector<std::string> &entries);
// Returns the place of the named folder; "" if no entry is that folder.
std::string find_folder(const std::string &name, const std::vector<std::string> &entries);
// Returns whether the path leads to a folder; a link is no folder. Raises YOKE_E_IO if the system refuses to tell.
bool is_folder(const char *call, const std::string &path);

// Makes a folder and the missing folders above, if there is no folder at the path. All of them survive a crash.
// Raises YOKE_E_IO on failure.
void make_folders(const char *call, const std::string &path);

}  // namespace yoke
