#include "tests/emu/races.h"

#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <set>

#include "tests/emu/block.h"

namespace yoke::emu {

namespace {

constexpr size_t kPage = 4096;
constexpr int kNobody = -1;

// A page that a block of the launch has written.
struct Page {
    unsigned char before[kPage];   // the launch
    unsigned char entered[kPage];  // at the first write of the running block
    unsigned char first[kPage];    // after the first run
    int writers[kPage];            // the last block that changed the byte
    bool has_first = false;
};

char *page_of(const void *place)
{
    return (char *)((uintptr_t)place / kPage * kPage);
}

// By words: most of a page is as it was.
template <class F>
void for_each_difference(const char *now, const unsigned char *then, const F &visit)
{
    for (size_t at = 0; at < kPage; at += sizeof(uint64_t)) {
        if (memcmp(now + at, then + at, sizeof(uint64_t)) == 0) continue;
        for (size_t i = at; i < at + sizeof(uint64_t); i++)
            if ((unsigned char)now[i] != then[i]) visit(i);
    }
}

class Watch : public Watcher {
public:
    Watch(const char *name, const std::vector<Span> &memory, const std::vector<Span> &operands)
        : name_(name), memory_(memory), operands_(operands)
    {
        std::sort(memory_.begin(), memory_.end(),
                  [](const Span &a, const Span &b) { return a.begin < b.begin; });
    }
    // Returns whether the watch blocked a write; called by the handler. A block's first write opens the page to the
    // block. The blocked instruction belongs to the kernel, not to the allocator, so memory may be allocated here.
    bool open(char *place)
    {
        if (!span_of(place)) return false;
        char *const at = page_of(place);
        std::unique_ptr<Page> &page = pages_[at];
        if (!page) {
            page = std::make_unique<Page>();
            memcpy(page->before, at, kPage);
            std::fill_n(page->writers, kPage, kNobody);
        }
        memcpy(page->entered, at, kPage);
        open_.push_back(at);
        protect(at, kPage, PROT_READ | PROT_WRITE);
        return true;
    }
    void begin_run()
    {
        for (const auto &[at, page] : pages_) std::fill_n(page->writers, kPage, kNobody);
        close_all(PROT_READ);
    }
    // Notes the changes of a block that has ended.
    void end_block(int block) override
    {
        for (char *at : open_) {
            Page &page = *pages_[at];
            protect(at, kPage, PROT_READ);
            for_each_difference(at, page.entered,
                                [&](size_t i) { note_change(at + i, page.writers[i], block); });
        }
        open_.clear();
    }
    // Keeps the results of the first run, and restores the memory for the second run.
    void end_first_run()
    {
        close_all(PROT_READ | PROT_WRITE);
        for (const auto &[at, page] : pages_) {
            memcpy(page->first, at, kPage);
            memcpy(at, page->before, kPage);
            page->has_first = true;
        }
    }
    void end_second_run()
    {
        close_all(PROT_READ | PROT_WRITE);
        if (!atomics_.empty()) return;
        for (const auto &entry : pages_) {
            const char *const at = entry.first;
            const Page &page = *entry.second;
            for_each_difference(at, page.has_first ? page.first : page.before, [&](size_t i) {
                tell(at + i, "depends on the order of the blocks");
            });
        }
    }
    void note_atomic(const char *place, size_t bytes)
    {
        for (size_t i = 0; i < bytes; i++)
            if (span_of(place + i)) atomics_.insert(place + i);
    }
    bool failed() const { return failed_; }

private:
    static void protect(char *at, size_t bytes, int how)
    {
        if (mprotect(at, bytes, how) == 0) return;
        perror("emu: mprotect");
        abort();
    }
    void close_all(int how)
    {
        for (const Span &span : memory_) {
            char *const first = page_of(span.begin);
            protect(first, (size_t)(page_of(span.begin + span.bytes + kPage - 1) - first), how);
        }
    }
    const Span *span_of(const char *place) const
    {
        auto next =
            std::upper_bound(memory_.begin(), memory_.end(), place,
                             [](const char *p, const Span &span) { return p < span.begin; });
        if (next == memory_.begin()) return nullptr;
        --next;
        return place < page_of(next->begin + next->bytes + kPage - 1) ? &*next : nullptr;
    }
    void note_change(const char *place, int &writer, int block)
    {
        if (writer != kNobody && writer != block && !atomics_.count(place))
            tell(place, "is written by blocks %d and %d", writer, block);
        writer = block;
    }
    // The first finding alone: a race is one of many bytes.
    __attribute__((format(printf, 3, 4))) void tell(const char *place, const char *format, ...)
    {
        if (failed_) return;
        failed_ = true;
        fprintf(stderr, "emu: %s: byte ", name_);
        const auto holds = [&](const Span &one) {
            return one.begin <= place && place < one.begin + one.bytes;
        };
        const auto found = std::find_if(operands_.begin(), operands_.end(), holds);
        if (found != operands_.end())
            fprintf(stderr, "%td of operand %td ", place - found->begin, found - operands_.begin());
        else
            fprintf(stderr, "%td of a block of memory ", place - span_of(place)->begin);
        va_list args;
        va_start(args, format);
        vfprintf(stderr, format, args);
        va_end(args);
        fputc('\n', stderr);
    }

    const char *name_;
    std::vector<Span> memory_;  // in the order of addresses
    const std::vector<Span> &operands_;
    std::map<char *, std::unique_ptr<Page>> pages_;
    std::vector<char *> open_;
    std::set<const char *> atomics_;
    bool failed_ = false;
};

// Watch of the running launch. The fake runtime does a single piece of work at a time.
Watch *g_watch = nullptr;
struct sigaction g_before;

void on_fault(int number, siginfo_t *info, void *context)
{
    if (g_watch && g_watch->open((char *)info->si_addr)) return;
    if (g_before.sa_flags & SA_SIGINFO) return g_before.sa_sigaction(number, info, context);
    if (g_before.sa_handler != SIG_DFL && g_before.sa_handler != SIG_IGN)
        return g_before.sa_handler(number);
    signal(SIGSEGV, SIG_DFL);  // the instruction faults again
}

// Handler that passes writes to protected pages to the launch's watch, for its lifetime. The handler has its own
// stack, because a fiber's stack is short.
class Handler {
public:
    explicit Handler(Watch &watch) : stack_(kBytes)
    {
        g_watch = &watch;
        stack_t mine{};
        mine.ss_sp = stack_.data();
        mine.ss_size = kBytes;
        sigaltstack(&mine, &old_);
        struct sigaction action {};
        action.sa_sigaction = on_fault;
        action.sa_flags = SA_SIGINFO | SA_ONSTACK;
        sigaction(SIGSEGV, &action, &g_before);
    }
    ~Handler()
    {
        sigaction(SIGSEGV, &g_before, nullptr);
        sigaltstack(&old_, nullptr);
        g_watch = nullptr;
    }
    Handler(const Handler &) = delete;
    Handler &operator=(const Handler &) = delete;

private:
    static constexpr size_t kBytes = 256 * 1024;
    std::vector<char> stack_;
    stack_t old_{};
};

}  // namespace

bool watches_races()
{
    static const char *const wanted = getenv("YOKE_EMU_RACES");
    return wanted && strcmp(wanted, "1") == 0;
}

bool run_watched(const char *name, const std::vector<Span> &memory,
                 const std::vector<Span> &operands, dim3 grid, dim3 block, size_t shared_bytes,
                 const std::function<void()> &kernel)
{
    Watch watch(name, memory, operands);
    const Handler handler(watch);
    watch.begin_run();
    bool passed = run(name, grid, block, shared_bytes, kernel, &watch);
    watch.end_first_run();
    if (!passed) return false;
    watch.begin_run();
    passed = run(name, grid, block, shared_bytes, kernel, &watch, true);
    watch.end_second_run();
    return passed && !watch.failed();
}

void note_atomic(const void *place, size_t bytes)
{
    if (g_watch) g_watch->note_atomic((const char *)place, bytes);
}

}  // namespace yoke::emu
