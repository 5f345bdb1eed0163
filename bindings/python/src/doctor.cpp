// doctor.cpp: yoke.doctor()'s part in C: a report as plain tuples, of which _doctor.py makes classes.
#include "bindings/python/src/leaves.h"
#include "bindings/python/src/values/need.h"

#include "yoke/doctor.h"

namespace yoke_python {
namespace {

constexpr const char *kStatus[] = {"ok", "warn", "fail", "skip"};

uint32_t flags_of(bool probe, bool redact)
{
    return (probe ? YOKE_DOCTOR_PROBE : 0) | (redact ? YOKE_DOCTOR_REDACT : 0);
}

// Report, released at the end in any case.
struct Report {
    yoke_report *handle = nullptr;
    Report() = default;
    Report(const Report &) = delete;
    Report &operator=(const Report &) = delete;
    ~Report() { yoke_report_release(handle); }
};

py::tuple examine(const py::object &probe, const py::object &redact, const py::object &deadline)
{
    const uint32_t flags =
        flags_of(need_bool(probe, "doctor", "probe"), need_bool(redact, "doctor", "redact"));
    const double seconds = need_float(deadline, "doctor", "deadline");
    Report report;
    yoke_status status;
    {
        const ReleaseGil release;
        status = yoke_doctor(flags, seconds, &report.handle);
    }
    check(status);
    py::list checks;
    for (int32_t i = 0, n = yoke_report_count(report.handle); i < n; ++i) {
        yoke_check one{};
        one.struct_size = sizeof one;
        check(yoke_report_check(report.handle, i, &one));
        checks.append(py::make_tuple(one.id, kStatus[one.status], text_of(one.evidence),
                                     text_of(one.remedy), one.url, one.number, one.title,
                                     one.card));
    }
    return py::make_tuple(checks, yoke_report_exit_code(report.handle));
}

void record_system(const py::object &folder, const py::object &probe, const py::object &redact)
{
    constexpr const char *call = "doctor_record";
    const std::string place = need_path(folder, call, "folder");
    const uint32_t flags =
        flags_of(need_bool(probe, call, "probe"), need_bool(redact, call, "redact"));
    yoke_status status;
    {
        const ReleaseGil release;
        status = yoke_doctor_record(place.c_str(), flags);
    }
    check(status);
}

}  // namespace

void bind_doctor(py::module_ &module)
{
    module.def("_doctor", examine, py::arg("probe"), py::arg("redact"), py::arg("deadline"));
    module.def("_doctor_record", record_system, py::arg("folder"), py::arg("probe"),
               py::arg("redact"));
}

}  // namespace yoke_python
