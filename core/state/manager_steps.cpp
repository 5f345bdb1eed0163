#include "core/state/manager_steps.h"

#include "core/base/text.h"
#include "core/state/hash.h"
#include "core/state/new_folder.h"

#include <fcntl.h>

#include <algorithm>
#include <tuple>

namespace yoke {

namespace {

constexpr std::string_view kStep = "step-";
constexpr uint64_t kMostManifest = uint64_t{1} << 20, kHashPart = uint64_t{1} << 20;

enum class Found { kFile, kNothing, kOther };

// Returns the kind of entry at a path, without following a link, and its size in *bytes. Raises YOKE_E_IO if the
// system refuses.
Found look_at(const std::string &path, uint64_t *bytes, const char *call)
{
    struct stat status {};
    if (file_calls().status(AT_FDCWD, path.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
        if (errno == ENOENT) return Found::kNothing;
        fail_io(call, "look at", path, errno);
    }
    *bytes = static_cast<uint64_t>(status.st_size);
    return S_ISREG(status.st_mode) ? Found::kFile : Found::kOther;
}

void check_there(const std::string &path, uint64_t *bytes, const char *call)
{
    const Found found = look_at(path, bytes, call);
    if (found == Found::kNothing) fail(YOKE_E_CHECKPOINT, "%s is missing", path.c_str());
    if (found == Found::kOther)
        fail(YOKE_E_CHECKPOINT,
             "%s is a link or a folder; the files of a step must be plain files in its own folder",
             path.c_str());
}

void check_size(uint64_t bytes, const StepFile &stored, const std::string &path)
{
    if (bytes != stored.bytes)
        fail(YOKE_E_CHECKPOINT,
             "%s has %llu bytes, but its manifest says %llu: the file was cut short or changed",
             path.c_str(), static_cast<unsigned long long>(bytes),
             static_cast<unsigned long long>(stored.bytes));
}

void read_step(FoundStep &found, const char *call)
{
    const std::string path = found.path + "/" + kManifestName;
    uint64_t bytes = 0;
    check_there(path, &bytes, call);
    const ReadFile file(call, path);
    if (file.size() > kMostManifest)
        fail(YOKE_E_CHECKPOINT, "%s has %llu bytes; a manifest has at most %llu", path.c_str(),
             static_cast<unsigned long long>(file.size()),
             static_cast<unsigned long long>(kMostManifest));
    std::string text(file.size(), '\0');
    file.read(0, text.data(), text.size());
    found.manifest = read_manifest(text, path.c_str());
    if (found.manifest->step != found.step)
        fail(YOKE_E_CHECKPOINT, "%s says step %lld; the folder of a step must keep its name",
             path.c_str(), static_cast<long long>(found.manifest->step));
    for (const StepFile &each : found.manifest->files) {
        check_there(found.path + "/" + each.name, &bytes, call);
        check_size(bytes, each, found.path + "/" + each.name);
    }
}

// Returns whether the folder has a manifest. A step gets its name with the manifest inside. Without a manifest,
// another program wrote the folder, and Yoke must not remove it.
bool has_manifest(const FoundStep &found, const char *call)
{
    uint64_t bytes = 0;
    return look_at(found.path + "/" + kManifestName, &bytes, call) != Found::kNothing;
}

FoundStep found_step(int64_t step, std::string path, const char *call)
{
    FoundStep found;
    found.step = step;
    found.path = std::move(path);
    try {
        found.is_ours = has_manifest(found, call);
        read_step(found, call);
    } catch (const Error &error) {
        if (error.status() != YOKE_E_CHECKPOINT && error.status() != YOKE_E_IO) throw;
        found.failure = std::current_exception();
        found.problem = error.what();
        found.is_refused = error.status() == YOKE_E_IO;
    }
    return found;
}

std::vector<FoundStep> look_for_steps(const std::string &folder, const char *call)
{
    struct stat status {};
    const int known = file_calls().status(AT_FDCWD, folder.c_str(), &status, 0);
    if (known != 0 && errno == ENOENT) return {};
    return find_steps(folder, list_folder(call, folder), call);
}

}  // namespace

std::string step_name(int64_t step)
{
    return std::string(kStep) + std::to_string(step);
}

std::optional<int64_t> step_of(std::string_view name)
{
    if (!name.starts_with(kStep)) return {};
    const std::optional<int64_t> step = parsed<int64_t>(name.substr(kStep.size()));
    return step && *step >= 0 && step_name(*step) == name ? step : std::nullopt;
}

bool is_same_step(const FoundStep &a, const FoundStep &b)
{
    return a.path == b.path && a.commit() == b.commit() && !a.failure == !b.failure &&
           a.is_refused == b.is_refused;
}

std::vector<FoundStep> find_steps(const std::string &folder, const char *call)
{
    const auto is_whole = [](const FoundStep &each) { return !each.failure; };
    constexpr int kMostLooks = 100;
    std::vector<FoundStep> steps = look_for_steps(folder, call);
    for (int i = 1; i < kMostLooks; ++i) {
        if (!steps.empty() && std::ranges::all_of(steps, is_whole)) return steps;
        // Either a writer was at work, or the step is damaged. In the second case, the next look gives the same
        // result.
        std::vector<FoundStep> again = look_for_steps(folder, call);
        const bool is_so = std::ranges::equal(steps, again, is_same_step);
        steps = std::move(again);
        if (is_so) return steps;
    }
    return steps;
}

std::vector<FoundStep> find_steps(const std::string &folder,
                                  const std::vector<std::string> &entries, const char *call)
{
    std::vector<FoundStep> steps;
    for (const FoundFolder &each : find_folders(entries)) {
        const std::optional<int64_t> step = step_of(each.name);
        std::string path = folder + "/" + each.place;
        if (is_folder(call, path) && step)
            steps.push_back(found_step(*step, std::move(path), call));
    }
    std::ranges::sort(steps, {}, [](const FoundStep &each) {
        return std::tuple(!each.is_damaged(), each.is_unknown(), each.commit(), each.step);
    });
    return steps;
}

std::optional<FoundStep> find_step(const std::string &folder,
                                   const std::vector<std::string> &entries, int64_t step,
                                   const char *call)
{
    const std::string place = find_folder(step_name(step), entries);
    std::string path = folder + "/" + place;
    if (place.empty() || !is_folder(call, path)) return {};
    return found_step(step, std::move(path), call);
}

void check_file(const ReadFile &file, const StepFile &stored, const std::string &path)
{
    check_size(file.size(), stored, path);
    // Read, not mapped: what a disk cannot give is an error then, and no end of the process.
    std::string part(std::min(stored.bytes, kHashPart), '\0');
    Hash128 hash;
    for (uint64_t done = 0; done < stored.bytes; done += part.size()) {
        const uint64_t bytes = std::min<uint64_t>(part.size(), stored.bytes - done);
        file.read(done, part.data(), bytes);
        hash.add(part.data(), bytes);
    }
    if (const std::string found = hash.text(); found != stored.hash)
        fail(YOKE_E_CHECKPOINT, "%s has the hash %s, but its manifest says %s: the file is damaged",
             path.c_str(), found.c_str(), stored.hash.c_str());
}

}  // namespace yoke
