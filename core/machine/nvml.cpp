#include "core/machine/nvml.h"

#include "core/base/config.h"
#include "core/base/error.h"
#include "core/base/library.h"
#include "core/base/start_thread.h"
#include "core/machine/nvidia_card.h"
#include "core/machine/nvml_session.h"

#include <sys/stat.h>
#include <unistd.h>
#include <cstdlib>
#include <memory>
#include <thread>

namespace yoke {

namespace {

using nvml::Api;
using nvml::Session;
using Seconds = std::chrono::duration<double>;

// A whole snapshot may take so many deadlines: without the persistence daemon the driver starts each card for it.
constexpr int kDeadlinesOfAll = 12;

// Gate for a single user at a time, because NVML's own locks have had faults. A forked child gets a gate of its own.
// The thread with the parent's lock may not exist in the child.
struct Gate {
    explicit Gate(pid_t owner) : process(owner) {}
    const pid_t process;
    std::mutex mutex;
    std::atomic<const NvmlFailure *> hang{nullptr};  // why NVML is not asked again
    std::atomic<bool> in_use{false};  // a fork now would copy the library amid its work
    bool inherited_in_use = false;
};
std::atomic<Gate *> current_gate{nullptr};

Gate &gate()
{
    Gate *known = current_gate.load();
    if (known && known->process == getpid()) return *known;
    Gate *fresh = new Gate(getpid());
    if (known) {
        fresh->hang.store(known->hang.load());
        fresh->inherited_in_use = known->in_use.load();
    }
    if (current_gate.compare_exchange_strong(known, fresh)) return *fresh;  // the old gate is kept
    delete fresh;
    return *current_gate.load();
}

// ---- Loading --------------------------------------------------------------------------------------------------------

// Loaded library, never unloaded.
struct Loaded {
    Api api;
    std::string path;
};
std::atomic<Loaded *> loaded{nullptr};

std::vector<std::string> candidate_paths(const Root &root)
{
    constexpr const char *kName = "libnvidia-ml.so.1";
    const char *given = config("YOKE_NVML_PATH");
    if (!given) {
        // Another root is another machine, unknown to this machine's library.
        if (!root.prefix.empty()) return {};
        return {kName, std::string("/usr/lib/wsl/lib/") + kName};
    }
    struct stat status {};
    const bool folder = stat(given, &status) == 0 && S_ISDIR(status.st_mode);
    return {folder ? std::string(given) + "/" + kName : std::string(given)};
}

void bind(const Library &library, Api &api)
{
    const auto find = [&](auto &symbol, auto... names) {
        const auto attempt = [&](const char *name) {
            if (symbol.call) return;
            symbol.call = reinterpret_cast<decltype(symbol.call)>(library.find(name));
            symbol.name = name;
        };
        (attempt(names), ...);
    };
#define NVML_SYMBOL(member, arguments, ...) find(api.member, __VA_ARGS__);
    using namespace nvml;
#include "core/machine/nvml_symbols.def"
}

std::string file_of(const Api &api, const std::string &fallback)
{
    const std::string file = file_of_code(reinterpret_cast<void *>(api.init.call));
    return file.empty() ? fallback : file;
}

// Returns whether a path names no regular file. Opening a fifo waits for a writer, perhaps for ever, and a device may
// do anything: neither is a library.
bool is_no_file(const std::string &path)
{
    struct stat status {};
    const bool is_path = path.find('/') != path.npos;  // any other name is looked up by the loader
    return is_path && stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode);
}

NvmlFailure failure(NvmlFailure::Kind kind, std::string detail)
{
    NvmlFailure made;
    made.kind = kind;
    made.detail = std::move(detail);
    return made;
}

// Loads the library; returns the failure, if any.
NvmlFailure load(Session &session, const std::vector<std::string> &paths)
{
    if (const Loaded *known = loaded.load()) {
        session.api = known->api;
        session.machine.nvml.path = known->path;
        return {};
    }
    if (paths.empty()) return failure(NvmlFailure::Kind::kOtherRoot, "");
    std::string problem;
    for (const std::string &path : paths) {
        if (is_no_file(path)) return failure(NvmlFailure::Kind::kNoFile, path);
        session.begin("dlopen of the management library");
        const Library library = Library::open(path);
        session.end();
        if (problem.empty()) problem = library.problem();
        if (!library.loaded()) continue;
        auto made = std::make_unique<Loaded>();
        bind(library, made->api);
        if (!made->api.init.call) return failure(NvmlFailure::Kind::kNoInit, path);
        made->path = file_of(made->api, path);
        session.api = made->api;
        session.machine.nvml.path = made->path;
        loaded.store(made.release());
        return {};
    }
    return failure(NvmlFailure::Kind::kNoLibrary, problem);
}

// ---- The worker -----------------------------------------------------------------------------------------------------

int start(Session &session)
{
    const int code = session.call(session.api.init_with_flags, nvml::kInitNoGpus);
    const bool older = code == nvml::kNoFunction || code == nvml::kNotSupported;
    return older ? session.call(session.api.init) : code;
}

void ask_versions(Session &session)
{
    char text[nvml::kVersionSize] = "";
    if (session.call(session.api.driver_version, text, nvml::kVersionSize) == nvml::kSuccess &&
        session.machine.driver.empty())
        session.machine.driver = text;
    int cuda = 0;
    if (session.call(session.api.cuda_version, &cuda) == nvml::kSuccess && cuda > 0)
        session.machine.cuda_driver = cuda / 10 * 10;
}

void ask_all(Session &session)
{
    nvml::find_cards(session);
    size_t card = 0;
    while (card < session.machine.cards.size()) {
        size_t added = 0;
        if (session.known[card].handle) {
            session.call_card = session.machine.cards[card].info.pci;
            nvml::ask_card(session, card);
            added = nvml::ask_instances(session, card);
        }
        card += 1 + added;
    }
    session.call_card.clear();
    if (session.links) nvml::ask_links(session);
}

// Reads the library's version. Some libraries report the version only after their start, so the file name is used as
// well.
void note_version(Session &session)
{
    char version[nvml::kVersionSize] = "";
    Nvml &known = session.machine.nvml;
    if (session.call(session.api.nvml_version, version, nvml::kVersionSize) == nvml::kSuccess)
        known.version = version;
    const std::string &file = known.path;
    const size_t suffix = file.rfind(".so.");
    if (known.version.empty() && suffix != std::string::npos &&
        file.find('.', suffix + 4) != std::string::npos)
        known.version = file.substr(suffix + 4);
}

void work(Session &session, Gate &gate, const std::vector<std::string> &paths)
{
    NvmlFailure &failure = session.machine.nvml.failure;
    failure = load(session, paths);
    if (failure) return;
    if (gate.inherited_in_use) session.call(session.api.shutdown);
    gate.inherited_in_use = false;
    const int code = start(session);
    note_version(session);
    if (code != nvml::kSuccess) {
        if (code == nvml::kGpuNotFound) return;
        failure.kind = NvmlFailure::Kind::kNotStarted;
        failure.code = code;
        return;
    }
    ask_versions(session);
    ask_all(session);
    // The shutdown releases all: a card may sleep again, and a fork copies no open files of the driver.
    session.call(session.api.shutdown);
}

void run_worker(const std::shared_ptr<Session> &session, Gate &gate,
                const std::vector<std::string> &paths)
{
    const std::lock_guard lock(session->mutex);
    try {
        work(*session, gate, paths);
    } catch (const nvml::Abandoned &) {
        return;
    } catch (const std::exception &error) {
        session->machine.nvml.failure = failure(NvmlFailure::Kind::kRaised, error.what());
    }
    session->finished = true;
    session->changed.notify_all();
}

// ---- The watcher ----------------------------------------------------------------------------------------------------

std::thread start_worker(const std::shared_ptr<Session> &session, Gate &gate,
                         const std::vector<std::string> &paths)
{
    std::thread worker;
    const std::string why =
        start_thread(worker, [session, &gate, paths] { run_worker(session, gate, paths); });
    if (!why.empty()) {
        session->machine.nvml.failure = failure(NvmlFailure::Kind::kNoThread, why);
        session->finished = true;
    }
    return worker;
}

double deadline()
{
    return number_of(config_or_default("YOKE_NVML_TIMEOUT"));
}

// Returns the failure of a worker that did not come back within so many seconds, with its call; kept for ever.
const NvmlFailure *hang_of(const Session &session, double seconds)
{
    auto hang = std::make_unique<NvmlFailure>();
    hang->kind = NvmlFailure::Kind::kHung;
    hang->call = session.call_name ? session.call_name : "";
    hang->card = session.call_card;
    hang->seconds = seconds;
    return hang.release();
}

// Waits for the worker, and returns nullptr once the worker has finished. If a call takes longer than `limit`, or all
// calls longer than kDeadlinesOfAll limits, abandons the session and returns the hanging call.
const NvmlFailure *watch(Session &session, double limit)
{
    std::unique_lock lock(session.mutex);
    const auto span = std::chrono::duration_cast<Session::Clock::duration>(Seconds(limit));
    const auto last = Session::Clock::now() + span * kDeadlinesOfAll;
    while (!session.finished) {
        const auto from = session.call_name ? session.call_start : Session::Clock::now();
        const auto until = std::min(from + span, last);
        if (session.changed.wait_until(lock, until) == std::cv_status::no_timeout) continue;
        const auto now = Session::Clock::now();
        const bool late = session.call_name && now >= session.call_start + span;
        if (session.finished || (!late && now < last)) continue;
        session.abandoned = true;
        return hang_of(session, late ? limit : limit * kDeadlinesOfAll);
    }
    return nullptr;
}

// Returns whether the driver may hold the card, but NVML has reported no facts about the card. A hang at the start
// leaves all cards so, and CUDA starts like NVML.
bool is_unanswered(const Card &card)
{
    const yoke_card_info &info = card.info;
    return is_nvidia(info) && !is_off_bus(info) && info.present != 0 && info.nvml_index < 0 &&
           may_be_held_by_nvidia(info);
}

void note_hang(Machine &machine, const NvmlFailure &hang, bool is_earlier)
{
    const std::string text = text_of(hang, machine.driver, machine.nvml.version);
    machine.nvml.failure = hang;
    machine.nvml.failure.is_earlier = is_earlier;
    for (Card &card : machine.cards) {
        if (!hang.card.empty() && hang.card == card.info.pci)
            reject(card, {Reason::kHangs, "the driver hangs on this card: " + text});
        if (hang.card.empty() && is_unanswered(card))
            reject(card, {Reason::kHangs, "the driver does not answer: " + text});
    }
}

}  // namespace

void ask_nvml(const Root &root, Machine &machine, bool links)
{
    const double limit = deadline();
    const std::vector<std::string> paths = candidate_paths(root);
    Gate &mine = gate();
    const std::lock_guard lock(mine.mutex);
    if (const NvmlFailure *hang = mine.hang.load()) {
        note_hang(machine, *hang, true);
        return;
    }
    auto session = std::make_shared<Session>();
    session->machine = std::move(machine);
    session->known.resize(session->machine.cards.size());
    session->links = links;
    mine.in_use.store(true);
    std::thread worker = start_worker(session, mine, paths);
    const NvmlFailure *hang = watch(*session, limit);
    if (!hang) {
        if (worker.joinable()) worker.join();
        mine.in_use.store(false);
        machine = std::move(session->machine);
        return;
    }
    worker.detach();
    mine.hang.store(hang);
    // The session belongs to the worker to the end, if the hanging call ever returns.
    const std::lock_guard session_lock(session->mutex);
    machine = session->machine;
    note_hang(machine, *hang, false);
}

}  // namespace yoke
