// living_groups.h: groups that still live at the end of their process. Either they linger, or they have a holder,
// such as a script that calls exit, or a thread for which Python does not wait.
#pragma once

#include "core/base/deadline.h"

#include <memory>

namespace yoke {

class Group;
struct GroupLink;

// Makes a group known to leave_living_groups.
void note_living(const std::shared_ptr<GroupLink> &link, Group &group);
// Returns the deadline for calls that may hang at the end of the process: 5 s from the first question. A module's own
// end may ask first.
Deadline deadline_of_exit() noexcept;
// Leaves all groups, at the end of the process. Their calls end first. Calls on devices, and calls of a group with a
// holder, have time until deadline_of_exit. Other calls of a lingering group have as long as they take. Returns false
// if ranks did not come to calls on devices, in this call or an earlier call.
bool leave_living_groups() noexcept;
// Returns whether a group was left behind. Then no communicator may be ended, because its end would wait for the same
// missing ranks.
bool has_left_groups_behind() noexcept;
// Waits for calls on a device. Returns whether they still wait for other ranks at the deadline.
bool is_held_up(Group &group, Deadline deadline) noexcept;

// Notes a lingering group, and its end. A lingering group lives on in its own thread without a holder; the end of the
// process waits for the group.
void note_lingering() noexcept;
void note_lingering_ended() noexcept;

}  // namespace yoke
