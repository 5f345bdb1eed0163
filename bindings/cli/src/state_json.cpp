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

using State = std::unique_ptr<yoke_state, Releaser<yoke_state_release>>;
using Manager = std::unique_ptr<yoke_checkpoint_manager, Releaser<yoke_checkpoint_manager_release>>;

Json json_of(yoke_state *node);

Json entries_of(yoke_state *node, bool is_dict)
{
    Json all = is_dict ? Json::object() : Json::array();
    Json::object_t::Container
        pairs;  // whose keys are no two the same: to look each up would take long
    for (int64_t i = 0; i < yoke_state_count(node); ++i) {
        yoke_state_key key{};
        key.struct_size = sizeof key;
        const State entry = make<State>(yoke_state_entry, node, i, &key);
        if (is_dict)
            pairs.emplace_back(std::string(key.text, static_cast<size_t>(key.length)),
                               json_of(entry.get()));
        else
            all.push_back(json_of(entry.get()));
    }
    if (is_dict)
        static_cast<Json::object_t::Container &>(all.get_ref<Json::object_t &>()).swap(pairs);
    return all;
}

// Of what yoke_load_info gives, which has neither floats nor tensors.
Json json_of(yoke_state *node)
{
    int32_t truth = 0;
    int64_t number = 0;
    const char *text = nullptr;
    switch (const int32_t kind = yoke_state_kind(node, "")) {
        case YOKE_STATE_BOOL:
            check(yoke_state_get_bool(node, "", &truth));
            return truth != 0;
        case YOKE_STATE_INT:
            check(yoke_state_get_int(node, "", &number));
            return number;
        case YOKE_STATE_STRING:
            check(yoke_state_get_string(node, "", &text, &number));
            return std::string(text, static_cast<size_t>(number));
        case YOKE_STATE_LIST:
        case YOKE_STATE_DICT:
            return entries_of(node, kind == YOKE_STATE_DICT);
        default:
            return nullptr;
    }
}

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

// Reads a file from one end to the other, as far as the disk gives it.
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

// Files of a set lie beside its index, or beside what that is a link to.
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

// A tensor of a dtype that Yoke lacks does not load; the file may be whole all the same.
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

}  // namespace

Json state_json(const std::string &path, bool verify)
{
    Json info{{"path", path}};
    try {
        info = json_of(make<State>(yoke_load_info, path.c_str()).get());
        info["totals"] = totals_of(info["tensors"]);
        const bool is_read = verify && info["has_tree"] == true && loads(info["tensors"]);
        if (is_read) make<State>(yoke_load, path.c_str(), nullptr);
    } catch (const Failure &failure) {
        if (failure.status != YOKE_E_CHECKPOINT) throw;
        info.update(verdict(verify, failure.what()));
        return info;
    }
    if (verify) read_files(info);
    info.update(verdict(verify, nullptr));
    return info;
}

// ---- Checkpoints ------------------------------------------------------------------------------------------------

namespace {

// The numbers N of its folders step-N.
std::vector<int64_t> steps_in(const std::string &path)
{
    constexpr std::string_view kBegin = "step-";
    std::vector<int64_t> steps;
    std::error_code unreadable;
    for (const auto &entry : std::filesystem::directory_iterator(path, unreadable)) {
        const std::string name = entry.path().filename().string();
        int64_t step = 0;
        if (!name.starts_with(kBegin) || !entry.is_directory(unreadable)) continue;
        const auto [end, error] = std::from_chars(&name[kBegin.size()], &*name.end(), step);
        if (error == std::errc() && *end == '\0' && step >= 0) steps.push_back(step);
    }
    std::ranges::sort(steps);
    return steps;
}

// What its manifest says beside what is verified; null where it says nothing.
Json manifest_of(const std::string &folder)
{
    std::ifstream file(folder + "/MANIFEST.json");
    const Json manifest = Json::parse(file, nullptr, false);
    return manifest.is_object() ? manifest : Json::object();
}

Json checkpoint_json(yoke_checkpoint_manager *manager, const std::string &path, int64_t step,
                     bool verify)
{
    const std::string folder = path + "/step-" + std::to_string(step);
    const Json manifest = manifest_of(folder);
    Json one{{"step", step},
             {"commit", manifest.value("commit", Json())},
             {"time", manifest.value("time", Json())},
             {"bytes", nullptr},
             {"tensors", nullptr}};
    if (!one["time"].is_string()) one["time"] = nullptr;
    try {
        const Json info = json_of(make<State>(yoke_load_info, folder.c_str()).get());
        one["bytes"] = info["bytes"];
        one["tensors"] = info["tensors"].size();
        make<State>(yoke_checkpoint_manager_load, manager, step, nullptr, verify, nullptr);
        one.update(verdict(verify, nullptr));
    } catch (const Failure &failure) {
        if (failure.status != YOKE_E_CHECKPOINT) throw;
        one.update(verdict(verify, failure.what()));
    }
    return one;
}

}  // namespace

bool holds_checkpoints(const std::string &path)
{
    return !steps_in(path).empty();
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
        is_whole = is_whole && steps.back()["whole"] == true;
    }
    return {{"path", path},
            {"kind", "checkpoints"},
            {"latest", latest < 0 ? Json() : Json(latest)},
            {"whole", is_whole},
            {"steps", steps}};
}

}  // namespace yoke::cli
