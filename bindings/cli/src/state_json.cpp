#include "bindings/cli/src/state_json.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <system_error>

namespace yoke::cli {

namespace {

constexpr const char *kManifest = "MANIFEST.json", *kState = "state.safetensors";

using Manager = std::unique_ptr<yoke_checkpoint_manager, Releaser<yoke_checkpoint_manager_release>>;

Json totals_of(const Json &tensors)
{
    std::map<std::string, std::pair<int64_t, int64_t>> totals;
    for (const Json &tensor : tensors) {
        auto &[count, bytes] = totals[tensor["dtype"]];
        ++count;
        bytes += tensor["bytes"].get<int64_t>();
    }
    Json all = Json::object();
    for (const auto &[dtype, total] : totals)
        all[dtype] = {{"tensors", total.first}, {"bytes", total.second}};
    return all;
}

// Reads a whole file, so that errors of the disk show.
void read_all(const std::filesystem::path &path)
{
    std::ifstream file(path, std::ios::binary);
    std::vector<char> chunk(size_t{1} << 20);
    errno = 0;
    while (file.read(chunk.data(), static_cast<std::streamsize>(chunk.size()))) {
    }
    if (file.bad() || !file.eof())
        throw std::runtime_error("cannot read '" + path.string() +
                                 "': " + std::generic_category().message(errno ? errno : EIO));
}

// Reads the files of a set beside its index, or beside the target of an index that is a link.
void read_files(const Json &info)
{
    const std::filesystem::path path = info["path"].get<std::string>();
    for (const auto &[name, bytes] : info["files"].items()) {
        std::filesystem::path file = path.parent_path() / name;
        if (!std::filesystem::exists(file))
            file = std::filesystem::canonical(path).parent_path() / name;
        read_all(file);
    }
}

// Returns whether Yoke knows the dtypes of all tensors. A tensor with an unknown dtype does not load, but the file
// may be whole.
bool loads(const Json &tensors)
{
    return std::ranges::all_of(tensors, [](const Json &tensor) {
        yoke_dtype dtype = YOKE_NONE;
        return yoke_dtype_from_name(tensor["dtype"].get<std::string>().c_str(), &dtype) == YOKE_OK;
    });
}

Json verdict(bool verified, const char *problem)
{
    return {{"whole", problem == nullptr},
            {"verified", verified},
            {"problem", problem ? Json(problem) : Json()}};
}

// ---- Steps of a CheckpointManager -------------------------------------------------------------------------------

// Returns the number of a step by its name, 7 for "step-7"; below 0 for any other name.
int64_t step_of(const std::string &name)
{
    constexpr std::string_view kBegin = "step-";
    int64_t step = 0;
    if (!name.starts_with(kBegin)) return -1;
    const auto [end, error] = std::from_chars(&name[kBegin.size()], &*name.end(), step);
    return error == std::errc() && *end == '\0' ? step : -1;
}

// Returns the numbers N of a folder's folders step-N, in order.
std::vector<int64_t> steps_in(const std::string &path)
{
    std::vector<int64_t> steps;
    std::error_code unreadable;
    for (const auto &entry : std::filesystem::directory_iterator(path, unreadable)) {
        const int64_t step = step_of(entry.path().filename().string());
        if (step >= 0 && entry.is_directory(unreadable)) steps.push_back(step);
    }
    std::ranges::sort(steps);
    return steps;
}

bool has_file(const std::filesystem::path &folder, const char *name)
{
    std::error_code unreadable;
    return std::filesystem::exists(folder / name, unreadable);
}

// Returns whether a folder step-N has no file of a manager.
bool is_foreign(const std::string &folder)
{
    return !has_file(folder, kManifest) && !has_file(folder, kState);
}

// Returns the facts of the manifest that verification does not use; missing facts are null.
Json manifest_of(const std::string &folder)
{
    std::ifstream file(folder + "/" + kManifest);
    const Json manifest = Json::parse(file, nullptr, false);
    return manifest.is_object() ? manifest : Json::object();
}

Json step_json(const std::string &folder, int64_t step)
{
    const Json manifest = manifest_of(folder);
    Json one{{"step", step},
             {"commit", manifest.value("commit", Json())},
             {"time", manifest.value("time", Json())}};
    if (!one["time"].is_string()) one["time"] = nullptr;
    return one;
}

Json checkpoint_json(yoke_checkpoint_manager *manager, const std::string &path, int64_t step,
                     bool verify)
{
    const std::string folder = path + "/step-" + std::to_string(step);
    Json one = step_json(folder, step);
    one.update({{"bytes", nullptr}, {"tensors", nullptr}});
    if (is_foreign(folder)) {
        one.update(verdict(false, "no CheckpointManager wrote this folder"));
        one["whole"] = nullptr;
        return one;
    }
    try {
        const Json info = tree_json(make<Tree>(yoke_load_info, folder.c_str()).get());
        one["bytes"] = info["bytes"];
        one["tensors"] = info["tensors"].size();
        make<Tree>(yoke_checkpoint_manager_load, manager, step, nullptr, verify, nullptr);
        one.update(verdict(verify, nullptr));
    } catch (const Failure &failure) {
        if (failure.status != YOKE_E_CHECKPOINT) throw;
        one.update(verdict(verify, failure.what()));
    }
    return one;
}

// Returns the folder of the step whose state a path names, with its manifest; "" if no manager wrote it.
std::filesystem::path step_folder(const std::string &path)
{
    std::error_code unreadable;
    std::filesystem::path place = std::filesystem::canonical(path, unreadable);
    if (place.filename() == kState) place = place.parent_path();
    const bool is_step = step_of(place.filename().string()) >= 0 && has_file(place, kManifest);
    return is_step ? place : std::filesystem::path();
}

// Reads a state's facts into `info`, and checks the state. Raises Failure for damage.
void read_state(const std::string &path, bool verify, Json &info)
{
    info = tree_json(make<Tree>(yoke_load_info, path.c_str()).get());
    info["totals"] = totals_of(info["tensors"]);
    if (const std::filesystem::path folder = step_folder(path); !folder.empty()) {
        const int64_t step = step_of(folder.filename().string());
        info.update(step_json(folder.string(), step));
        const Manager manager =
            make<Manager>(yoke_checkpoint_manager_open, folder.parent_path().c_str(), 1);
        make<Tree>(yoke_checkpoint_manager_load, manager.get(), step, nullptr, verify, nullptr);
    } else if (verify && info["has_tree"] == true && loads(info["tensors"])) {
        make<Tree>(yoke_load, path.c_str(), nullptr);
    }
}

}  // namespace

Json state_json(const std::string &path, bool verify)
{
    Json info{{"path", path}};
    try {
        read_state(path, verify, info);
    } catch (const Failure &failure) {
        const bool is_a_state = failure.native_code != EINVAL;
        if (failure.status != YOKE_E_CHECKPOINT || !is_a_state) throw;
        info.update(verdict(verify, failure.what()));
        return info;
    }
    if (verify) read_files(info);
    info.update(verdict(verify, nullptr));
    return info;
}

bool holds_checkpoints(const std::string &path)
{
    return std::ranges::any_of(steps_in(path), [&](int64_t step) {
        return !is_foreign(path + "/step-" + std::to_string(step));
    });
}

Json checkpoints_json(const std::string &path, bool verify)
{
    const Manager manager = make<Manager>(yoke_checkpoint_manager_open, path.c_str(), 1);
    int64_t latest = -1;
    check(yoke_checkpoint_manager_latest(manager.get(), &latest));
    Json steps = Json::array();
    bool is_whole = true;
    for (const int64_t step : steps_in(path)) {
        steps.push_back(checkpoint_json(manager.get(), path, step, verify));
        is_whole = is_whole && steps.back()["whole"] != false;
    }
    return {{"path", path},
            {"kind", "checkpoints"},
            {"latest", latest < 0 ? Json() : Json(latest)},
            {"whole", is_whole},
            {"steps", steps}};
}

}  // namespace yoke::cli
