// living_groups.h: groups that still live as their process ends. Something holds them, such as a script that calls exit
// or a thread for which Python does not wait, or they linger.
#pragma once

#include "core/base/deadline.h"

#include <memory>

namespace yoke {

class Group;
struct GroupLink;

// Makes a group known to leave_living_groups.
void note_living(const std::shared_ptr<GroupLink> &link, Group &group);
// Returns until when the end of the process waits for calls that may hang: 5 s from the first question, which a
// module's own end may ask.
Deadline deadline_of_exit() noexcept;
// Leaves all groups, at the end of the process. Their calls end first. Calls on devices, and calls of a group that
// something holds, get until deadline_of_exit; other calls of a lingering group get as long as they take. Returns false
// if ranks did not come to calls on devices, at this call or an earlier one.
bool leave_living_groups() noexcept;
// Returns whether a group was left behind. Then no communicator is ended any more, which would wait for the same ranks.
bool has_left_groups_behind() noexcept;
// Returns whether calls on a device still wait for other ranks at the deadline. Waits for them until then.
bool is_held_up(Group &group, Deadline deadline) noexcept;

// A group that lingers lives on in its own thread though nobody holds it; the end of the process waits for it.
void note_lingering() noexcept;
void note_lingering_ended() noexcept;

}  // namespace yoke
