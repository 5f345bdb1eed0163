// graph.cpp: captured steps; yoke/_graph.py has the script's interface.
#include "bindings/python/src/leaves.h"
#include "bindings/python/src/values/need.h"

#include "yoke/graph.h"

namespace yoke_python {
namespace {

class Graph : public Bound {
public:
    explicit Graph(const py::object &device)
    {
        check(yoke_graph_create(need_device(device, "Graph"), &handle_));
    }
    ~Graph() { yoke_graph_release(handle_); }
    Graph(const Graph &) = delete;
    Graph &operator=(const Graph &) = delete;

    void begin() { run(yoke_graph_begin); }
    void end() { run(yoke_graph_end); }
    void abort() { yoke_graph_abort(handle_); }
    void replay() { run(yoke_graph_replay); }

private:
    void run(yoke_status (*call)(yoke_graph *))
    {
        yoke_status status = YOKE_OK;
        {
            const ReleaseGil release;
            status = call(handle_);
        }
        check(status);
    }

    yoke_graph *handle_ = nullptr;
};

}  // namespace

void bind_graph(py::module_ &module)
{
    bound_class<Graph>(module, "_Graph")
        .def(py::init<const py::object &>())
        .def("begin", &Graph::begin)
        .def("end", &Graph::end)
        .def("abort", &Graph::abort)
        .def("replay", &Graph::replay);
}

}  // namespace yoke_python
