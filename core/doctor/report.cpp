#include "core/doctor/report.h"

#include "core/base/error.h"
#include "core/doctor/probe.h"
#include "core/machine/snapshot.h"

namespace yoke::doctor {

namespace {

constexpr struct {
    int number;
    Finding (*run)(const Facts &);
    const char *id, *title, *url;
} kChecks[] = {
#define YOKE_CHECK(number, name, id, title, url) {number, check_##name, id, title, url},
#include "core/doctor/checks.def"
#undef YOKE_CHECK
};

constexpr bool in_order()
{
    int last = 0;
    for (const auto &check : kChecks)
        if (check.number != ++last) return false;
    return true;
}
static_assert(in_order(), "checks.def: numbers run from 1 without a gap");

}  // namespace

Facts gather(RecordedRoot &root, const Options &options)
{
    std::optional<ConfigProblem> problem;
    Machine machine;
    try {
        machine = take_inventory();
    } catch (const Error &error) {
        if (error.status() != YOKE_E_VALUE) throw;
        // If a variable is unreadable, the other checks still run.
        problem = {"", error.what()};
    }
    Facts facts = read_facts(root, std::move(machine));
    if (facts.config_problems.empty() && problem) facts.config_problems = {*problem};
    facts.no_probes = "probes were not requested";
    if (RecordedRoot::is_foreign())
        read_probes(root, facts);
    else if (options.probe)
        run_probes(root, facts, options.deadline);
    return facts;
}

Report examine(const Facts &facts)
{
    Report report;
    for (const auto &check : kChecks) {
        Finding finding;
        try {
            finding = check.run(facts);
        } catch (const std::exception &error) {
            finding = found(
                kFail, std::string("the check itself failed: ") + error.what(),
                "report this error, with the folder that yoke doctor --record --redact DIR writes");
            report.exit_code = 2;
        }
        if (finding.status == kFail && report.exit_code == 0) report.exit_code = 1;
        report.checks.push_back(
            {check.number, check.id, check.title, check.url, std::move(finding)});
    }
    return report;
}

void redact(Report &report, Redactor &redactor)
{
    for (Check &check : report.checks) {
        check.finding.evidence = redactor(check.finding.evidence);
        check.finding.remedy = redactor.patterns(check.finding.remedy);
    }
}

const char *status_word(int status)
{
    constexpr const char *kWords[] = {"ok", "warn", "fail", "skip"};
    return kWords[status];
}

}  // namespace yoke::doctor
