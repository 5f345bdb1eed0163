#include "yoke/doctor.h"

#include "capi/src/structs.h"
#include "core/doctor/report.h"

#include <cmath>

using namespace yoke;
using namespace yoke::capi;

namespace {

doctor::Options options_of(uint32_t flags, double deadline, const char *call)
{
    constexpr uint32_t kKnown = YOKE_DOCTOR_PROBE | YOKE_DOCTOR_REDACT;
    if (flags & ~kKnown)
        fail(
            YOKE_E_VALUE,
            "%s: argument 'flags' is 0x%x; the flags are YOKE_DOCTOR_PROBE (0x%x) and YOKE_DOCTOR_REDACT (0x%x)",
            short_name(call), flags, YOKE_DOCTOR_PROBE, YOKE_DOCTOR_REDACT);
    if (std::isnan(deadline) || deadline < 0 || deadline > 3600)
        fail(YOKE_E_VALUE,
             "%s: argument 'deadline' is %g; give seconds from 0 (the default, 10) to 3600",
             short_name(call), deadline);
    doctor::Options options;
    options.probe = flags & YOKE_DOCTOR_PROBE;
    options.redact = flags & YOKE_DOCTOR_REDACT;
    if (deadline > 0) options.deadline = deadline;
    return options;
}

doctor::Report examined(const doctor::Options &options)
{
    doctor::RecordedRoot root;
    const doctor::Facts facts = doctor::gather(root, options);
    doctor::Report report = doctor::examine(facts);
    if (options.redact) {
        doctor::Redactor redactor = doctor::redactor_of(facts.machine, root);
        doctor::redact(report, redactor);
    }
    return report;
}

yoke_status record(const char *call, const char *folder, uint32_t flags, double deadline)
{
    return guard(call, [&] {
        const std::string place = &need(folder, call, "folder");
        if (place.empty())
            fail(YOKE_E_VALUE, "%s: argument 'folder' is empty; name a folder to write",
                 short_name(call));
        doctor::record(place, options_of(flags, deadline, call));
    });
}

}  // namespace

yoke_status yoke_doctor(uint32_t flags, double deadline, yoke_report **out)
{
    constexpr const char *call = "yoke_doctor";
    return guard(call, [&] {
        yoke_report *&place = need_out(out, call);
        doctor::Report report = examined(options_of(flags, deadline, call));
        auto made = Ref<yoke_report>::adopt(new yoke_report);
        made->report = std::move(report);
        place = hand_out<yoke_report>(std::move(made));
    });
}

void yoke_report_release(yoke_report *report)
{
    release_handle(report, "yoke_report_release");
}

int32_t yoke_report_count(yoke_report *report)
{
    constexpr const char *call = "yoke_report_count";
    return guard_value(call, -1, [&] {
        return static_cast<int32_t>(need(report, call, "report").report.checks.size());
    });
}

yoke_status yoke_report_check(yoke_report *report, int32_t index, yoke_check *check)
{
    constexpr const char *call = "yoke_report_check";
    return guard(call, [&] {
        const auto &checks = need(report, call, "report").report.checks;
        need(check, call, "check");
        if (index < 0 || static_cast<size_t>(index) >= checks.size())
            fail(YOKE_E_INDEX,
                 "%s: argument 'index' is %d; the report has %zu checks, counted from 0",
                 short_name(call), index, checks.size());
        const doctor::Check &of = checks[static_cast<size_t>(index)];
        yoke_check ours{};
        ours.struct_size = sizeof ours;
        ours.number = of.number;
        ours.status = of.finding.status;
        ours.card = of.finding.card;
        ours.id = of.id;
        ours.title = of.title;
        ours.evidence = of.finding.evidence.c_str();
        ours.remedy = of.finding.remedy.c_str();
        ours.url = of.url;
        write_struct(check, ours, call, "check");
    });
}

int32_t yoke_report_exit_code(yoke_report *report)
{
    constexpr const char *call = "yoke_report_exit_code";
    return guard_value(call, 2, [&] { return need(report, call, "report").report.exit_code; });
}

yoke_status yoke_doctor_record(const char *folder, uint32_t flags)
{
    return record("yoke_doctor_record", folder, flags, 0);
}

yoke_status yoke_doctor_record_v2(const char *folder, uint32_t flags, double deadline)
{
    return record("yoke_doctor_record_v2", folder, flags, deadline);
}
