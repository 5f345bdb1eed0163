#include "core/rendezvous/environment.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/launch/host_port.h"
#include "core/rendezvous/init_call.h"
#include "core/rendezvous/said.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>

namespace yoke {

const char *process_variable(const char *name) noexcept
{
    return getenv(name);
}

namespace {

[[noreturn]] void fail_url(const std::string &url)
{
    fail_in(
        kInitCall, YOKE_E_VALUE,
        "argument 'init_method' is '%s'; it must be env://, tcp://HOST:PORT (an IPv6 address in brackets) or file:///PATH",
        url.c_str());
}

bool starts(std::string_view text, std::string_view with)
{
    return text.substr(0, with.size()) == with;
}

void compare(const Said<int32_t> &one, const Said<int32_t> &other, const char *what,
             const std::string &why = "")
{
    if (!one || !other || one.value == other.value) return;
    fail_in(
        kInitCall, YOKE_E_VALUE,
        "%s says that the %s is %d, but %s says %d; %sunset the wrong variable, or give rank and world_size as arguments",
        one.by.c_str(), what, one.value, other.by.c_str(), other.value, why.c_str());
}

// Sets the value. Raises YOKE_E_VALUE if the caller of init has given another value before.
void say(Said<int32_t> &what, const Said<int32_t> &said, const char *name)
{
    compare(what, said, name);
    what = said;
}

// Reads a URL's query as PyTorch writes it: "rank=1&world_size=4". Raises YOKE_E_VALUE for other names, and for
// values that are no whole numbers from 0.
void read_query(std::string_view query, const std::string &url, LauncherSource &source)
{
    while (!query.empty()) {
        const std::string_view part = query.substr(0, query.find('&'));
        query.remove_prefix(std::min(part.size() + 1, query.size()));
        const size_t equals = part.find('=');
        const std::string_view name = part.substr(0, equals);
        const auto number =
            equals == part.npos ? std::nullopt : parsed<int32_t>(part.substr(equals + 1));
        if (!number || *number < 0 || (name != "rank" && name != "world_size")) fail_url(url);
        const Said<int32_t> said{"init_method's " + std::string(name), *number};
        if (name == "rank")
            say(source.rank, said, "rank");
        else
            say(source.size, said, "size");
    }
}

void read_host(std::string_view text, const std::string &url, LauncherSource &source)
{
    const std::optional<HostPort> read = parse_host_port(text);
    if (!read) fail_url(url);
    source.hosts = {"init_method", {read->host}};
    source.port = {"init_method", read->port};
}

// Returns the source made of init's arguments, and puts the path of a file:// URL into `file`. Raises YOKE_E_VALUE
// for an init_method of another form.
LauncherSource explicit_source(const InitArguments &arguments, std::string &file)
{
    constexpr std::string_view kTcp = "tcp://", kFile = "file://";
    LauncherSource source;
    source.name = "explicit arguments";
    const std::string &url = arguments.init_method;
    std::string_view rest = url;
    const std::string_view query = rest.substr(std::min(rest.find('?'), rest.size()));
    rest.remove_suffix(query.size());
    if (!query.empty()) read_query(query.substr(1), url, source);
    if (starts(rest, kTcp))
        read_host(rest.substr(kTcp.size()), url, source);
    else if (starts(rest, kFile) && rest.substr(kFile.size(), 1) == "/")
        file = rest.substr(kFile.size());
    else if (rest != "env://")
        fail_url(url);
    if (arguments.rank) say(source.rank, {"the argument rank", *arguments.rank}, "rank");
    if (arguments.size) say(source.size, {"the argument world_size", *arguments.size}, "size");
    return source;
}

// Returns the beginning of an error's advice: "Open MPI runs within yoke run; start all ranks by one of them alone,
// or ". Returns "" if there is no run.
std::string within(const LauncherSource &source, const std::string &run)
{
    if (run.empty()) return "";
    return format("%s runs within %s; start all ranks with only one of these launchers, or ",
                  source.name.c_str(), run.c_str());
}

// Raises YOKE_E_VALUE if two sources give different ranks or sizes. Skips launchers that started the first source's
// launcher. A launcher started by another launcher has separate ranks, so the comparison ends there.
void find_contradictions(const std::vector<LauncherSource> &sources)
{
    Said<int32_t> rank, size;
    std::string run;
    for (const LauncherSource &source : sources) {
        if (source.is_outer) continue;
        compare(rank, source.rank, "rank", within(source, run));
        compare(size, source.size, "size", within(source, run));
        if (source.is_inner) return;
        if (source.run) run = source.name;
        if (source.rank) rank = source.rank;
        if (source.size) size = source.size;
    }
}

// Raises if a launcher within a rank of a run gave this process the rank's own number. Such a launcher starts ranks
// 0, 1, … within each rank of the run. An equal number contradicts no variable, but these processes would form a
// group without the other ranks.
void find_equal_within(const std::vector<LauncherSource> &sources)
{
    const auto run = std::ranges::find_if(
        sources, [](const LauncherSource &each) { return static_cast<bool>(each.run); });
    if (run == sources.end() || run->is_outer || !run->rank || run->size.value <= 1) return;
    const auto inner = std::find_if(run + 1, sources.end(), [](const LauncherSource &each) {
        return each.rank && !each.is_outer;
    });
    if (inner == sources.end()) return;
    fail_in(
        kInitCall, YOKE_E_VALUE,
        "%s started rank %d of %d (%s is %d), and inside it %s also started rank %d (%s is %d); start all ranks with one launcher, or give rank and world_size as arguments",
        run->name.c_str(), run->rank.value, run->size.value, run->rank.by.c_str(), run->rank.value,
        inner->name.c_str(), inner->rank.value, inner->rank.by.c_str(), inner->rank.value);
}

// Returns a warning if each process of an outer launcher has an inner launcher with ranks of one machine only; else
// "". There are several jobs then, and the user may have meant a single job.
std::string doubt_of(const std::vector<LauncherSource> &sources)
{
    const auto inner = std::ranges::find_if(
        sources, [](const LauncherSource &each) { return static_cast<bool>(each.run); });
    if (inner == sources.end() || inner->size.value != inner->local_size.value) return "";
    for (const LauncherSource &outer : sources)
        if (outer.is_outer && outer.size.value > 1)
            return format(
                "comm.init: this job of %d ranks by %s runs inside a process of %s, which started %d (%s): each has its own job; for a single job, use one launcher, or give %s --nnodes and --node-rank",
                inner->size.value, inner->name.c_str(), outer.name.c_str(), outer.size.value,
                outer.size.by.c_str(), inner->name.c_str());
    return "";
}

// Values needed by init, in the order in which people think of them.
struct Parts {
    Said<int32_t> rank, size;
    Said<std::vector<std::string>> hosts;
    Said<uint16_t> port;
    bool needs_host, needs_port;

    std::string found() const
    {
        std::string list;
        if (rank) add_part(list, format("the rank %d (%s)", rank.value, rank.by.c_str()));
        if (size) add_part(list, format("the size %d (%s)", size.value, size.by.c_str()));
        if (hosts)
            add_part(list,
                     format("rank 0's host %s (%s)", hosts.value[0].c_str(), hosts.by.c_str()));
        if (port) add_part(list, format("its port %u (%s)", port.value, port.by.c_str()));
        return list.empty() ? "nothing" : list;
    }
    std::string missing() const
    {
        std::string list;
        if (!rank) add_part(list, "the rank (RANK)");
        if (!size) add_part(list, "the size (WORLD_SIZE)");
        if (!hosts && needs_host) add_part(list, "rank 0's host (MASTER_ADDR)");
        if (!port && needs_port) add_part(list, "rank 0's port (MASTER_PORT)");
        return list;
    }
};

void check_parts(const Parts &parts)
{
    const std::string missing = parts.missing();
    if (missing.empty()) return;
    fail_in(
        kInitCall, YOKE_E_VALUE,
        "found %s; missing: %s. Set these variables, or start the program with yoke run (yoke run -n 2 -- PROGRAM), torchrun, mpirun or srun, or give init_method, rank and world_size",
        parts.found().c_str(), missing.c_str());
}

void check_range(const Parts &parts)
{
    if (!parts.rank || !parts.size) return;
    if (parts.size.value < 1 || parts.size.value > kMostRanks)
        fail_in(kInitCall, YOKE_E_VALUE, "the size is %d (%s); a job has 1 to %d ranks",
                parts.size.value, parts.size.by.c_str(), kMostRanks);
    if (parts.rank.value < 0)
        fail_in(kInitCall, YOKE_E_VALUE, "the rank is %d (%s); ranks of a job of %d are 0 to %d",
                parts.rank.value, parts.rank.by.c_str(), parts.size.value, parts.size.value - 1);
}

const LauncherSource &source_of_rank(const std::vector<LauncherSource> &sources)
{
    for (const LauncherSource &source : sources)
        if (source.rank) return source;
    return sources[0];
}

// Sets the source of the rank, the job's name and its start number. The name comes from the source of the rank, else
// from the first source with a name.
void name_job(const std::vector<LauncherSource> &sources, Environment &out)
{
    const LauncherSource &main = source_of_rank(sources);
    out.source = main.name;
    out.job = main.job;
    out.epoch = main.epoch;
    for (const LauncherSource &source : sources)
        if (out.job.empty() && !source.job.empty()) {
            out.job = source.job;
            out.epoch = source.epoch;
        }
}

Parts parts_of(const std::vector<LauncherSource> &sources, bool has_store, const Environment &job)
{
    Parts parts{first_said(sources, &LauncherSource::rank),
                first_said(sources, &LauncherSource::size),
                first_said(sources, &LauncherSource::hosts),
                first_said(sources, &LauncherSource::port),
                true,
                job.job.empty()};
    const bool is_alone = parts.size && parts.size.value == 1;
    if (is_alone || has_store || !job.file.empty()) parts.needs_host = parts.needs_port = false;
    return parts;
}

}  // namespace

Environment read_environment(const InitArguments &arguments, const Lookup &variable,
                             const LauncherLookup &launcher)
{
    Environment out;
    std::vector<LauncherSource> sources{explicit_source(arguments, out.file)};
    std::ranges::move(launchers(variable, launcher), std::back_inserter(sources));
    if (!sources[0].rank || !sources[0].size) find_contradictions(sources);  // else decided
    if (!sources[0].rank) find_equal_within(sources);
    name_job(sources, out);
    if (!sources[0].rank) out.doubt = doubt_of(sources);
    const Parts parts = parts_of(sources, arguments.has_store, out);
    check_range(parts);
    check_parts(parts);
    out.rank = parts.rank.value;
    out.size = parts.size.value;
    out.rank_by = parts.rank.by;
    out.size_by = parts.size.by;
    out.hosts = parts.hosts.value;
    out.port = parts.port.value;
    for (const LauncherSource &source : sources)  // if the port is the launcher's
        out.agent_store |= source.agent_store && source.port.by == parts.port.by;
    const auto local_rank = first_said(sources, &LauncherSource::local_rank);
    const auto local_size = first_said(sources, &LauncherSource::local_size);
    if (local_rank) out.local_rank = local_rank.value;
    if (local_size) out.local_size = local_size.value;
    return out;
}

std::string describe(const Environment &environment)
{
    std::string text = format("rank %d of %d", environment.rank, environment.size);
    if (!environment.hosts.empty()) text += " at " + environment.hosts[0];
    if (environment.port) text += format(":%u", environment.port);
    return text;
}

void check_rank(const Environment &environment)
{
    if (environment.rank < environment.size) return;
    fail_in(
        kInitCall, YOKE_E_VALUE,
        "the rank is %d (%s), and the size %d (%s); ranks of a job of %d are 0 to %d. Count ranks from 0, and give all the same size",
        environment.rank, environment.rank_by.c_str(), environment.size,
        environment.size_by.c_str(), environment.size, environment.size - 1);
}

}  // namespace yoke
