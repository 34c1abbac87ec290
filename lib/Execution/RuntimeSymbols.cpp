//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "RuntimeSymbols.h"
#include "plateau/runtime.h"

using namespace mlir;

void mlir::plateau::registerRuntimeSymbols(ExecutionEngine &engine) {
  engine.registerSymbols([](llvm::orc::MangleAndInterner interner) {
    llvm::orc::SymbolMap symbols;
    auto add = [&](const char *name, auto *function) {
      symbols[interner(name)] = {llvm::orc::ExecutorAddr::fromPtr(function), llvm::JITSymbolFlags::Exported};
    };
    add("plr_get_lane", plr_get_lane);
    add("plr_allocate", plr_allocate);
    add("plr_release", plr_release);
    add("plr_arena", plr_arena);
    add("plr_reads", plr_reads);
    add("plr_writes", plr_writes);
    add("plr_copy", plr_copy);
    add("plr_zero", plr_zero);
    add("plr_launch", plr_launch);
    add("plr_gemm", plr_gemm);
    add("plr_embedding", plr_embedding);
    add("plr_embedding_grad", plr_embedding_grad);
    add("plr_rms_norm", plr_rms_norm);
    add("plr_rms_norm_grad", plr_rms_norm_grad);
    add("plr_rotary_table", plr_rotary_table);
    add("plr_rotary", plr_rotary);
    add("plr_attention", plr_attention);
    add("plr_attention_grad", plr_attention_grad);
    add("plr_log_softmax", plr_log_softmax);
    add("plr_log_softmax_grad", plr_log_softmax_grad);
    add("plr_count_labels", plr_count_labels);
    add("plr_nll", plr_nll);
    add("plr_nll_grad", plr_nll_grad);
    add("plr_mean_loss", plr_mean_loss);
    add("plr_mean_loss_grad", plr_mean_loss_grad);
    add("plr_shard_start", plr_shard_start);
    add("plr_fold_logits", plr_fold_logits);
    add("plr_merge_states", plr_merge_states);
    add("plr_finish_losses", plr_finish_losses);
    add("plr_logits_grad", plr_logits_grad);
    add("plr_column_sums", plr_column_sums);
    add("plr_embedding_shard", plr_embedding_shard);
    add("plr_embedding_shard_grad", plr_embedding_shard_grad);
    add("plr_shift", plr_shift);
    add("plr_group_rank", plr_group_rank);
    add("plr_record", plr_record);
    add("plr_wait", plr_wait);
    add("plr_fence", plr_fence);
    add("plr_get_group", plr_get_group);
    add("plr_all_reduce", plr_all_reduce);
    add("plr_all_gather", plr_all_gather);
    add("plr_reduce_scatter", plr_reduce_scatter);
    add("plr_plan_create", plr_plan_create);
    add("plr_plan_fill", plr_plan_fill);
    add("plr_plan_release", plr_plan_release);
    add("plr_plan_iterations", plr_plan_iterations);
    add("plr_plan_rows", plr_plan_rows);
    add("plr_migrate_experts", plr_migrate_experts);
    add("plr_return_expert_grads", plr_return_expert_grads);
    add("plr_dispatch", plr_dispatch);
    add("plr_combine", plr_combine);
    add("plr_route", plr_route);
    add("plr_route_grad", plr_route_grad);
    add("plr_balance_loss", plr_balance_loss);
    add("plr_balance_loss_grad", plr_balance_loss_grad);
    add("plr_z_loss", plr_z_loss);
    add("plr_z_loss_grad", plr_z_loss_grad);
    add("plr_update_bias", plr_update_bias);
    add("plr_grouped_gemm", plr_grouped_gemm);
    add("plr_grouped_gemm_grad", plr_grouped_gemm_grad);
    add("plr_swiglu", plr_swiglu);
    add("plr_swiglu_grad", plr_swiglu_grad);
    add("plr_scale_rows", plr_scale_rows);
    add("plr_row_dot", plr_row_dot);
    add("plr_sum_squares", plr_sum_squares);
    add("plr_grad_norm", plr_grad_norm);
    add("plr_clip_factor", plr_clip_factor);
    add("plr_adamw", plr_adamw);
    return symbols;
  });
}
