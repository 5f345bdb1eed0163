// jobs.cpp: jobs: start of their ranks, variables of other libraries, and search for the ranks that block a job.
#include "bindings/python/src/leaves.h"
#include "bindings/python/src/runtime/interrupt.h"
#include "bindings/python/src/values/need.h"
#include "bindings/python/src/values/tree.h"

#include "yoke/comm.h"

#include <vector>

namespace yoke_python {

namespace {

py::object hang(const py::list &paths)
{
    std::vector<py::bytes> files;
    std::vector<const char *> names;
    for (const py::handle &path : paths)
        files.push_back(need_path(py::reinterpret_borrow<py::object>(path), "hang", "paths"));
    for (const py::bytes &file : files) names.push_back(PyBytes_AS_STRING(file.ptr()));
    yoke_state *found = nullptr;
    yoke_status status = YOKE_OK;
    {
        const ReleaseGil release;
        status = yoke_comm_hang(names.data(), static_cast<int64_t>(names.size()), &found);
    }
    const StateRef held(found);
    check(status);
    return value_of(found);
}

// Returns, for each variable, the fields of yoke_comm_variable.
py::list variables()
{
    py::list all;
    const int32_t count = yoke_comm_variable_count();
    for (int32_t i = 0; i < count; ++i) {
        yoke_comm_variable each{};
        each.struct_size = sizeof each;
        check(yoke_comm_variable_get(i, &each));
        all.append(py::make_tuple(text_of(each.name), text_of(each.value), text_of(each.word),
                                  text_of(each.setting), text_of(each.text)));
    }
    return all;
}

// Starts ranks of the command, each with `input`, and waits for their end. Returns exit code, text and trace of the
// first failed rank, as in yoke_run_result.
py::tuple run_ranks(const py::list &command, const py::object &ranks, const py::bytes &input)
{
    std::vector<const char *> words;  // held by the list
    for (const py::handle &word : command) words.push_back(need_text(word, "spawn", "command"));
    words.push_back(nullptr);
    yoke_run_options options{};
    options.struct_size = sizeof options;
    options.command = words.data();
    const int64_t count = need_int(ranks, "spawn", "n");
    if (count < 1 || count > YOKE_MAX_RANKS)
        require(raise_error(YOKE_E_VALUE, "spawn", "argument 'n' is %lld; it takes 1 to %d",
                            static_cast<long long>(count), YOKE_MAX_RANKS) != nullptr);
    options.ranks = static_cast<int32_t>(count);
    options.input = PyBytes_AS_STRING(input.ptr());
    options.input_bytes = static_cast<uint64_t>(PyBytes_GET_SIZE(input.ptr()));
    yoke_run_result result{};
    result.struct_size = sizeof result;
    wait_in([&] { return yoke_run(&options, &result); });
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();  // Ctrl-C has ended the ranks
    return py::make_tuple(result.exit_code, text_of(result.text), text_of(result.trace));
}

}  // namespace

void bind_jobs(py::module_ &module)
{
    module.def("_run", run_ranks, py::arg("command"), py::arg("ranks"), py::arg("input"));
    module.def("_comm_variables", variables);
    module.def("_comm_hang", hang, py::arg("paths"));
}

}  // namespace yoke_python
