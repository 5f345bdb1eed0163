// Start of a communicator: each rank is a process of the same MPI job, and publishes its process.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "kernels/mpi/comm.h"
#include "kernels/mpi/detached_call.h"
#include "kernels/mpi/job.h"

namespace yoke::mpi {

namespace {

// Data that every rank publishes.
struct Place {
    int32_t is_told;             // 1; 0 if the rank published no data
    int32_t process, processes;  // in MPI_COMM_WORLD
    int32_t pid;
    char job[160], node[MPI_MAX_PROCESSOR_NAME + 64];
};

Place this_place()
{
    Place place = {};
    place.is_told = 1;
    place.pid = getpid();
    MPI_Comm_rank(MPI_COMM_WORLD, &place.process);
    MPI_Comm_size(MPI_COMM_WORLD, &place.processes);
    snprintf(place.job, sizeof place.job, "%s", job_name().c_str());
    char name[MPI_MAX_PROCESSOR_NAME] = {};
    int length = 0;
    MPI_Get_processor_name(name, &length);
    const char *pretended = g_host->config("YOKE_COMM_TEST_NODE");
    snprintf(place.node, sizeof place.node, "%s %.60s", name, pretended ? pretended : "");
    return place;
}

yoke_status fail_stranger(int rank, const Place &one, int other, const Place &two)
{
    return fail(
        YOKE_E_COMM,
        "mpi: rank %d is process %d of %d of the MPI job '%s', rank %d is process %d of %d of '%s'; start all ranks of a group with one mpirun or srun, or call init with backend 'cpu'",
        rank, one.process, one.processes, one.job, other, two.process, two.processes, two.job);
}

// Checks that the ranks are different processes of the same MPI job. Otherwise returns the failure; a rank that
// published no data counts as late. All ranks check the same places, so all ranks get the same answer.
yoke_status check_places(const std::vector<Place> &places, yoke_comm_fault *fault)
{
    for (size_t i = 0; i < places.size(); ++i) {
        const Place &one = places[i];
        const int rank = static_cast<int>(i);
        if (!one.is_told) {
            if (fault) fault->kind = YOKE_COMM_FAULT_LATE, fault->rank = rank;
            return fail(YOKE_E_TIMEOUT, "mpi: rank %d did not report its MPI process in time",
                        rank);
        }
        for (size_t j = 0; j < i; ++j) {
            const Place &other = places[j];
            if (one.process == other.process || one.processes != other.processes ||
                strncmp(one.job, other.job, sizeof one.job) != 0)
                return fail_stranger(static_cast<int>(j), other, rank, one);
        }
    }
    return YOKE_OK;
}

std::vector<std::vector<int>> nodes_of(const std::vector<Place> &places)
{
    std::vector<std::vector<int>> nodes;
    for (size_t rank = 0; rank < places.size(); ++rank) {
        const auto found = std::ranges::find_if(nodes, [&](const std::vector<int> &node) {
            return !strcmp(places[static_cast<size_t>(node[0])].node, places[rank].node);
        });
        (found == nodes.end() ? nodes.emplace_back() : *found).push_back(static_cast<int>(rank));
    }
    return nodes;
}

// ---- MPI's own communicator -----------------------------------------------------------------------------------------

// Arguments of connect, and the start time.
struct Member {
    const yoke_comm_member &given;
    DetachedCall::Clock::time_point since = DetachedCall::Clock::now();
};

struct Making {
    std::vector<int> processes;
    int tag = 0;
    MPI_Comm made = MPI_COMM_NULL;

    int run()
    {
        MPI_Group world = MPI_GROUP_NULL, members = MPI_GROUP_NULL;
        MPI_Comm_group(MPI_COMM_WORLD, &world);
        int code =
            MPI_Group_incl(world, static_cast<int>(processes.size()), processes.data(), &members);
        if (code == MPI_SUCCESS) code = MPI_Comm_create_group(MPI_COMM_WORLD, members, tag, &made);
        if (made != MPI_COMM_NULL) MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
        if (members != MPI_GROUP_NULL) MPI_Group_free(&members);
        MPI_Group_free(&world);
        return code;
    }
};

// Returns a tag computed from a group's id: at least 0 and below MPI's upper bound.
int tag_of(const void *id)
{
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < YOKE_COMM_ID_BYTES; ++i)
        hash = (hash ^ static_cast<const unsigned char *>(id)[i]) * 1099511628211u;
    void *most = nullptr;
    int is_there = 0;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &most, &is_there);
    const auto bound = static_cast<uint64_t>(is_there ? *static_cast<int *>(most) : 32767);
    return static_cast<int>(hash % bound);
}

// Makes an MPI communicator of the ranks' processes, in order. All these ranks call this function.
yoke_status make_part(const std::vector<int> &ranks, const std::vector<Place> &places, int tag,
                      const Member &member, MPI_Comm *out)
{
    const auto making = std::make_shared<Making>();
    for (int rank : ranks) making->processes.push_back(places[static_cast<size_t>(rank)].process);
    making->tag = tag;
    if (yoke_status status = DetachedCall::begin([making] { return making->run(); })
                                 ->wait(member.given, member.since, "MPI_Comm_create_group",
                                        "a rank stopped while the group was created"))
        return status;
    *out = making->made;
    return YOKE_OK;
}

yoke_status make_parts(Comm &comm, const std::vector<Place> &places, const Member &member)
{
    std::vector<int> everyone, alike;
    for (int rank = 0; rank < comm.size; ++rank) everyone.push_back(rank);
    const int tag = tag_of(member.given.id);
    if (yoke_status status = make_part(everyone, places, tag, member, &comm.ranks)) return status;
    const size_t each = comm.nodes[0].size();
    const bool is_even = std::ranges::all_of(
        comm.nodes, [&](const std::vector<int> &node) { return node.size() == each; });
    if (comm.nodes.size() == 1 || each == 1 || !is_even) return YOKE_OK;
    for (const std::vector<int> &node : comm.nodes) alike.push_back(node[comm.my_place]);
    if (yoke_status status = make_part(comm.nodes[comm.my_node], places, tag, member, &comm.within))
        return status;
    return make_part(alike, places, tag, member, &comm.across);
}

void find_self(Comm &comm)
{
    for (size_t node = 0; node < comm.nodes.size(); ++node)
        for (size_t place = 0; place < comm.nodes[node].size(); ++place)
            if (comm.nodes[node][place] == comm.rank) comm.my_node = node, comm.my_place = place;
}

}  // namespace

yoke_status connect(Comm &comm, const yoke_comm_member &member)
{
    const Member joining{member};
    if (yoke_status status = join_job(member, joining.since)) return status;
    comm.rank = member.rank;
    comm.size = member.size;
    comm.combine = best_combine();
    if (const char *most = g_host->config("YOKE_COMM_TEST_PIECE"))
        comm.most_bytes = std::clamp<int64_t>(atoll(most), 1 << 16, comm.most_bytes);
    const Place mine = this_place();
    std::vector<Place> places(static_cast<size_t>(member.size));
    if (yoke_status status = member.all_gather(member.user, &mine, sizeof mine, places.data()))
        return status;
    if (yoke_status status = check_places(places, member.fault)) return status;
    comm.nodes = nodes_of(places);
    find_self(comm);
    return make_parts(comm, places, joining);
}

// Frees MPI's communicators. MPI reuses the number of a freed communicator, so messages sent but never received would
// reach the next communicator. So the function frees communicators only if all collectives have ended and no message
// can be in transit.
void disconnect(Comm &comm)
{
    const bool may_hold_more = comm.has_failed || comm.has_messages || comm.aborted.load();
    if (may_hold_more || !is_in_job()) return;
    for (MPI_Comm *one : {&comm.ranks, &comm.within, &comm.across})
        if (*one != MPI_COMM_NULL) MPI_Comm_free(one);  // does not wait
}

}  // namespace yoke::mpi
