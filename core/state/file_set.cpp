#include "core/state/file_set.h"

#include "core/state/set_index.h"
#include "core/state/set_names.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace yoke {

// ---- Leftovers of other saves -----------------------------------------------------------------------------------

namespace {

using Digits = std::set<std::string, std::less<>>;

bool list(const Descriptor &folder, std::vector<std::string> &names)
{
    return file_calls().list(folder.get(), &names) == 0;
}

bool is_regular(const Descriptor &folder, const std::string &name)
{
    struct stat status {};
    return file_calls().status(folder.get(), name.c_str(), &status, 0) == 0 &&
           S_ISREG(status.st_mode);
}

// Removes from `digits` the sets named by an index, whatever the index's own name: a user may move a set aside under
// any name. The digits are found as plain text, since an index writes these characters unchanged, whatever else it
// contains. Returns false if the file cannot be read, and may be an index.
bool leave_out_named(Digits &digits, const Descriptor &folder, const std::string &index)
{
    try {
        if (!is_regular(folder, index)) return true;
        const ReadFile file("save", folder, index);
        char first[8];
        const auto bytes = static_cast<size_t>(std::min<uint64_t>(sizeof first, file.size()));
        file.read(0, first, bytes);
        if (!SetIndex::may_begin({first, bytes})) return true;
        const std::string text = read_index_text(file, index.c_str());
        std::erase_if(digits, [&](const std::string &one) {
            return text.find("-" + one + "-") != std::string::npos;
        });
        return true;
    } catch (const Error &error) {
        return error.native_code() == ENOENT;
    }
}

// Removes files of sets with this index's name if no index names the files and no live process writes the set.
void remove_unnamed(const Descriptor &folder, const std::string &index)
{
    std::vector<std::string> names, later;
    remove_leftovers(folder, index);
    if (!list(folder, names)) return;
    Digits digits;
    for (const std::string &name : names) digits.emplace(digits_of_shard(name, index));
    digits.erase("");
    // Listed after the files: the writer of such a file had made its temporary before the file. The writer still has
    // the temporary now, or an index.
    if (digits.empty() || !list(folder, later)) return;
    for (const std::string &living : digits_of_writers(later, "")) digits.erase(living);
    later.push_back(index);
    for (const std::string &name : later)
        if (digits_of_shard(name, index).empty() && !leave_out_named(digits, folder, name)) return;
    for (const std::string &name : names)
        if (digits.contains(digits_of_shard(name, index)))
            file_calls().unlink(folder.get(), name.c_str());
}

// Returns whether all files of the index are Yoke's files in the same folder.
bool is_index_of_ours(const Descriptor &folder, const std::string &name)
{
    struct stat status {};
    const int known = file_calls().status(folder.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW);
    if (known != 0 || !S_ISREG(status.st_mode)) return false;
    const ReadFile file("save", folder, name);
    const SetIndex index = SetIndex::read(read_index_text(file, name.c_str()), name.c_str());
    for (size_t i = 0; i < index.file_count(); ++i)
        if (digits_of_shard(index.file(i), name).empty()) return false;
    return index.file_count() > 0;
}

void remove_set(const Descriptor &folder, const std::string &index)
{
    std::vector<std::string> names;
    const auto is_of_set = [&](const std::string &name) {
        return name == index || is_temporary_of(name, index) ||
               !digits_of_shard(name, index).empty();
    };
    if (!list(folder, names) || std::ranges::none_of(names, is_of_set)) return;
    if (is_index_of_ours(folder, index)) {
        const int gone = file_calls().unlink(folder.get(), index.c_str());
        if (gone != 0 || sync_folder(folder)) return;
    }
    remove_unnamed(folder, index);
}

void remove_unnamed_files(const Descriptor &folder, const std::string &index) noexcept
{
    try {
        remove_unnamed(folder, index);
    } catch (const std::exception &) {  // for want of memory
    }
}

}  // namespace

void remove_former_set(const Descriptor &folder, const std::string &file) noexcept
{
    try {
        remove_set(folder, index_name(file));
    } catch (const std::exception &) {  // an unreadable index: the set is not Yoke's
    }
}

// ---- A new set --------------------------------------------------------------------------------------------------

NewSet::Target::Target(const char *call, const std::string &given)
    : path(target_of(call, given, &status))
{
    FilePlace place = place_of(path);
    if (place.name.empty()) fail_io(call, "write", given, given.empty() ? ENOENT : EISDIR);
    name = std::move(place.name);
    folder = opened_folder(place.folder);
    if (!folder.is_open()) fail_io(call, "write", path, errno);
}

NewSet::NewSet(const char *call, const std::string &path)
    : call_(call),
      target_(call, path),
      index_(call, place_of(target_.path).folder + "/" + index_name(target_.name), &target_.status),
      owner_(getpid())
{
}

NewSet::~NewSet()
{
    if (index_.is_in_place() || owner_ != getpid()) return;
    writer_.reset();
    for (const std::string &name : made_)
        if (!name.empty()) file_calls().unlink(index_.folder().get(), name.c_str());
}

std::string NewSet::name_of(size_t i, size_t count) const
{
    return shard_name(index_.name(), index_.temporary().digits(), i, count);
}

void NewSet::begin(const std::string &name)
{
    end_file();
    std::string made = name;
    made_.emplace_back();  // takes the memory before the file is made
    writer_.emplace(index_.create_beside(name));
    made_.back().swap(made);
}

void NewSet::end_file()
{
    if (writer_) writer_->finish();
    writer_.reset();
}

void NewSet::commit(std::string_view index)
{
    end_file();
    // The names of the files must reach the disk before the index. An index with the name of a missing file would be
    // a damaged set.
    if (const int error = sync_folder(index_.folder()))
        fail_io(call_, "sync the folder of", target_.path, error);
    index_.write(index.data(), index.size());
    index_.commit();
    remove_file();
    remove_leftovers(target_.folder, target_.name);
    remove_unnamed_files(index_.folder(), index_.name());
}

// Removes the single file at the path, because readers prefer a file to a set.
void NewSet::remove_file()
{
    const int done = file_calls().unlink(target_.folder.get(), target_.name.c_str());
    if (done != 0 && errno == ENOENT) return;
    if (done != 0) fail_io(call_, "replace", target_.path, errno);
    if (const int error = sync_folder(target_.folder))
        fail_io(call_, "sync the folder of", target_.path, error);
}

}  // namespace yoke
