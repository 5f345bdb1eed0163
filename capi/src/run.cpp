// Starting ranks, of yoke/comm.h.
#include "yoke/comm.h"

#include "capi/src/guard.h"
#include "capi/src/structs.h"
#include "core/base/interrupt.h"
#include "core/launch/run.h"

using namespace yoke;
using namespace yoke::capi;

yoke_status yoke_run(const yoke_run_options *options, yoke_run_result *out)
{
    constexpr const char *call = "yoke_run";
    return guard(call, [&] {
        const yoke_run_options given = read_struct(options, call, "options");
        write_struct(out, yoke_run_result{}, call, "out");
        RunOptions how;
        for (const char *const *word = given.command; word && *word; ++word)
            how.command.emplace_back(*word);
        how.ranks = given.ranks;
        if (given.nodes != 0) how.nodes = given.nodes;
        how.node = given.node;
        if (given.master) how.master = given.master;
        how.restarts = given.restarts;
        how.has_stdin = !given.no_stdin;
        if (!given.input && given.input_bytes > 0)
            fail(YOKE_E_VALUE,
                 "run: argument 'input' is NULL, but 'input_bytes' is %llu; give the input",
                 static_cast<unsigned long long>(given.input_bytes));
        if (given.input)
            how.input = std::string_view(static_cast<const char *>(given.input), given.input_bytes);
        if (given.grace != 0) how.grace_s = given.grace;
        thread_local RunResult result;
        const Interruptible waits(short_name(call));
        result = waits.finished(run_ranks(how));
        write_struct(
            out,
            yoke_run_result{sizeof(yoke_run_result), result.exit_code, result.rank, result.signal,
                            result.process, result.text.c_str(), result.trace.c_str()},
            call, "out");
    });
}
