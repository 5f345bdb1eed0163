// last_meeting.h: where the ranks of this process's last group have met, so that a further init of the same job makes
// its group there, at once.
#pragma once

#include "core/comm/members.h"

namespace yoke {

// Where the ranks of this process's groups have met, and who watches them.
struct JobMeeting {
    InitArguments arguments;
    std::shared_ptr<const Rendezvous> met;
    std::shared_ptr<Watcher> watcher;
};

void remember(const JobMeeting &meeting);
// The last one, while a group of it lives that these arguments mean.
std::optional<JobMeeting> known_meeting(const InitArguments &arguments);
// Its ranks meet anew: rank 0's port is free for them.
void give_up(const JobMeeting &meeting);

// Of the first group that is made there.
Members members_of(const JobMeeting &meeting);
// Of the next one, which no rank has given up because others did not come in time. Raises what one has failed with for
// another reason, once for all those before.
Members members_where_met(const JobMeeting &meeting, Deadline deadline);

}  // namespace yoke
