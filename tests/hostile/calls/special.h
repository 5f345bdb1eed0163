// special.h: calls that no rule of generate.py can draw: memory whose size the call trusts, callbacks, lists that
// depend on each other. Each function here stands for the API's function of equal name.
#pragma once

#include "draw.h"

namespace hostile::special {

void yoke_tensor_from_memory(Draw &d);
void yoke_tensor_from_data(Draw &d);
void yoke_tensor_copy_to_host(Draw &d);
void yoke_tensor_copy_from_host(Draw &d);
void yoke_tensor_to_dlpack(Draw &d);
void yoke_tensor_from_dlpack(Draw &d);
void yoke_tensor_shape(Draw &d);
void yoke_tensor_strides(Draw &d);
void yoke_alloc(Draw &d);
void yoke_free(Draw &d);
// Gives borrowed memory back to the World of the program.
void give_back(void *world);

void yoke_log_set_callback(Draw &d);
void yoke_log_add_callback(Draw &d);
void yoke_on_out_of_memory(Draw &d);
void yoke_oom_details(Draw &d);
void yoke_remove_on_out_of_memory(Draw &d);
void yoke_add_garbage_collector(Draw &d);
void yoke_remove_garbage_collector(Draw &d);
void yoke_log_remove_callback(Draw &d);
void yoke_preempt_watch(Draw &d);
void yoke_preempt_add(Draw &d);
void yoke_preempt_signal(Draw &d);
void yoke_preempt_resume(Draw &d);
void yoke_preempt_clear(Draw &d);
void yoke_preempt_unwatch(Draw &d);
void yoke_comm_init(Draw &d);
void yoke_comm_init_threads(Draw &d);
void yoke_comm_init_devices(Draw &d);
void yoke_run(Draw &d);
void yoke_comm_hang(Draw &d);
void yoke_set_stack_provider(Draw &d);
void yoke_set_interrupt_hook(Draw &d);
void yoke_reducer_create(Draw &d);
void yoke_sampler_create(Draw &d);
void yoke_sampler_get_state(Draw &d);
void yoke_sampler_load(Draw &d);
void yoke_meant_word(Draw &d);
void yoke_tensor_view_storage(Draw &d);
void yoke_op_invoke(Draw &d);
void yoke_op_invoke_list(Draw &d);
void yoke_op_info(Draw &d);
void yoke_grad(Draw &d);
void yoke_grad_v2(Draw &d);
void yoke_backward_v2(Draw &d);
void yoke_tensor_add_hook(Draw &d);
void yoke_function_record(Draw &d);
void yoke_autocast_swap(Draw &d);
void yoke_checkpoint_begin(Draw &d);
void yoke_checkpoint_swap(Draw &d);
void yoke_state_set_string(Draw &d);
void yoke_state_put(Draw &d);
void yoke_save(Draw &d);
void yoke_load(Draw &d);
void yoke_select(Draw &d);
void yoke_last_error(Draw &d);
void yoke_get_api(Draw &d);

}  // namespace hostile::special
