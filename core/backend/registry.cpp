#include "core/backend/registry.h"

#include "core/backend/comm.h"

#include "core/backend/traits.h"
#include "core/base/config.h"
#include "core/base/config_readers.h"
#include "core/base/error.h"
#include "core/base/library.h"
#include "core/base/log.h"
#include "core/base/text.h"

#include <sys/stat.h>
#include <algorithm>

namespace yoke {

namespace {

struct Entry {
    const char *kind;
    yoke_backend_get_fn get;  // null: in a module
    Once once;
    Backend backend;
    // Set with the table, for the hook that a fork runs in the child.
    std::atomic<const yoke_backend *> opened{nullptr};
    Entry *next = nullptr;
};

// Entries are only ever added, at the front, so that readers need no lock.
std::atomic<Entry *> entries{nullptr};

Entry *find(std::string_view kind) noexcept
{
    for (Entry *entry = entries.load(std::memory_order_acquire); entry; entry = entry->next)
        if (kind == entry->kind) return entry;
    return nullptr;
}

// Adds a kind unless it is present. If another thread adds a kind meanwhile, the front moves and the loop reads the
// list again.
void add(const char *kind, yoke_backend_get_fn get)
{
    Entry *made = nullptr;
    for (Entry *front = entries.load(); !find(kind);) {
        if (!made) made = new Entry{kind, get, {}, {}, {}, nullptr};
        made->next = front;
        if (entries.compare_exchange_strong(front, made)) return;
    }
    delete made;
}

// Adds the modules at every look-up, since no thread may wait here for another thread: see fork.h.
void add_modules()
{
    for (int i = 0; const char *kind = module_kind(i); ++i) add(kind, nullptr);
}

void tell_backends_of_fork()
{
    for (Entry *entry = entries.load(); entry; entry = entry->next)
        if (const yoke_backend *table = entry->opened.load()) {
            if (table->after_fork) table->after_fork();
            if (table->comm) table->comm->after_fork();
        }
}

void open(Entry &entry)
{
    on_fork_child(tell_backends_of_fork);
    static const char here = 0;
    entry.backend = entry.get ? detail::open_table(entry.kind, entry.get, "the embedded backend")
                              : detail::open_module(entry.kind, folder_of_code(&here));
    entry.opened.store(entry.backend.table);
    if (entry.backend.table)
        log(LogLevel::kDebug, "backend %s: %s", entry.kind,
            entry.backend.table->build_info ? entry.backend.table->build_info() : "no build info");
}

}  // namespace

void register_backend(const char *kind, yoke_backend_get_fn get)
{
    add(kind, get);
}

// Returns "; did you mean 'cuda'?", or "". "gpu" is only a letter from "cpu", so both are compared first.
static std::string meant_kind(std::string_view text)
{
    const std::vector<std::string> kinds = known_kinds();
    const char *meant = nearest_word(text, {"gpu", "cpu"});
    meant = meant && kind_called(meant) ? kind_called(meant) : nearest_word(text, c_strings(kinds));
    return meant ? format("; did you mean '%s'?", meant) : "";
}

const Backend &backend_of(std::string_view kind)
{
    add_modules();
    Entry *entry = find(kind);
    if (!entry)
        fail(YOKE_E_VALUE, "there is no device kind '%s'; the kinds are %s%s",
             std::string(kind).c_str(), join(known_kinds()).c_str(), meant_kind(kind).c_str());
    mark_process_used();  // before run(): a forked child must not wait for a missing thread
    entry->once.run(entry->kind, [&] { open(*entry); });
    return entry->backend;
}

std::vector<std::string> known_kinds()
{
    add_modules();
    std::vector<std::string> kinds;
    for (const Entry *entry = entries.load(); entry; entry = entry->next)
        kinds.emplace_back(entry->kind);
    // Accelerators first, the cpu last.
    std::sort(kinds.begin(), kinds.end(), [](const std::string &a, const std::string &b) {
        return std::pair(a == kHostKind, a) < std::pair(b == kHostKind, b);
    });
    return kinds;
}

bool is_known_kind(std::string_view kind)
{
    add_modules();
    return find(kind) != nullptr;
}

bool Platforms::allow(std::string_view kind) const
{
    return !named || std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

// Returns the kinds named by YOKE_PLATFORMS. Raises YOKE_E_VALUE for an unknown kind.
static Platforms named_platforms(std::string_view text)
{
    Platforms chosen{split_list(text), true};
    for (const std::string &kind : chosen.kinds)
        if (!is_known_kind(kind))
            fail(YOKE_E_VALUE,
                 "YOKE_PLATFORMS is '%s', but there is no device kind '%s'; the kinds are %s",
                 std::string(text).c_str(), kind.c_str(), join(known_kinds()).c_str());
    return chosen;
}

static const bool is_read = [] {
    set_config_reader("YOKE_PLATFORMS", [](std::string_view text) { named_platforms(text); });
    return true;
}();

Platforms platforms()
{
    const char *text = config("YOKE_PLATFORMS");
    return text ? named_platforms(text) : Platforms{known_kinds(), false};
}

std::string join(const std::vector<std::string> &words, const char *between)
{
    std::string text;
    for (const std::string &word : words) add_part(text, word, between);
    return text;
}

}  // namespace yoke
