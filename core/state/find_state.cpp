#include "core/state/find_state.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/state/manager_steps.h"
#include "core/state/new_folder.h"
#include "core/state/other_formats.h"
#include "core/state/set_index.h"
#include "core/state/set_names.h"

#include <fcntl.h>

#include <algorithm>
#include <utility>

namespace yoke {

namespace {

bool is_there(const std::string &path, struct stat *status)
{
    return file_calls().status(AT_FDCWD, path.c_str(), status, 0) == 0;
}

// Returns the path of the set's index in the place of a missing file, or "" if there is no set either. Raises
// YOKE_E_IO if the system refuses to tell.
std::string index_in_place_of(const std::string &path, const char *call)
{
    struct stat status {};
    const FilePlace place = place_of(target_of(call, path, &status));
    if (place.name.empty()) return {};
    std::string index = place.folder + "/" + index_name(place.name);
    if (is_there(index, &status)) return index;
    if (errno != ENOENT && errno != ENOTDIR) fail_io(call, "look at", index, errno);
    return {};
}

bool is_index(const ReadFile &file)
{
    char begin[8];
    const auto bytes = static_cast<size_t>(std::min<uint64_t>(sizeof begin, file.size()));
    file.read(0, begin, bytes);
    return SetIndex::may_begin({begin, bytes});
}

// ---- In a folder ------------------------------------------------------------------------------------------------

// Drops indexes of other programs from the list, if the list has an index of this format.
void leave_ours(std::vector<std::string> &indexes)
{
    if (!std::ranges::all_of(indexes, is_index_of_others))
        std::erase_if(indexes, is_index_of_others);
}

// Drops the files named by an index from the list, whatever their names.
void leave_out_named(std::vector<std::string> &files, const std::string &index_path,
                     const char *call)
{
    const ReadFile file(call, index_path);
    const SetIndex index =
        SetIndex::read(read_index_text(file, index_path.c_str()), index_path.c_str());
    for (size_t i = 0; i < index.file_count(); ++i) std::erase(files, index.file(i));
}

std::string listed(const std::vector<std::string> &names)
{
    constexpr size_t kMost = 10;
    std::string text;
    for (size_t i = 0; i < std::min(kMost, names.size()); ++i)
        text += (i ? ", '" : "'") + shown_name(names[i]) + "'";
    if (names.size() > kMost) text += format(" and %zu more", names.size() - kMost);
    return text.empty() ? "nothing" : text;
}

[[noreturn]] void refuse_folder(const std::string &folder, const std::vector<std::string> &names,
                                const char *call)
{
    std::vector<std::string> steps;
    for (const FoundFolder &each : find_folders(names))
        if (step_of(each.name)) steps.push_back(each.place);
    if (!steps.empty())
        fail_no_state(format(
            "%s: '%s' is a CheckpointManager's folder, with %s; CheckpointManager('%s').load() loads the newest complete step, or name the folder of a step",
            call, folder.c_str(), listed(steps).c_str(), folder.c_str()));
    fail_no_state(
        format("%s: '%s' has neither a safetensors file nor the index of a set; found: %s", call,
               folder.c_str(), listed(names).c_str()));
}

// Returns the path of the file or index in a folder. Raises YOKE_E_CHECKPOINT, with the folder's contents, if the
// folder has neither or several.
std::string find_in_folder(const std::string &folder, const char *call)
{
    const Descriptor open = open_folder(call, folder);
    std::vector<std::string> names, indexes, files;
    if (file_calls().list(open.get(), &names) != 0) fail_io(call, "list", folder, errno);
    std::ranges::sort(names);
    for (const std::string &name : names) {
        if (name.starts_with('.')) continue;
        // If a set replaces a file, the file is removed last; if a file replaces a set, the file is written first.
        if (is_index_name(name) && !std::ranges::binary_search(names, file_of_index(name)))
            indexes.push_back(name);
        const bool has_index = std::ranges::binary_search(names, index_name(name));
        if (has_index || (name.ends_with(".safetensors") && !is_one_of_several(name)))
            files.push_back(name);
    }
    leave_ours(indexes);
    const std::string within = folder.ends_with('/') ? folder : folder + "/";
    if (indexes.size() == 1) leave_out_named(files, within + indexes[0], call);
    std::vector<std::string> found = indexes;
    found.insert(found.end(), files.begin(), files.end());
    if (found.size() == 1) return within + found[0];
    if (found.empty()) refuse_folder(folder, names, call);
    fail_no_state(format("%s: '%s' has several states, %s; name one of them", call, folder.c_str(),
                         listed(found).c_str()));
}

}  // namespace

FoundState find_state(const std::string &path, const char *call)
{
    std::string place = path;
    struct stat status {};
    if (is_there(path, &status) && S_ISDIR(status.st_mode)) place = find_in_folder(path, call);
    if (!is_there(place, &status) && errno == ENOENT) {
        const std::string index = index_in_place_of(place, call);
        if (!index.empty()) place = index;
    }
    FoundState found{place, ReadFile(call, place)};
    found.is_index = is_index(*found.file);
    if (found.is_index) found.index = read_index_text(*found.file, place.c_str());
    return found;
}

}  // namespace yoke
