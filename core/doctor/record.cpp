// A recording: what a report rested on, in a folder from which the same report can be had again.
//
//   scenario.json   the machine, as tests/fakes/edge renders it: the fake management library answers from this
//   root/           the files that the inventory and the checks read, under their own paths
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
#include <functional>

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
             "doctor_record: %s cannot be written: %s; give a folder that this user may "
             "write",
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

// Values alone: a process may have the name of one of the keys.
void redact_values(ordered_json &json, const std::function<std::string(std::string)> &show)
{
    if (json.is_string())
        json = show(json.get<std::string>());
    else if (json.is_structured())
        for (ordered_json &part : json) redact_values(part, show);
}

std::string environment_of(const Facts &facts, const std::function<std::string(std::string)> &show)
{
    std::string text;
    for (const auto &[name, value] : facts.variables)
        // Of the machine that is recorded, not of how it was looked at.
        if (name != "YOKE_SYSROOT" && name != "YOKE_NVML_PATH" && name != "YOKE_FAKE_SCENARIO")
            text += name + "=" + show(value) + "\n";
    return text;
}

// Files and links under root/, redacted line by line where asked for.
void write_root(const fs::path &folder, const Tree &tree,
                const std::function<std::string(std::string)> &show)
{
    for (const std::string &path : tree.folders) {
        std::error_code
            ignored;  // a file below it may stand there already; what lacks is told there
        fs::create_directories(folder.string() + path, ignored);
    }
    for (const auto &[path, text] : tree.texts) write_file(folder.string() + path, show(text));
    for (const auto &[path, target] : tree.links) {
        std::error_code problem;
        fs::create_directories(fs::path(folder.string() + path).parent_path(), problem);
        fs::remove(folder.string() + path, problem);
        fs::create_symlink(target, folder.string() + path, problem);
        if (problem)
            fail(YOKE_E_IO, "doctor_record: the link %s%s cannot be made: %s", folder.c_str(),
                 path.c_str(), problem.message().c_str());
    }
}

}  // namespace

void record(const std::string &folder, const Options &options)
{
    Root root;
    const Facts facts = gather(root, options);
    Report report = examine(facts);
    Redactor redactor(facts.machine, root.line("/proc/sys/kernel/hostname"));
    const std::function<std::string(std::string)> show = [&](const std::string &text) {
        return options.redact ? redactor(text) : text;
    };
    if (options.redact) redact(report, redactor);
    const fs::path place(folder);
    write_root(place / "root", tree_of(facts, root), show);
    ordered_json scenario = scenario_of(facts);
    redact_values(scenario, show);
    write_file(place / "scenario.json", dumped(scenario));
    write_file(place / "environment", environment_of(facts, show));
    write_file(place / "report.json", dumped(report_json(report)));
}

}  // namespace yoke::doctor

#else

namespace yoke::doctor {

void record(const std::string &, const Options &)
{
    fail(YOKE_E_UNSUPPORTED,
         "doctor_record: this libyoke was built without nlohmann-json, which writes recordings; "
         "install it (Debian: nlohmann-json3-dev) and build again");
}

}  // namespace yoke::doctor

#endif  // YOKE_WITHOUT_JSON
