// preempt.h: signals that ask the process to end, kept until all watches have answered.
//
// The handler only notes in an atomic that a signal came. The next caller of told_signal() hands the note to all
// watches of the signal. The last answer gives the signal on to the former disposition. Until then a signal counts
// once, however often it comes. A forked child watches no signals.
#pragma once

#include <cstdint>

namespace yoke {

using SignalSet = uint64_t;  // bit n - 1 stands for signal n
constexpr SignalSet set_of(int signal)
{
    return SignalSet{1} << (signal - 1);
}

inline constexpr int64_t kProgramWatch = 0;  // the number of the host program's own

// Returns the number of "TERM" or "SIGTERM". Raises YOKE_E_VALUE for a signal that cannot be watched.
int signal_number(const char *name, const char *call);

// Adds signals to the program's own watch, and makes the watch if needed. add_watch() makes another watch and returns
// its number.
void watch_for_program(SignalSet signals);
int64_t add_watch(SignalSet signals);

// Returns the signal that this watch must answer, the same until the answer; 0: none, or no such watch.
int told_signal(int64_t id);

// Answers the signal reported to a watch: asks to give the signal to the former disposition (kResume), or not
// (kClear). After the last watch's answer, the signal is raised if any watch answered kResume. Returns whether the
// watch exists. Unanswered signals of an ended watch count as resumed.
enum class Answer { kResume, kClear };
bool answer_signal(int64_t id, Answer answer);
bool end_watch(int64_t id);

}  // namespace yoke
