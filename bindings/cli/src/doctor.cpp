// yoke doctor: problems of this machine's GPUs and their remedies, or the proof that Yoke was switched off.
#include "bindings/cli/src/command.h"
#include "bindings/cli/src/json.h"
#include "bindings/cli/src/text.h"

#include <cstdio>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

namespace yoke::cli {

int verify_off(bool json);  // verify_off.cpp

namespace {

struct DoctorOptions {
    bool json = false, redact = false, all = false, verify_off = false, no_probe = false;
    double deadline = 0;
    std::string record;
};

constexpr int kIndent = 8;  // columns of "warn 12 "

struct Look {
    const char *name;
    Colour colour;
};
Look look_of(int32_t status)
{
    static constexpr Look looks[] = {{"ok", Colour::kGood},
                                     {"warn", Colour::kWarn},
                                     {"fail", Colour::kBad},
                                     {"skip", Colour::kDim}};
    return looks[status];
}

// Result of a check, from a report or a recording.
struct Answer {
    int32_t number, status, card;
    std::string id, title, evidence, remedy, url;
};

struct Examination {
    std::vector<Answer> answers;
    int exit_code;
};

Json answer_json(const Answer &one)
{
    return {{"number", one.number},
            {"id", one.id},
            {"status", look_of(one.status).name},
            {"card", one.card < 0 ? Json() : Json(one.card)},
            {"title", one.title},
            {"evidence", one.evidence},
            {"remedy", one.remedy},
            {"url", one.url}};
}

// Prints "warn  1 expected: " and the title, which describes a machine without the defect, then "found: " and the
// evidence.
void print_answer(const Answer &one, int width)
{
    const Look look = look_of(one.status);
    const bool is_defect = one.status == YOKE_CHECK_WARN || one.status == YOKE_CHECK_FAIL;
    printf("%s %2d ",
           coloured(look.colour, std::string(look.name) + (look.name[2] ? "" : "  ")).c_str(),
           one.number);
    const std::string heading =
        wrapped((is_defect ? "expected: " : "") + one.title + " [" + one.id + "]", width, kIndent);
    fputs(heading.c_str() + kIndent, stdout);
    const char *const front = is_defect                       ? "found: "
                              : one.status == YOKE_CHECK_SKIP ? "not checked: "
                                                              : "";
    fputs(wrapped(front + one.evidence, width, kIndent).c_str(), stdout);
    if (!is_defect) return;
    for (std::string_view rest = one.remedy; !rest.empty();) {  // a command must not be broken
        const size_t end = std::min(rest.find('\n'), rest.size());
        printf("      > %.*s\n", static_cast<int>(end), rest.data());
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    if (!one.url.empty()) printf("        %s\n", coloured(Colour::kDim, one.url).c_str());
}

void print_text(const Examination &examination, bool all)
{
    int counts[4] = {};
    const int width = terminal_width();
    for (const Answer &one : examination.answers) {
        ++counts[one.status];
        if (all || one.status == YOKE_CHECK_WARN || one.status == YOKE_CHECK_FAIL)
            print_answer(one, width);
    }
    printf("%zu checks: %d ok, %d warn, %d fail, %d do not apply here%s\n",
           examination.answers.size(), counts[0], counts[1], counts[2], counts[3],
           all ? "" : " (--all shows each)");
}

uint32_t flags_of(const DoctorOptions &options)
{
    return (options.no_probe ? 0 : YOKE_DOCTOR_PROBE) | (options.redact ? YOKE_DOCTOR_REDACT : 0);
}

Examination examined(const DoctorOptions &options)
{
    const Report report = make<Report>(yoke_doctor, flags_of(options), options.deadline);
    Examination examination{{}, yoke_report_exit_code(report.get())};
    for (int32_t i = 0; i < yoke_report_count(report.get()); ++i) {
        const auto c = get<yoke_check>(yoke_report_check, report.get(), i);
        examination.answers.push_back(
            {c.number, c.status, c.card, c.id, c.title, c.evidence, c.remedy, c.url});
    }
    return examination;
}

int32_t status_of(const std::string &word)
{
    for (const int32_t status : {YOKE_CHECK_OK, YOKE_CHECK_WARN, YOKE_CHECK_FAIL})
        if (word == look_of(status).name) return status;
    return YOKE_CHECK_SKIP;
}

// Records, and returns the recorded report. A second examination would take as long again, and a changing machine
// could show other facts than the folder.
Examination recorded(const DoctorOptions &options)
{
    check(yoke_doctor_record_v2(options.record.c_str(), flags_of(options), options.deadline));
    fprintf(stderr, "yoke: recorded in %s\n", options.record.c_str());
    std::ifstream file(options.record + "/report.json");
    const Json report = Json::parse(file);
    Examination examination{{}, report.at("exit_code").get<int>()};
    for (const Json &c : report.at("checks"))
        examination.answers.push_back({c.at("number"), status_of(c.at("status")), c.at("card"),
                                       c.at("id"), c.at("title"), c.at("evidence"), c.at("remedy"),
                                       c.at("url")});
    return examination;
}

int run(const DoctorOptions &options)
{
    if (options.verify_off) return verify_off(options.json);
    const Examination examination = options.record.empty() ? examined(options) : recorded(options);
    if (!options.json) {
        print_text(examination, options.all);
        return examination.exit_code;
    }
    Json checks = Json::array();
    for (const Answer &one : examination.answers) checks.push_back(answer_json(one));
    print_json(
        {{"version", yoke_version()}, {"exit_code", examination.exit_code}, {"checks", checks}});
    return examination.exit_code;
}

}  // namespace

void add_doctor(CLI::App &app, Action &action)
{
    auto options = std::make_shared<DoctorOptions>();
    CLI::App *command =
        app.add_subcommand("doctor", "List problems of this machine's GPUs, and their remedies");
    command->footer(
        "Exit code: 0, no check failed; 1, a check failed; 2, the doctor could not run.");
    command->add_flag("--json", options->json, "JSON output for programs; always has all checks");
    command->add_flag("--all", options->all, "Also show checks that pass or do not apply");
    command->add_flag("--redact", options->redact,
                      "Leave out host names, users, UUIDs and process names");
    command->add_flag("--no-probe", options->no_probe, "Do not run a probe on a device");
    command->add_option("--deadline", options->deadline, "Seconds that one probe may take (10)")
        ->check(seconds_between(0.1, 3600.0));
    command
        ->add_option("--record", options->record,
                     "New folder for all facts of the report, to replay the report elsewhere")
        ->check(not_empty());
    CLI::Option *off = command->add_flag(
        "--verify-off", options->verify_off,
        "Show that a disabled kind maps no library, takes no memory and starts no thread");
    for (const char *other : {"--all", "--redact", "--no-probe", "--deadline", "--record"})
        off->excludes(command->get_option(other));  // examines nothing
    command->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace yoke::cli
