// preempt.h: signals that ask the process to end, kept until all who watch for them have answered.
//
// The handler notes in an atomic that a signal came, and nothing else. Whoever asks next hands the note to all that
// watch the signal; the last of them to answer gives it on to the disposition that was found. Until then a signal
// counts once, however often it comes. A forked child watches nothing.
#pragma once

#include <cstdint>

namespace yoke {

using SignalSet = uint64_t;  // bit n - 1 stands for signal n
constexpr SignalSet set_of(int signal)
{
    return SignalSet{1} << (signal - 1);
}

inline constexpr int64_t kProgramWatch = 0;  // the number of the host program's own

// The number of "TERM" or "SIGTERM"; raises YOKE_E_VALUE where it does not serve.
int signal_number(const char *name, const char *call);

// The program's own watch, which is made or gets more signals; and one more beside all others, whose number is
// returned.
void watch_for_program(SignalSet signals);
int64_t add_watch(SignalSet signals);

// The signal that this watch has yet to answer, the same until it does; 0: none, or no such watch.
int told_signal(int64_t id);

// Each returns whether there is such a watch. What was told last is answered: the former disposition shall have it
// (kResume), or need not. The last of all answers raises it. What an ended watch has not answered counts as resumed.
enum class Answer { kResume, kClear };
bool answer_signal(int64_t id, Answer answer);
bool end_watch(int64_t id);

}  // namespace yoke
