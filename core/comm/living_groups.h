// living_groups.h: groups that still live at the end of their process. Either they linger, or they have a holder,
// such as a script that calls exit, or a thread for which Python does not wait.
#pragma once

#include "core/base/deadline.h"

#include <memory>

namespace yoke {

class Group;
struct GroupLink;

// Adds a group to the groups that leave_living_groups leaves.
void note_living(const std::shared_ptr<GroupLink> &link, Group &group);
// Returns the deadline for calls that may hang at the end of the process: 5 s after the first call of this function.
// A module's own end may ask first.
Deadline deadline_of_exit() noexcept;
// Leaves all groups, at the end of the process. Their calls end first. Calls on devices, and calls of a group with a
// holder, have time until deadline_of_exit. Other calls of a lingering group have as long as they take. Returns false
// if ranks did not come to calls on devices, in this call or an earlier call.
bool leave_living_groups() noexcept;
// Returns whether a group was left behind. Then no communicator may be ended, because its end would wait for the same
// missing ranks.
bool has_left_groups_behind() noexcept;
// Waits for the group's calls on a device, at most until the deadline. Returns whether calls still wait for other
// ranks then.
bool is_held_up(Group &group, Deadline deadline) noexcept;

// Counts a lingering group; note_lingering_ended counts its end. A lingering group lives on in its own thread without
// a holder; the end of the process waits for the group.
void note_lingering() noexcept;
void note_lingering_ended() noexcept;

}  // namespace yoke
