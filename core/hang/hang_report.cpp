// Reader of dumps in files and folders, and the findings as a tree.
#include "core/base/dtype.h"
#include "core/base/error.h"
#include "core/comm/collective.h"
#include "core/hang/hang.h"
#include "core/state/read_file.h"

#include <algorithm>
#include <filesystem>

namespace yoke {

namespace {

// ---- Files ------------------------------------------------------------------------------------------------------

struct Problem {
    std::string path, text;
};

struct Found {
    std::vector<Dump> dumps;
    std::vector<Problem> problems;
};

// Largest size of a dump. 2,000 records and 1,024 ranks take less than a twentieth.
constexpr uint64_t kMostBytes = uint64_t{32} << 20;

Dump dump_in(const std::string &path, const char *call)
{
    const ReadFile file(call, path);
    if (file.size() > kMostBytes)
        fail(YOKE_E_VALUE,
             "not a dump of a group: the file has %llu bytes, but a dump has at most %llu",
             static_cast<unsigned long long>(file.size()),
             static_cast<unsigned long long>(kMostBytes));
    std::string text(file.size(), '\0');
    file.read(0, text.data(), text.size());
    Dump dump = read_dump(text);
    dump.path = path;
    return dump;
}

void read_into(Found &found, const std::string &path, const char *call)
{
    try {
        found.dumps.push_back(dump_in(path, call));
    } catch (const Error &error) {
        if (error.status() == YOKE_E_UNSUPPORTED) throw;
        found.problems.push_back({path, error.what()});
    }
}

// Reads the dumps of a folder: files whose names end in ".json", sorted by name. Notes a problem if there are none,
// or if the folder cannot be read.
void read_folder(Found &found, const std::string &folder, const char *call)
{
    std::vector<std::string> names;
    std::error_code problem;
    for (std::filesystem::directory_iterator entry(folder, problem), end; !problem && entry != end;
         entry.increment(problem))
        if (const std::string name = entry->path().filename().string();
            name.ends_with(".json") && !name.starts_with('.'))
            names.push_back(name);
    if (problem)
        found.problems.push_back({folder, problem.message()});
    else if (names.empty())
        found.problems.push_back({folder, "the folder has no file with a name that ends in .json"});
    std::ranges::sort(names);
    for (const std::string &name : names) read_into(found, folder + "/" + name, call);
}

Found read_all(const std::vector<std::string> &paths, const char *call)
{
    if (paths.empty())
        fail(YOKE_E_VALUE, "%s: argument 'paths' is empty; name files that dump wrote", call);
    Found found;
    for (const std::string &path : paths) {
        std::error_code ignored;
        if (std::filesystem::is_directory(path, ignored))
            read_folder(found, path, call);
        else
            read_into(found, path, call);
    }
    if (found.dumps.empty())
        fail(YOKE_E_IO, "%s: no dump could be read; '%s': %s", call, found.problems[0].path.c_str(),
             found.problems[0].text.c_str());
    return found;
}

// ---- The tree ---------------------------------------------------------------------------------------------------

using Entries = std::vector<std::pair<const char *, Ref<State>>>;

Ref<State> node(State::Value value)
{
    return State::make(std::move(value));
}
Ref<State> number_node(int64_t value)
{
    return node(value);
}
Ref<State> text_node(std::string value)
{
    return node(std::move(value));
}
Ref<State> dict(Entries entries)
{
    StateDict made;
    for (auto &[key, value] : entries) made.put(std::string(key), std::move(value));
    return node(std::move(made));
}
template <class Range, class Make>
Ref<State> list(const Range &range, const Make &make)
{
    StateList made;
    for (const auto &each : range) made.items.push_back(make(each));
    return node(std::move(made));
}
Ref<State> rank_list(const std::vector<int32_t> &ranks)
{
    return list(ranks, number_node);
}

Ref<State> call_node(const Whereabouts &place)
{
    if (!place.call) return node({});
    const DumpedCall &each = *place.call;
    const CallRecord &call = each.call;
    return dict({{"op", text_node(collective_name(call.op))},
                 {"sequence", number_node(static_cast<int64_t>(call.signature.sequence))},
                 {"count", number_node(call.signature.count)},
                 {"dtype", is_dtype(call.signature.dtype) ? text_node(name(call.signature.dtype))
                                                          : node({})},
                 {"reduction", text_node(reduction_name(call.signature.reduction))},
                 {"peer", call.peer < 0 ? node({}) : number_node(call.peer)},
                 {"line", text_node(describe_line(each.file, each.line, each.function))}});
}

// Returns the report's word for a place: `in` for a call in progress, `rendezvous` for a store call, `behind` for a
// finished last call, `none` or `no_dump`.
const char *state_word(const Whereabouts &place)
{
    if (!place.dump) return "no_dump";
    if (!place.is_in && place.dump->store_call) return "rendezvous";
    return !place.call ? "none" : place.is_in ? "in" : "behind";
}

Ref<State> rank_node(const GroupReport &group, size_t rank)
{
    const RankInfo &who = group.ranks[rank];
    const Whereabouts &place = group.places[rank];
    return dict({{"rank", number_node(static_cast<int64_t>(rank))},
                 {"host", text_node(who.host)},
                 {"process", number_node(who.process)},
                 {"dump", place.dump ? text_node(place.dump->path) : node({})},
                 {"time", place.dump ? text_node(place.dump->time) : node({})},
                 {"state", text_node(state_word(place))},
                 {"seconds", node(place.since_s)},
                 {"call", call_node(place)}});
}

Ref<State> group_node(const GroupReport &group)
{
    StateList ranks;
    for (size_t rank = 0; rank < group.ranks.size(); ++rank)
        ranks.items.push_back(rank_node(group, rank));
    const auto finding = [](const Finding &each) {
        return dict({{"kind", text_node(finding_name(each.kind))},
                     {"ranks", rank_list(each.ranks)},
                     {"text", text_node(each.text)}});
    };
    return dict(
        {{"group", text_node(format("0x%llx", static_cast<unsigned long long>(group.group)))},
         {"size", number_node(std::ssize(group.ranks))},
         {"hangs", node(group.hangs)},
         {"blamed", rank_list(group.blamed)},
         {"finished", number_node(static_cast<int64_t>(group.finished))},
         {"findings", list(group.findings, finding)},
         {"ranks", node(std::move(ranks))},
         {"older", list(group.older, text_node)}});
}

}  // namespace

Ref<State> hang_report(const std::vector<std::string> &paths, const char *call)
{
    const Found found = read_all(paths, call);
    const std::vector<GroupReport> groups = find_hangs(found.dumps, runs_here);
    const auto problem = [](const Problem &each) {
        return dict({{"path", text_node(each.path)}, {"text", text_node(each.text)}});
    };
    return dict({{"hangs", node(std::ranges::any_of(groups, &GroupReport::hangs))},
                 {"groups", list(groups, group_node)},
                 {"problems", list(found.problems, problem)}});
}

}  // namespace yoke
