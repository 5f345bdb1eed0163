#include "core/state/new_folder.h"

#include "core/state/lacks.h"

#include <fcntl.h>

#include <algorithm>
#include <set>

namespace yoke {

namespace {

// Name under which the former NAME waits during the replacement, if the system cannot exchange the two folders.
constexpr std::string_view kOldTail = ".yoke-old";

std::string old_name(const std::string &name)
{
    return "." + name + std::string(kOldTail);
}

// Finds the mode of an entry, without following a link. Returns 0 or an errno.
int look_up(const Descriptor &folder, const std::string &name, mode_t *mode)
{
    struct stat status {};
    if (file_calls().status(folder.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
        return errno;
    *mode = status.st_mode;
    return 0;
}

// Returns whether a folder of this process can be renamed there; tries with an empty folder. Returns true if the
// folder cannot be made.
bool renames_own_folder(const Descriptor &parent)
{
    Temporary from(parent, "rename"), to(parent, "rename");
    if (from.make_folder() != 0) return true;  // unknown: the first error stays
    if (rename_in(parent, from.name(), to.name()) != 0) return false;
    from.gone();
    to.made();
    return true;
}

// Returns whether a rename failed because the file system cannot rename folders there, and notes this. EPERM may also
// mean another user's folder in a sticky folder. Its files must stay then.
bool cannot_move(const Descriptor &parent, int error)
{
    if (!error || !is_lacking(Lack::kMove, error)) return false;
    if (error == EPERM && renames_own_folder(parent)) return false;
    note_lack(Lack::kMove, parent, error);
    return true;
}

// Returns 0 for an errno that means files in use, else the errno. A process that has a file open keeps the file. On
// NFS, the file stays in the folder under another name, so the folder stays too. The next writer removes the folder
// as a leftover.
int without_busy(int error)
{
    return error == ENOTEMPTY || error == EEXIST || error == EBUSY ? 0 : error;
}

// Removes a folder, and returns 0 or an errno. The files go last, once the folder's name is gone on the disk too.
// Else, the name could come back without some files.
int discard(const Descriptor &folder, const std::string &name)
{
    Temporary away(folder, name);
    const int error = rename_in(folder, name.c_str(), away.name());
    if (cannot_move(folder, error)) return remove_entry(folder, name.c_str());
    if (error) return error;
    if (const int unsynced = sync_folder(folder)) {
        rename_in(folder, away.name(), name);
        return unsynced;
    }
    return without_busy(remove_entry(folder, away.name()));
}

// Moves a former folder that was set aside back to its place. If the new folder is there already, removes the former
// folder. Returns 0, also if none was set aside, or an errno.
int recover(const Descriptor &folder, const std::string &name)
{
    const std::string old = old_name(name);
    mode_t mode;
    const int error = look_up(folder, old, &mode);
    if (error) return error == ENOENT ? 0 : error;
    const int new_error = look_up(folder, name, &mode);
    if (new_error == ENOENT) return rename_in(folder, old.c_str(), name);
    if (new_error) return new_error;
    // The new folder is visible now, but survives a crash only after this sync.
    if (const int not_synced = sync_folder(folder)) return not_synced;
    return discard(folder, old);
}

}  // namespace

// ---- A folder that replaces another -----------------------------------------------------------------------------

NewFolder::NewFolder(const char *call, const std::string &parent, const std::string &name,
                     const std::vector<std::string> &entries)
    : call_(call),
      path_(parent + "/" + name),
      name_(name),
      parent_(open_folder(call, parent)),
      temporary_(parent_, name),
      folder_(make(entries))
{
}

Descriptor NewFolder::make(const std::vector<std::string> &entries)
{
    if (name_.empty() || name_.starts_with('.') || name_.find('/') != std::string::npos)
        fail(YOKE_E_VALUE,
             "%s: '%s' is not a name for a folder; give a name without '/' and a leading '.'",
             call_, name_.c_str());
    remove_leftovers(parent_, entries);
    if (const int error = recover(parent_, name_))
        fail_io(call_, "replace the folder", path_, error);
    if (const int error = temporary_.make_folder())
        fail_io(call_, "make a folder beside", path_, error);
    Descriptor folder(
        file_calls().open(parent_.get(), temporary_.name(), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0));
    if (!folder.is_open()) fail_io(call_, "open a folder beside", path_, errno);
    return folder;
}

FileWriter &NewFolder::create(const std::string &name)
{
    Descriptor file(file_calls().open(folder_.get(), name.c_str(),
                                      O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!file.is_open()) fail_io(call_, "make", path_ + "/" + name, errno);
    names_.push_back(name);
    files_.push_back(std::make_unique<FileWriter>(call_, path_ + "/" + name, std::move(file)));
    return *files_.back();
}

void NewFolder::commit()
{
    for (const auto &file : files_)
        if (!file->is_finished()) file->finish();
    if (const int error = sync_folder(folder_)) fail_io(call_, "sync the folder", path_, error);
    put_in_place();
    temporary_.gone();
    // A crash must leave the new folder before the former folder loses a file.
    if (const int error = sync_folder(parent_)) fail_io(call_, "sync the folder of", path_, error);
    // Files that cannot be removed are leftovers for the next writer.
    if (former_ == temporary_.name())
        remove_entry(parent_, former_.c_str());
    else if (!former_.empty())
        discard(parent_, former_);
}

// Puts the new folder in place. A rename cannot replace a folder with files. If the former folder were moved away
// first, there would be a moment without a folder under the name, and after a crash this moment could last. So the
// system exchanges both names in one step. Some file systems cannot exchange (NFS, some of FUSE). There, the former
// folder waits under a second name. This name stands for the first name while the first name is missing: find_folders
// uses it at once, and the next writer renames it back. In any order of these renames on the disk, either name leads
// to a whole folder.
void NewFolder::put_in_place()
{
    mode_t mode = 0;
    int error = look_up(parent_, name_, &mode);
    if (error == ENOENT) {
        return move();
    } else if (!error && !S_ISDIR(mode)) {
        error = ENOTDIR;
    } else if (!error) {
        error =
            file_calls().exchange(parent_.get(), temporary_.name(), name_.c_str()) == 0 ? 0 : errno;
        if (!error) former_ = temporary_.name();
        if (is_lacking(Lack::kMove, error)) return set_aside();
    }
    if (error) fail_io(call_, "replace the folder", path_, error);
}

void NewFolder::set_aside()
{
    const std::string old = old_name(name_);
    int error = rename_in(parent_, name_.c_str(), old);
    if (cannot_move(parent_, error)) {
        check_files_move();
        error = remove_entry(parent_, name_.c_str());
        if (!error) return move();
    }
    if (error) fail_move(call_, path_, error);
    try {
        move();
    } catch (const Error &) {
        rename_in(parent_, old.c_str(), name_);
        throw;
    }
    former_ = old;
}

void NewFolder::move()
{
    const int error = rename_in(parent_, temporary_.name(), name_);
    if (cannot_move(parent_, error)) return move_files();
    if (error) fail_move(call_, path_, error);
}

// Raises YOKE_E_IO if not even a file can be renamed; tries with a file of the new folder. The former folder must
// stay then, because the new folder could not replace it.
void NewFolder::check_files_move()
{
    const std::string file = temporary_.name() + ("/" + names_.back()), moved = file + ".new";
    int error = rename_in(parent_, file.c_str(), moved);
    if (!error) error = rename_in(parent_, moved.c_str(), file);
    if (error) fail_move(call_, path_, error);
}

// Moves the files if the file system can rename files but no folders. The last file marks the folder as whole, so it
// moves last. Until then, an empty file takes its place. So a crash leaves a folder that counts as damaged, and as
// Yoke's.
void NewFolder::move_files()
{
    const std::string from = temporary_.name() + std::string("/"), to = name_ + "/";
    const std::string &last = names_.back(), moving = from + last + ".new";
    // This rename comes first. If the system cannot rename, later changes could not be undone.
    if (const int error = rename_in(parent_, (from + last).c_str(), moving))
        fail_move(call_, path_, error);
    int error = make_folder_for(last);
    for (const std::string &each : names_)
        if (!error && each != last) error = rename_in(parent_, (from + each).c_str(), to + each);
    if (!error) error = sync_inside();
    if (!error) error = rename_in(parent_, moving.c_str(), to + last);
    if (!error) error = sync_inside();
    if (error) {
        remove_entry(parent_, name_.c_str());
        fail_move(call_, path_, error);
    }
    remove_entry(parent_, temporary_.name());
}

// Makes the folder with an empty file inside. Returns 0 or an errno.
int NewFolder::make_folder_for(const std::string &file)
{
    if (file_calls().mkdir(parent_.get(), name_.c_str(), 0777) != 0) return errno;
    Descriptor empty(file_calls().open(parent_.get(), (name_ + "/" + file).c_str(),
                                       O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    return empty.is_open() ? empty.close() : errno;
}

int NewFolder::sync_inside()
{
    const Descriptor inside(
        file_calls().open(parent_.get(), name_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0));
    return inside.is_open() ? sync_folder(inside) : errno;
}

void remove_folder(const char *call, const std::string &path)
{
    const FilePlace place = place_of(path);
    if (place.name.empty()) fail_io(call, "remove", path, EINVAL);
    const Descriptor parent = open_folder(call, place.folder);
    int error = recover(parent, place.name);
    if (!error) error = discard(parent, place.name);
    if (error) fail_io(call, "remove the folder", path, error);
}

void make_folders(const char *call, const std::string &path)
{
    struct stat status {};
    if (file_calls().status(AT_FDCWD, path.c_str(), &status, 0) == 0) {
        if (!S_ISDIR(status.st_mode)) fail_io(call, "make the folder", path, ENOTDIR);
        return;
    }
    const FilePlace place = place_of(path);
    if (errno != ENOENT || path.empty()) fail_io(call, "make the folder", path, errno);
    make_folders(call, place.folder);
    if (place.name.empty()) return;  // the path ends with a slash
    const Descriptor folder = open_folder(call, place.folder);
    if (file_calls().mkdir(folder.get(), place.name.c_str(), 0777) != 0 && errno != EEXIST)
        fail_io(call, "make the folder", path, errno);
    if (const int error = sync_folder(folder)) fail_io(call, "sync the folder of", path, error);
}

// ---- Finding ----------------------------------------------------------------------------------------------------

std::vector<FoundFolder> find_folders(const std::vector<std::string> &entries)
{
    const std::set<std::string_view> all(entries.begin(), entries.end());
    std::vector<FoundFolder> found;
    for (const std::string &name : entries) {
        if (!name.starts_with('.')) {
            found.push_back({name, name});
        } else if (name.ends_with(kOldTail) && name.size() > 1 + kOldTail.size()) {
            std::string own = name.substr(1, name.size() - 1 - kOldTail.size());
            if (!all.contains(own)) found.push_back({std::move(own), name});
        }
    }
    std::ranges::sort(found, {}, &FoundFolder::name);
    return found;
}

std::string find_folder(const std::string &name, const std::vector<std::string> &entries)
{
    for (const std::string &place : {name, old_name(name)})
        if (std::ranges::find(entries, place) != entries.end()) return place;
    return {};
}

bool is_folder(const char *call, const std::string &path)
{
    struct stat status {};
    if (file_calls().status(AT_FDCWD, path.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0)
        return S_ISDIR(status.st_mode);
    if (errno != ENOENT) fail_io(call, "look at the folder", path, errno);
    return false;
}

}  // namespace yoke
