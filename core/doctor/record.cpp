// A recording: the facts of a report, in a folder from which the same report can be made again.
//
//   scenario.json   the machine in the form of tests/fakes/edge, for the fake management library
//   root/           the files read by the inventory and the checks, under their own paths
//   environment     lines NAME=value of the variables that count
//   report.json     the report
#include "core/base/error.h"
#include "core/doctor/report.h"
#ifndef YOKE_WITHOUT_JSON
#include "core/doctor/scenario.h"
#include "core/doctor/tree.h"

#include <nlohmann/json.hpp>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace yoke::doctor {

namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

void write_file(const fs::path &path, const std::string &text)
{
    std::error_code problem;
    fs::create_directories(path.parent_path(), problem);
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file << text;
    file.close();
    if (problem || !file)
        fail(YOKE_E_IO,
             "doctor_record: %s cannot be written: %s; give a folder that this user may write",
             path.c_str(), problem ? problem.message().c_str() : strerror(errno));
}

std::string dumped(const ordered_json &json)
{
    return json.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

ordered_json report_json(const Report &report)
{
    ordered_json checks = ordered_json::array();
    for (const Check &check : report.checks)
        checks.push_back({{"number", check.number},
                          {"id", check.id},
                          {"title", check.title},
                          {"status", status_word(check.finding.status)},
                          {"card", check.finding.card},
                          {"evidence", check.finding.evidence},
                          {"remedy", check.finding.remedy},
                          {"url", check.url}});
    return {{"exit_code", report.exit_code}, {"checks", checks}};
}

// Redacts all text values, but no keys. Names are redacted only in values that may name a person or a process: other
// words ("driver": "nvidia") have a meaning.
void redact_values(ordered_json &json, Redactor &redactor, bool is_name = false,
                   bool of_process = false)
{
    if (json.is_string()) {
        const std::string text = json.get<std::string>();
        json = is_name ? redactor.name(text) : redactor.numbers(text);
    }
    if (json.is_array())
        for (ordered_json &part : json) redact_values(part, redactor, is_name, of_process);
    if (json.is_object())
        for (auto &[key, part] : json.items())
            redact_values(part, redactor,
                          key == "user" || (of_process && (key == "name" || key == "container")),
                          key == "processes");
}

std::string environment_of(const Facts &facts, Redactor *redactor)
{
    std::string text;
    for (const auto &[name, value] : facts.variables) {
        // Variables of the doctor itself do not describe the recorded machine.
        if (name == "YOKE_SYSROOT" || name == "YOKE_NVML_PATH" || name == "YOKE_FAKE_SCENARIO")
            continue;
        // A path may contain a user's name. "cuda:0" never does, even if a user has this name.
        const bool is_path = value.find('/') != value.npos;
        text += name + "=" +
                (!redactor ? value
                 : is_path ? redactor->patterns(value)
                           : redactor->numbers(value)) +
                "\n";
    }
    return text;
}

// Returns the tree with redacted texts, links and paths. The paths are redacted like the texts that name them. So a
// library found by LD_LIBRARY_PATH is at the redacted path.
Tree redacted(const Tree &tree, Redactor &redactor)
{
    Tree made;
    for (const std::string &path : tree.folders) made.folders.insert(redactor.patterns(path));
    for (const auto &[path, text] : tree.texts)
        made.texts[redactor.patterns(path)] = redacted_file(redactor, path, text);
    for (const auto &[path, target] : tree.links)
        made.links[redactor.patterns(path)] = redactor.patterns(target);
    return made;
}

// Returns the place of a path in a recording; "" for a relative path, which is no file of the recorded root.
// LD_LIBRARY_PATH may name "../../lib", and no file may be written outside the recording.
std::string place_in(const fs::path &folder, const std::string &path)
{
    const fs::path normal = fs::path(path).lexically_normal();
    return normal.is_absolute() ? folder.string() + normal.string() : "";
}

void write_link(const std::string &place, const std::string &target)
{
    std::error_code problem;
    fs::create_directories(fs::path(place).parent_path(), problem);
    fs::remove(place, problem);
    fs::create_symlink(target, place, problem);
    if (problem)
        fail(YOKE_E_IO, "doctor_record: the link %s cannot be created: %s", place.c_str(),
             problem.message().c_str());
}

// Writes files and links under root/. Links come last, so no file is written through a link.
void write_root(const fs::path &folder, const Tree &tree)
{
    for (const std::string &path : tree.folders) {
        std::error_code ignored;  // a file below may exist already; its write reports errors
        const std::string place = place_in(folder, path);
        if (!place.empty()) fs::create_directories(place, ignored);
    }
    for (const auto &[path, text] : tree.texts) {
        const std::string place = place_in(folder, path);
        if (!place.empty()) write_file(place, text);
    }
    for (const auto &[path, target] : tree.links) {
        const std::string place = place_in(folder, path);
        if (!place.empty()) write_link(place, target);
    }
}

// Raises if the folder has entries. In an older recording, links would redirect the new files.
void need_empty(const fs::path &folder)
{
    std::error_code problem;
    if (fs::is_directory(folder, problem) && !fs::is_empty(folder, problem) && !problem)
        fail(YOKE_E_IO, "doctor_record: the folder %s is not empty; name a new or an empty folder",
             folder.c_str());
}

}  // namespace

void record(const std::string &folder, const Options &options)
{
    need_empty(folder);
    RecordedRoot root;
    const Facts facts = gather(root, options);
    Report report = examine(facts);
    Redactor redactor = redactor_of(facts.machine, root);
    Tree tree = tree_of(facts, root);
    ordered_json scenario = scenario_of(facts);
    if (options.redact) {
        redact(report, redactor);
        tree = redacted(tree, redactor);
        redact_values(scenario, redactor);
    }
    const fs::path place(folder);
    write_root(place / "root", tree);
    write_file(place / "scenario.json", dumped(scenario));
    write_file(place / "environment", environment_of(facts, options.redact ? &redactor : nullptr));
    write_file(place / "report.json", dumped(report_json(report)));
}

}  // namespace yoke::doctor

#else

namespace yoke::doctor {

void record(const std::string &, const Options &)
{
    fail(
        YOKE_E_UNSUPPORTED,
        "doctor_record: this libyoke was built without nlohmann-json, which writes recordings; install it (Debian: nlohmann-json3-dev) and build again");
}

}  // namespace yoke::doctor

#endif  // YOKE_WITHOUT_JSON
