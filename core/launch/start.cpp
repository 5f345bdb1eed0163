#include "core/launch/start.h"

#include "core/base/config.h"
#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/base/log.h"
#include "core/launch/living_groups.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <tuple>

namespace yoke {

namespace {

// Longest delay of a signal that comes after the signal check and before poll().
constexpr double kTick = 0.1;
// Interval if the kernel does not report the end of a process.
constexpr double kShortTick = 0.01;

// Returns whether the rank has ended while other processes of its group may live.
bool is_ending(const Rank &rank)
{
    return !rank.is_running() && rank.has_number();
}

}  // namespace

Start::Start(RunScene &scene, int32_t number) : scene_(scene), number_(number) {}

// ---- The start --------------------------------------------------------------------------------------------------

// Returns the descriptor of the rank's input. If only this rank uses the file, `own` keeps it open.
int Start::input_of(int32_t number, OwnedFile &own)
{
    if (number == 0 && scene_.input.empty() && scene_.options.has_stdin)
        return scene_.terminal.open();
    const char *path = scene_.input.empty() ? "/dev/null" : scene_.input.c_str();
    own = OwnedFile(open(path, O_RDONLY | O_CLOEXEC));
    if (!own.is_open())
        fail(YOKE_E_IO, "run: the input of rank %d, %s, cannot be opened: %s", number, path,
             strerror(errno));
    return own.get();
}

bool Start::start_rank(int32_t local_rank)
{
    const RunOptions &options = scene_.options;
    const int32_t number = options.node * options.ranks + local_rank;
    const std::string error_file =
        format("%s/start%d-rank%d.json", scene_.folder.c_str(), number_, number);
    OwnedFile input;
    ChildPlan plan;
    plan.command = options.command;
    plan.variables =
        rank_variables(options, scene_.place, RankPlace{local_rank, number_, error_file});
    plan.in = input_of(number, input);
    plan.note = scene_.guard.note();
    plan.files = scene_.files;
    Rank &rank = ranks_.emplace_back(number, scene_.out, scene_.err);
    rank.start(std::move(plan), error_file);
    scene_.terminal.rank_has_it();
    return rank.error() == 0;
}

// Starts all ranks. If the program cannot start, kills the ranks. The exit code is then a shell's: 127 if there is no
// such program, 126 if the program cannot run. Raises YOKE_E_IO if the system gives no process.
void Start::start_all()
{
    constexpr int kNoProgram = 127, kNotRunnable = 126;
    for (int32_t i = 0; i < scene_.options.ranks; ++i) {
        if (start_rank(i)) continue;
        const int error = ranks_.back().error();
        if (error == EAGAIN || error == ENOMEM)
            fail(YOKE_E_IO, "run: the system cannot start a process for rank %d: %s",
                 ranks_.back().number(), strerror(error));
        result_.exit_code = error == ENOENT || error == ENOTDIR ? kNoProgram : kNotRunnable;
        result_.text = format("'%s' cannot be started: %s", scene_.options.command[0].c_str(),
                              strerror(error));
        return kill_all();
    }
}

// ---- Waiting ----------------------------------------------------------------------------------------------------

bool Start::is_any_left() const
{
    return std::any_of(ranks_.begin(), ranks_.end(), [](const Rank &r) { return r.has_number(); });
}

void Start::ask(std::vector<pollfd> &all, int fd, short events, std::function<void()> then)
{
    if (fd < 0) return;
    all.push_back({fd, events, 0});
    answers_.push_back(std::move(then));
}

double Start::patience() const
{
    const auto is_unwatched = [](const Rank &rank) {
        return is_ending(rank) ||  // the end of leftover processes is not reported
               (rank.is_running() && !rank.ended().is_open());
    };
    const bool has_ticks = std::any_of(ranks_.begin(), ranks_.end(), is_unwatched);
    const double tick = has_ticks ? kShortTick : kTick;
    return is_asked_to_end_ && !is_killed_ ? std::min(tick, end_.remaining_s()) : tick;
}

// Waits for events, a tick at most, and handles them: output, input, signals, ended ranks, and the time to kill.
void Start::step()
{
    std::vector<pollfd> all;
    answers_.clear();
    for (Rank &rank : ranks_) {
        for (Rank::Stream *stream : {&rank.out(), &rank.err()})
            if (!stream->lines.sink().is_full())
                ask(all, stream->from.get(), POLLIN, [stream] { stream->pass_on(); });
        if (rank.is_running()) ask(all, rank.ended().get(), POLLIN, [] {});
    }
    for (LineSink *sink : {&scene_.out, &scene_.err})
        if (!sink->is_empty()) ask(all, sink->fd(), POLLOUT, [sink] { sink->write_some(); });
    const auto pass_on = [this] { scene_.terminal.pass_on(); };
    ask(all, scene_.terminal.reads_from(), POLLIN, pass_on);
    ask(all, scene_.terminal.writes_to(), POLLOUT, pass_on);
    constexpr double kMilli = 1000;
    const int found = poll(all.data(), all.size(), static_cast<int>(patience() * kMilli) + 1);
    for (size_t i = 0; found > 0 && i < all.size(); ++i)
        if (all[i].revents) answers_[i]();
    for (int signal; (signal = scene_.signals.next()) != 0;) hear(signal);
    if (!was_interrupted_ && is_interrupted()) end_by_host();
    look_at_ranks();
    look_at_output();
    release_ended();
    look_at_dumps();
    if (is_asked_to_end_ && !is_killed_ && end_.has_passed()) kill_all();
}

void Start::look_at_ranks()
{
    std::vector<Rank *> failed;
    for (Rank &rank : ranks_) {
        if (!rank.is_running()) continue;
        rank.look();
        if (rank.has_failed()) failed.push_back(&rank);
    }
    if (failed.empty() || result_.exit_code != 0) return;
    choose_first(failed);
    end_after_dumps();
}

// Ends the run if output cannot be written. If a reader has gone, ranks find out by themselves, so the run goes on.
void Start::look_at_output()
{
    constexpr int kOutputLost = 74;  // EX_IOERR
    for (const LineSink *sink : {&scene_.out, &scene_.err}) {
        if (is_output_lost_ || !sink->is_broken() || sink->error() == EPIPE) continue;
        is_output_lost_ = true;
        const std::string problem =
            format("standard %s cannot be written: %s", sink == &scene_.out ? "output" : "error",
                   strerror(sink->error()));
        if (result_.exit_code != 0) {
            log(LogLevel::kWarn, "run: %s", problem.c_str());
            continue;
        }
        result_.exit_code = kOutputLost;
        result_.text = problem;
        end_all();
    }
}

// Sets the result to the first failure among ranks found at once. A rank ended by a signal comes first, because it
// publishes no cause. Then comes the rank with the earliest published cause.
void Start::choose_first(const std::vector<Rank *> &failed)
{
    constexpr int kSignalled = 128;
    const auto order = [](const Rank *rank) {
        const double told_s = rank->told().told_s;
        return std::tuple(!WIFSIGNALED(rank->status()), told_s == 0, told_s, rank->number());
    };
    const auto before = [&](const Rank *a, const Rank *b) { return order(a) < order(b); };
    const Rank &first = **std::min_element(failed.begin(), failed.end(), before);
    const int status = first.status();
    result_.rank = first.number();
    result_.process = first.process();
    result_.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    result_.exit_code = result_.signal ? kSignalled + result_.signal : WEXITSTATUS(status);
    const std::string cause = first.told().text;
    result_.text = format("rank %d (process %lld) ended with %s%s%s", result_.rank,
                          static_cast<long long>(result_.process), describe_end(status).c_str(),
                          cause.empty() ? "" : "; its error: ", cause.c_str());
    result_.trace = first.trace();
}

// ---- Signals and the end ----------------------------------------------------------------------------------------

void Start::hear(int signal)
{
    const bool is_interrupt = signal == SIGINT || signal == SIGTERM;
    if (signal == SIGINT && interrupts_ > 0) kill_all();
    interrupts_ += is_interrupt;
    const bool is_end = is_interrupt || signal == SIGHUP || signal == SIGQUIT;
    was_interrupted_ |= is_end;
    const bool is_for_one = signal == SIGUSR1 || signal == SIGUSR2;  // helpers may not handle these
    for (const Rank &rank : ranks_) {
        if (!rank.is_running()) continue;
        if (is_for_one)
            rank.signal_process(signal);
        else
            rank.signal_group(signal);
        if (is_end) rank.signal_group(SIGCONT);  // a stopped process cannot handle signals
    }
    if (signal == SIGTSTP) kill(getpid(), SIGSTOP);
    if (!is_interrupt || is_asked_to_end_) return;
    is_asked_to_end_ = true;
    end_ = Deadline::after(scene_.options.grace_s);
}

// Asks the other ranks to end. If YOKE_COMM_DUMP is set, first gives these ranks time to dump their last calls.
void Start::end_after_dumps()
{
    if (try_config("YOKE_COMM_DUMP") && !is_asked_to_end_)
        dumps_.emplace(scene_.options.grace_s);
    else
        end_all();
}

void Start::look_at_dumps()
{
    if (!dumps_) return;
    std::vector<std::string> marks;
    for (const Rank &rank : ranks_)
        if (rank.is_running()) marks.push_back(rank.dump_mark());
    if (!is_asked_to_end_ && !dumps_->are_over(marks)) return;
    dumps_.reset();
    end_all();
}

// Sends TERM to the running ranks, and begins their time until KILL. Does nothing if the ranks were asked to end
// already: a second TERM might interrupt a rank's save.
void Start::end_all()
{
    if (is_asked_to_end_) return;
    is_asked_to_end_ = true;
    end_ = Deadline::after(scene_.options.grace_s);
    for (const Rank &rank : ranks_) {
        if (!rank.is_running()) continue;
        rank.signal_group(SIGTERM);
        rank.signal_group(SIGCONT);  // a stopped process cannot handle signals
    }
}

// Asks the ranks to end, by TERM, after an interrupt in the host program. The caller of run_ranks raises the
// interrupt after their end.
void Start::end_by_host()
{
    was_interrupted_ = true;
    end_all();
}

void Start::kill_all()
{
    is_asked_to_end_ = is_killed_ = true;
    for (const Rank &rank : ranks_) rank.signal_group(SIGKILL);
}

// Releases ended ranks: kills what is left of their groups. A rank keeps its number until its group is empty, or the
// time of its leftover processes is over.
void Start::release_ended()
{
    if (std::none_of(ranks_.begin(), ranks_.end(), is_ending)) return;
    const LivingGroups living;
    for (Rank &rank : ranks_) {
        const bool has_time = !is_killed_ && !rank.leftover_end().has_passed();
        if (!is_ending(rank) || (has_time && living.may_have(rank.process()))) continue;
        scene_.guard.forget(rank.process());
        rank.release();
    }
}

// Reads and writes the remaining output of the ranks. A process outside the groups may write for ever, so only bytes
// already written are read. If the program was asked to end, a reader that does not read gets only a limited wait.
void Start::drain()
{
    const int before = interrupts_;
    const Deadline patience_ends = Deadline::after(kLeftoverGrace);
    const auto gives_up = [&] {
        return interrupts_ > before || (interrupts_ > 0 && patience_ends.has_passed());
    };
    const auto read_rest = [&](Rank::Stream &stream) {
        for (size_t rest = stream.waiting(); rest > 0 && stream.from.is_open() && !gives_up();) {
            if (stream.lines.sink().is_full()) step();
            rest -= std::min(rest, stream.pass_on());
        }
    };
    for (Rank &rank : ranks_)
        for (Rank::Stream *stream : {&rank.out(), &rank.err()}) {
            read_rest(*stream);
            stream->finish();
        }
    while (!(scene_.out.is_empty() && scene_.err.is_empty()) && !gives_up()) step();
}

RunResult Start::run()
{
    start_all();
    while (is_any_left()) step();
    drain();
    return std::move(result_);
}

}  // namespace yoke
