//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The C ABI of the Plateau runtime. A compiled step is a sequence of these calls; one op of the IR is one call, so the
// IR, the trace and the runtime read alike.
//
// A context is one rank: memory spaces with limits, lanes (in-order queues) and the state of the first error. There are
// no globals: N ranks can be N contexts of one process. No exception crosses this interface.
//
// Errors stick. The first failing call, or the first failing kernel on a lane, records a status and a message in the
// context; every later call on that context does nothing and returns that status (or null). So a compiled step need not
// branch, and plr_synchronize tells how it went.
//
// Calls that take a lane enqueue and return; pointers must stay valid until the lane has run them. Calls of one context
// come from one thread at a time.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUNTIME_H
#define PLATEAU_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PLR_ABI_VERSION 5

typedef struct plr_context plr_context;
typedef struct plr_lane plr_lane;
typedef struct plr_event plr_event;
typedef struct plr_transport plr_transport; ///< Connects the ranks of a run.
typedef struct plr_group plr_group;         ///< Ranks that take part in a collective, in rank order.
typedef struct plr_plan plr_plan;           ///< The routes of the tokens of one layer.

typedef int32_t plr_status;
enum {
  PLR_OK = 0,
  PLR_INVALID_ARGUMENT = 1, ///< A call that no correct program makes.
  PLR_OUT_OF_MEMORY = 2,    ///< A space's limit would be passed.
  PLR_BAD_DATA = 3,         ///< A token id, label, document start or number of an update out of range.
  PLR_INTERRUPTED = 4,      ///< plr_interrupt was called.
  PLR_INTERNAL = 5,         ///< A library or the machine failed.
  PLR_COMMUNICATION = 6     ///< The ranks disagree about a collective, one did not come, or another rank failed.
};

typedef int32_t plr_space;
enum { PLR_DEVICE = 0, PLR_HOST = 1, PLR_SPACES = 2 };

/// Lanes of a context, each an in-order queue (a worker thread here, a stream on a GPU).
typedef int32_t plr_lane_kind;
enum { PLR_COMPUTE = 0, PLR_COMM = 1, PLR_H2D = 2, PLR_D2H = 3, PLR_HOST_LANE = 4, PLR_LANES = 5 };

typedef int32_t plr_type;
/// PLR_I32 and PLR_F64 are types of collectives alone.
enum { PLR_F32 = 0, PLR_BF16 = 1, PLR_I32 = 2, PLR_F64 = 3 };

/// What a buffer is for. Same values as the compiler's Component.
typedef int32_t plr_component;
enum {
  PLR_PARAMETERS,
  PLR_GRADIENTS,
  PLR_OPTIMIZER,
  PLR_EMBEDDING,
  PLR_ATTENTION,
  PLR_DENSE,
  PLR_ROUTING,
  PLR_DISPATCH,
  PLR_EXPERTS,
  PLR_VOCABULARY,
  PLR_BOUNDARIES,
  PLR_STAGING,
  PLR_WORKSPACE,
  PLR_EXTERNAL,
  PLR_COMPONENTS
};

/// Part of a training step. Same values as the compiler's Phase.
typedef int32_t plr_phase;
enum { PLR_FORWARD, PLR_BACKWARD, PLR_OPTIMIZER_PHASE, PLR_PHASES };

/// Who asks: carried by every call for accounting, traces and error messages. Must outlive the context.
typedef struct plr_tag {
  const char *op;    ///< Name of the op, e.g. "linalg.matmul q_proj".
  int32_t layer;     ///< Layer number, -1 for none.
  int32_t component; ///< plr_component.
  int32_t phase;     ///< plr_phase.
} plr_tag;

typedef int32_t plr_gemm_kind;
enum {
  PLR_GEMM_ONEDNN = 0, ///< oneDNN's matmul primitive, static shapes, one thread.
  PLR_GEMM_REFERENCE =
      1 ///< Plain loops, each element summed over k in ascending order: same bits for any split of rows.
};

typedef struct plr_config {
  int32_t abi_version; ///< PLR_ABI_VERSION.
  int32_t rank, ranks;
  int64_t device_bytes; ///< Limit of the device space.
  int64_t host_bytes;   ///< Limit of the host space.
  plr_gemm_kind gemm;
  int32_t poison; ///< 1: fill memory with NaN (bytes 0xFF) when it is handed out and when it is released.
  int32_t trace;  ///< 1: record a span for every call on a lane.
  int32_t strict; ///< 1: numbers that no sound step has (a router's logit that is not finite) are PLR_BAD_DATA.
  plr_transport *transport; ///< Null when there is one rank. Outlives the context.
  /// 0: the lanes run beside each other. Otherwise one task at a time runs, whatever its lane, in an order drawn from
  /// this number: any order that the lanes and plr_wait allow may come, and the lanes may be far behind the calling
  /// thread or close to it. For tests of waits that are missing. Without other ranks the same calls always give the
  /// same order. A task that meets other ranks counts as waiting until they have all come and gone.
  uint64_t schedule_seed;
} plr_config;

// --- Contexts and errors
// ---------------------------------------------------------------------------------------------------

/// Makes a context. On failure writes a message to `message` (when not null; at most `size` bytes) and returns a
/// status.
plr_status plr_context_create(const plr_config *config, plr_context **context, char *message, size_t size);
/// Waits for all lanes and releases everything.
void plr_context_destroy(plr_context *context);
/// The status that sticks, PLR_OK when there is none. `message`, when not null, receives the text; valid while the
/// context is.
plr_status plr_context_error(plr_context *context, const char **message);
/// Makes the context fail with PLR_INTERRUPTED at the next call. Safe in a signal handler and from any thread.
void plr_interrupt(plr_context *context);

// --- Ranks
// ---------------------------------------------------------------------------------------------------------------------

/// Ranks that are threads of this process. A collective for which not all ranks of its group have come
/// `timeout_seconds` after the first one fails on all of them, and names who is missing and what each rank does
/// instead. Contexts may be made again under their ranks, all before the next collective, unless a rank has failed.
plr_status plr_transport_create_threads(int32_t ranks, double timeout_seconds, plr_transport **transport, char *message,
                                        size_t size);
/// After the contexts that use it.
void plr_transport_destroy(plr_transport *transport);

/// The ranks whose coordinates on a grid differ from this rank's along the axes of the bit set `axes` alone. A grid of
/// `dimensions` sizes is a view of the linear rank order, row-major; the sizes multiply to the number of ranks. Kept by
/// the context; null after recording why.
plr_group *plr_get_group(plr_context *context, const int64_t *shape, int64_t dimensions, int64_t axes);
int32_t plr_group_size(const plr_group *group);
/// This rank's place in the group.
int32_t plr_group_rank(const plr_group *group);

// --- Lanes and events
// ------------------------------------------------------------------------------------------------------

plr_lane *plr_get_lane(plr_context *context, plr_lane_kind kind);
/// An event that completes when everything enqueued on `lane` so far has. Events are kept by the context and reused
/// after plr_synchronize.
plr_event *plr_record(plr_lane *lane);
/// What is enqueued on `lane` after this call runs after `event` has completed.
plr_status plr_wait(plr_lane *lane, plr_event *event);
/// Waits for all lanes; returns the context's status.
plr_status plr_synchronize(plr_context *context);
/// The calling thread waits until `event` has completed, and then may read what was written before it. Returns the
/// context's status: after a failure nothing that was to be written can be relied on. PLR_INVALID_ARGUMENT for null,
/// which plr_record gives after a failure.
plr_status plr_fence(plr_event *event);
/// Fences since the context was made, or since plr_reset_peak.
int64_t plr_fence_count(plr_context *context);

// --- Memory
// ----------------------------------------------------------------------------------------------------------------

/// Pooled allocation, 64-byte aligned; null (and PLR_OUT_OF_MEMORY sticks) when the limit would be passed: the message
/// names rank, op, layer, component, bytes asked, bytes free, the largest free block and the largest live buffers. Zero
/// bytes give a valid pointer that must not be read. The order of calls is the order of reuse: memory released here may
/// be handed out at once, so a user on another lane must be ordered by an event first.
void *plr_allocate(plr_context *context, plr_space space, int64_t bytes, const plr_tag *tag);
void plr_release(plr_context *context, plr_space space, void *pointer);

/// The arena of a space: memory whose size was known before launch, with places that the caller has laid out. It is the
/// last memory that the space gives, 64-byte aligned, at the front of the largest free block, and lives as long as the
/// context; plr_allocate, and calls that take memory from the pool, fail on that space from then on. The same arena
/// again when the same bytes are asked for. Null after recording why: PLR_OUT_OF_MEMORY with the numbers of
/// plr_allocate.
void *plr_arena(plr_context *context, plr_space space, int64_t bytes, const plr_tag *tag);

typedef struct plr_space_report {
  int64_t limit_bytes;
  int64_t live_bytes;   ///< Handed out now, rounded to 64.
  int64_t peak_bytes;   ///< Highest live_bytes since plr_reset_peak.
  int64_t extent_bytes; ///< Most bytes outside the largest free block since plr_reset_peak: peak plus fragmentation.
  int64_t allocations;  ///< plr_allocate calls since the context was made.
  /// Bytes of each component at the moment of the peak, and each component's own peak; likewise for phases the highest
  /// live bytes while a call of that phase allocated.
  int64_t at_peak_bytes[PLR_COMPONENTS];
  int64_t component_peak_bytes[PLR_COMPONENTS];
  int64_t phase_peak_bytes[PLR_PHASES];
} plr_space_report;

/// Fills the report after a failure too.
plr_status plr_memory_report(plr_context *context, plr_space space, plr_space_report *report);
/// Starts a new measurement: the peaks become the live bytes, no fence has been counted and no plan made.
void plr_reset_peak(plr_context *context);

// --- Planned runs
// --------------------------------------------------------------------------------------------------------------
// A run whose memory was laid out before launch takes two arenas and allocates nothing later. These calls get it ready
// and observe it; no step needs them to compute.

/// on = 1: calls on lanes check what they can and make what they would make at first use (threads of lanes, the
/// library's products: of grouped ones all that any number of rows needs), but enqueue nothing. Plans are not looked
/// into and may have been filled with anything; plr_plan_create is refused; plr_record gives an event that is complete;
/// plr_wait, plr_fence and plr_writes do nothing, and no fence is counted. So a step that is called once between 1 and
/// 0 makes all that it will need, and what was made stays. Waits for all lanes.
plr_status plr_prepare(plr_context *context, int32_t on);

/// seed != 0: fills the arenas, and up to max(1 MiB, an eighth of the arena) of free memory behind each, with a byte
/// that depends on the seed, and heeds declared ranges from now on. What the arenas held is lost. Runs under seeds that
/// differ by less than 256 find other bytes everywhere, so results that agree read nothing that was not written. seed =
/// 0 ends the measurement. Waits for all lanes.
plr_status plr_measure(plr_context *context, int32_t seed);
/// Bytes of the space from its beginning to the last one of the arena, or behind it, that has been written since
/// plr_measure: that differs from the fill, or was declared as written. What was allocated before the arena counts as
/// written. Waits for all lanes; answers after a failure too. -1 when nothing is measured or the space has no arena.
int64_t plr_observed_bytes(plr_context *context, plr_space space);
/// Ranges that the next call on the lane reads and writes, reads first. While a measurement goes on, plr_writes
/// enqueues a fill of its range, but for what is also read, with a second byte: memory that was handed out counts,
/// though the call may write none of it, or the first byte. A range that begins in an arena must end in it. Otherwise
/// both do nothing and cost next to nothing.
plr_status plr_reads(plr_lane *lane, const void *pointer, int64_t bytes);
plr_status plr_writes(plr_lane *lane, void *pointer, int64_t bytes);

// --- Calls on a lane
// ------------------------------------------------------------------------------------------------------- Tensors are
// dense, row-major; sizes are in elements. `type` is the working type of the tensors that have no fixed type.

plr_status plr_copy(plr_lane *lane, const plr_tag *tag, void *destination, const void *source, int64_t bytes);
plr_status plr_zero(plr_lane *lane, const plr_tag *tag, void *destination, int64_t bytes);

/// A compiled kernel: `function(arguments)` with `count` pointers, which the call copies.
typedef void (*plr_kernel)(void **arguments);
plr_status plr_launch(plr_lane *lane, const plr_tag *tag, plr_kernel function, void *const *arguments, int64_t count);

/// Some calls need scratch memory whose size the library, or the data, decides. Their last two arguments say where it
/// lies. `workspace_bytes` = PLR_FROM_POOL, with a null `workspace`: it comes from the device space and is released by
/// the call; like all memory that is released, it may be handed out at once. Otherwise the call uses these bytes,
/// aligned to 64, and no others; it fails, with the numbers, when it needs more. As with all memory of the caller's,
/// users on other lanes are ordered by events.
#define PLR_FROM_POOL (-1)

/// c[m,n] (+)= op(a)[m,k] · op(b)[k,n], accumulated in f32. a is [m,k], or [k,m] when transpose_a; b is [k,n], or [n,k]
/// when transpose_b. a and b are `type`, c is `result_type`; f32 operands give an f32 result. Zero m, n or k are legal;
/// accumulate = 0 overwrites c whatever it held. The scratch memory is the library's; from the pool it comes under the
/// component workspace.
plr_status plr_gemm(plr_lane *lane, const plr_tag *tag, int32_t transpose_a, int32_t transpose_b, int32_t accumulate,
                    plr_type type, plr_type result_type, int64_t m, int64_t n, int64_t k, const void *a, const void *b,
                    void *c, void *workspace, int64_t workspace_bytes);
/// Scratch bytes of plr_gemm with these arguments, on this machine. Needs no context, and is quick enough for all
/// shapes of a program. -1 when the arguments are wrong or the library has no such product.
int64_t plr_gemm_workspace_bytes(plr_gemm_kind kind, int32_t transpose_a, int32_t transpose_b, int32_t accumulate,
                                 plr_type type, plr_type result_type, int64_t m, int64_t n, int64_t k);

/// result[rows, columns] = table[ids[i], :]; PLR_BAD_DATA names row and id when an id is not in [0, vocabulary).
plr_status plr_embedding(plr_lane *lane, const plr_tag *tag, plr_type type, int64_t rows, int64_t columns,
                         int64_t vocabulary, const void *table, const int32_t *ids, void *result);
/// result[vocabulary, columns] = sums of cotangent rows by id, rows ascending, in f32; all rows are written.
plr_status plr_embedding_grad(plr_lane *lane, const plr_tag *tag, plr_type type, int64_t rows, int64_t columns,
                              int64_t vocabulary, const void *cotangent, const int32_t *ids, void *result,
                              void *workspace, int64_t workspace_bytes);

/// output = input · inverse · weight, inverse[rows] = 1/sqrt(mean(input²) + epsilon).
plr_status plr_rms_norm(plr_lane *lane, const plr_tag *tag, plr_type type, int64_t rows, int64_t columns, float epsilon,
                        const void *input, const void *weight, void *output, float *inverse);
plr_status plr_rms_norm_grad(plr_lane *lane, const plr_tag *tag, plr_type type, int64_t rows, int64_t columns,
                             const void *cotangent, const void *input, const void *weight, const float *inverse,
                             void *input_grad, void *weight_grad, void *workspace, int64_t workspace_bytes);

/// cos, sin [rows, half]: inv_freq[j] = f32(theta^(-j/half)), phase = f32(position)·inv_freq[j] in f32, cosine and sine
/// of that f32 phase in float64, rounded.
plr_status plr_rotary_table(plr_lane *lane, const plr_tag *tag, int64_t rows, int64_t half, double theta,
                            const int32_t *positions, float *cos, float *sin);
/// [rows, heads, 2·half]: (a·cos − b·sin, b·cos + a·sin), sines negated when inverse.
plr_status plr_rotary(plr_lane *lane, const plr_tag *tag, plr_type type, int64_t rows, int64_t heads, int64_t half,
                      int32_t inverse, const void *input, const float *cos, const float *sin, void *result);

/// Causal attention of query [rows, query_heads, head_size] over key, value [rows, key_heads, head_size]; row i sees
/// rows starts[i] … i (PLR_BAD_DATA when starts[i] is not in 0 … i). Blocked; lse is [rows, query_heads].
plr_status plr_attention(plr_lane *lane, const plr_tag *tag, plr_type type, int64_t rows, int64_t query_heads,
                         int64_t key_heads, int64_t head_size, float scale, const void *query, const void *key,
                         const void *value, const int32_t *starts, void *output, float *lse, void *workspace,
                         int64_t workspace_bytes);
plr_status plr_attention_grad(plr_lane *lane, const plr_tag *tag, plr_type type, int64_t rows, int64_t query_heads,
                              int64_t key_heads, int64_t head_size, float scale, const void *cotangent,
                              const void *query, const void *key, const void *value, const int32_t *starts,
                              const void *output, const float *lse, void *query_grad, void *key_grad, void *value_grad,
                              void *workspace, int64_t workspace_bytes);

/// What a vocabulary loss does with logits and labels.
typedef struct plr_vocabulary {
  int64_t size;          ///< Columns that exist, of all ranks; the ones behind are padding and count as −inf.
  int32_t ignore_index;  ///< Rows with this label have neither loss nor gradient.
  float label_smoothing; ///< ε of (1 − ε)·(lse − y[label]) + ε·(lse − mean y); 0: none.
  float z_loss;          ///< ζ of ζ·lse²; 0: none.
  float softcap;         ///< c of c·tanh(x/c), before columns are masked; 0: none.
} plr_vocabulary;

/// y = the logits, plus bias [columns] (may be null), capped, masked; result = y − lse and lse[i] = log Σ exp(y[i, :]).
/// All pointers but bias are [rows, columns] or [rows].
plr_status plr_log_softmax(plr_lane *lane, const plr_tag *tag, const plr_vocabulary *vocabulary, int64_t rows,
                           int64_t columns, const float *input, const float *bias, float *result, float *lse);
/// result [rows, columns] from the cotangents of the log probabilities and of lse (may be null), and from
/// plr_log_softmax's results. bias_grad [columns] (may be null) is the sum of the rows of result.
plr_status plr_log_softmax_grad(plr_lane *lane, const plr_tag *tag, const plr_vocabulary *vocabulary, int64_t rows,
                                int64_t columns, const float *cotangent, const float *lse_cotangent,
                                const float *output, const float *lse, float *result, float *bias_grad);
plr_status plr_count_labels(plr_lane *lane, const plr_tag *tag, int64_t rows, int32_t ignore_index,
                            const int32_t *labels, float *result);
/// losses [rows] of log probabilities: −(1 − ε)·p[label] − ε·mean over the columns that exist + ζ·lse²; 0 for a row
/// that is ignored. PLR_BAD_DATA names row and label when a label is neither ignore_index nor in [0, size).
plr_status plr_nll(plr_lane *lane, const plr_tag *tag, const plr_vocabulary *vocabulary, int64_t rows, int64_t columns,
                   const float *log_probs, const float *lse, const int32_t *labels, float *losses);
/// The adjoint, from the cotangents [rows] of the losses; lse_grad [rows] may be null when there is no z-loss.
plr_status plr_nll_grad(plr_lane *lane, const plr_tag *tag, const plr_vocabulary *vocabulary, int64_t rows,
                        int64_t columns, const float *cotangents, const float *lse, const int32_t *labels,
                        float *log_probs_grad, float *lse_grad);
/// result[1] = Σ weights[i] · losses[i] / count, rows ascending, in f32; 0 when count is 0. weights may be null: 1.
plr_status plr_mean_loss(plr_lane *lane, const plr_tag *tag, int64_t rows, const float *losses, const float *weights,
                         const float *count, float *result);
/// result[i] = cotangent · weights[i] / count; 0 when count is 0.
plr_status plr_mean_loss_grad(plr_lane *lane, const plr_tag *tag, int64_t rows, const float *cotangent,
                              const float *weights, const float *count, float *result);

// A vocabulary loss by tiles of logits. The table of the vocabulary may lie in shards of `shard_rows` rows on the ranks
// of a group; `first` [1] is the global number of a shard's first row, and `column` that of a tile's first column in
// it. A row's state is (m, z, y), and Σ of the logits when there is label smoothing: 3 or 4 numbers; all 0: nothing
// seen yet.

/// start[1] = ((place − hops) mod ranks) · shard_rows: the first row of the shard that came from `hops` places before.
plr_status plr_shard_start(plr_lane *lane, const plr_tag *tag, int64_t place, int64_t ranks, int64_t hops,
                           int64_t shard_rows, int32_t *start);
/// Folds a tile [rows, columns] of raw logits into state [rows, 3 or 4], in place. Columns whose global number is not
/// below the vocabulary's size do not count. bias [columns] may be null. A label outside counts as in no tile.
plr_status plr_fold_logits(plr_lane *lane, const plr_tag *tag, const plr_vocabulary *vocabulary, int64_t rows,
                           int64_t columns, int64_t column, const int32_t *first, const float *logits,
                           const float *bias, const int32_t *labels, float *state);
/// result [rows, ...] = the state of all columns, from those of `parts` disjoint sets of them, states [parts, rows,
/// ...]; in the order of parts.
plr_status plr_merge_states(plr_lane *lane, const plr_tag *tag, const plr_vocabulary *vocabulary, int64_t parts,
                            int64_t rows, const float *states, float *result);
/// losses and lse [rows] once all columns are folded in. PLR_BAD_DATA as for plr_nll.
plr_status plr_finish_losses(plr_lane *lane, const plr_tag *tag, const plr_vocabulary *vocabulary, int64_t rows,
                             const float *state, const int32_t *labels, float *losses, float *lse);
/// The derivative of Σ cotangents[i] · losses[i] by the raw logits of a tile, as f32 or bf16. result may be logits when
/// it is f32. Rows that are ignored, and columns that do not exist, get 0.
plr_status plr_logits_grad(plr_lane *lane, const plr_tag *tag, const plr_vocabulary *vocabulary, plr_type result_type,
                           int64_t rows, int64_t columns, int64_t column, const int32_t *first, const float *logits,
                           const float *bias, const int32_t *labels, const float *lse, const float *cotangents,
                           void *result);
/// sums[columns] += the rows of input [rows, columns], ascending, in f32.
plr_status plr_column_sums(plr_lane *lane, const plr_tag *tag, plr_type type, int64_t rows, int64_t columns,
                           const void *input, float *sums);
/// result [rows, columns] = the rows of a shard [shard_rows, columns] that ids name, zeros for ids of other shards.
/// PLR_BAD_DATA names row and id when an id is not in [0, vocabulary).
plr_status plr_embedding_shard(plr_lane *lane, const plr_tag *tag, plr_type type, int64_t rows, int64_t columns,
                               int64_t shard_rows, int64_t vocabulary, const int32_t *first, const void *shard,
                               const int32_t *ids, void *result);
/// sums [shard_rows, columns] += the rows of cotangent whose ids are of the shard, rows ascending, in f32.
plr_status plr_embedding_shard_grad(plr_lane *lane, const plr_tag *tag, plr_type type, int64_t rows, int64_t columns,
                                    int64_t shard_rows, const int32_t *first, const void *cotangent, const int32_t *ids,
                                    float *sums);

/// result = Σ gradients² over `segments` ranges of the group, (offset, length) pairs in elements, in float64.
plr_status plr_sum_squares(plr_lane *lane, const plr_tag *tag, plr_type type, int64_t segments, const int64_t *ranges,
                           const void *gradients, double *result);
/// norm = sqrt(Σ squares[i][0]), i ascending, in float64. The call copies the array of pointers.
plr_status plr_grad_norm(plr_lane *lane, const plr_tag *tag, int64_t count, const double *const *squares, float *norm);
/// factor = min(1, max_norm/norm); 1 when norm is 0 or max_norm is +inf; NaN when norm is not finite.
plr_status plr_clip_factor(plr_lane *lane, const plr_tag *tag, float max_norm, const float *norm, float *factor);

/// AdamW as moe.adamw defines it, in place. `ranges`: (offset, length, decay 0 or 1) triples in elements. master is
/// null exactly when type is PLR_F32. A factor that is not finite leaves everything as it was. PLR_BAD_DATA when *step
/// < 1.
plr_status plr_adamw(plr_lane *lane, const plr_tag *tag, plr_type type, plr_type gradient_type, int64_t segments,
                     const int64_t *ranges, double beta1, double beta2, double epsilon, double weight_decay,
                     void *parameters, const void *gradients, float *first, float *second, float *master,
                     const float *factor, const float *learning_rate, const int32_t *step);

// --- Collectives
// ----------------------------------------------------------------------------------------------------------------
// Every rank of the group makes the same calls on a lane in the same order; what does not match (kind, count, type,
// group, place in the order) fails on all of them, before any result is written. Lanes are apart: ranks meet on lanes
// of one kind. Sums are taken in rank order, bf16 and f32 in f32 and rounded once, so all ranks get the same bits, and
// the same ones in every run. A group of one rank copies.

/// result[count] = the sum over the ranks of input[count]; result may be input.
plr_status plr_all_reduce(plr_lane *lane, const plr_tag *tag, plr_group *group, plr_type type, int64_t count,
                          const void *input, void *result);
/// result[ranks of the group, count] = input[count] of each rank.
plr_status plr_all_gather(plr_lane *lane, const plr_tag *tag, plr_group *group, plr_type type, int64_t count,
                          const void *input, void *result);
/// result[count] = this rank's part of the sum over the ranks of input[ranks of the group, count].
plr_status plr_reduce_scatter(plr_lane *lane, const plr_tag *tag, plr_group *group, plr_type type, int64_t count,
                              const void *input, void *result);
/// result[count] = input[count] of the rank `hops` places before this one in the group, round and round: what a rank
/// has moves `hops` places on. result and input are apart. Sends nothing when hops is a multiple of the ranks.
plr_status plr_shift(plr_lane *lane, const plr_tag *tag, plr_group *group, plr_type type, int64_t hops, int64_t count,
                     const void *input, void *result);
/// Sends `send_bytes[r]` bytes to rank r of the group and receives `receive_bytes[r]` from it; both sides lie in rank
/// order without gaps. The sizes, host arrays that the call copies, are checked against each other.
plr_status plr_all_to_all(plr_lane *lane, const plr_tag *tag, plr_group *group, const int64_t *send_bytes,
                          const int64_t *receive_bytes, const void *input, void *result);

// --- Experts
// --------------------------------------------------------------------------------------------------------------------
// A row is what one token sends to one expert. The group's ranks hold `experts` experts in equal parts, in rank order.

typedef int32_t plr_score;
enum {
  PLR_SOFTMAX = 0,       ///< Softmax over all experts, then the top k.
  PLR_TOP_K_SOFTMAX = 1, ///< The top k, then softmax over them.
  PLR_SIGMOID = 2        ///< Sigmoid of each logit.
};

/// How moe.route chooses.
typedef struct plr_routing {
  int64_t experts, top_k;
  int64_t expert_groups, kept_groups; ///< 1 and 1: no groups.
  plr_score score;
  int32_t normalize; ///< 1: the weights of a token are divided by their sum.
  float scale;       ///< The weights are multiplied by it last.
} plr_routing;

/// ids, weights [tokens, top_k] and counts [experts] as moe.route defines them. `bias` [experts] may be null, and so
/// may `token_count` [1]: with it, rows from that one on are padding. PLR_BAD_DATA when it is not in 0 … tokens.
plr_status plr_route(plr_lane *lane, const plr_tag *tag, const plr_routing *routing, int64_t tokens,
                     const float *logits, const float *bias, const int32_t *token_count, int32_t *ids, float *weights,
                     int32_t *counts);
/// logits_grad [tokens, experts] from the cotangent of the weights [tokens, top_k].
plr_status plr_route_grad(plr_lane *lane, const plr_tag *tag, const plr_routing *routing, int64_t tokens,
                          const float *cotangent, const float *logits, const int32_t *ids, float *logits_grad);

/// What moe.balance_loss weighs scores with.
typedef struct plr_balance {
  int64_t experts, top_k;
  int64_t sequence, sequences; ///< Tokens of a sequence, and sequences of all ranks; not read when there are counts.
  plr_score score;             ///< PLR_TOP_K_SOFTMAX as PLR_SOFTMAX; sigmoids are divided by their sum.
  float coefficient;
} plr_balance;

/// result[1] = this rank's share as moe.balance_loss defines it. Either `counts` [experts], of all ranks, or `ids`
/// [tokens, top_k] is null. PLR_BAD_DATA names a count that is negative, or token, slot and id of an id that is no
/// expert and not −1.
plr_status plr_balance_loss(plr_lane *lane, const plr_tag *tag, const plr_balance *balance, int64_t tokens,
                            const float *logits, const int32_t *counts, const int32_t *ids, float *result);
/// logits_grad [tokens, experts] from the cotangent [1] of the share.
plr_status plr_balance_loss_grad(plr_lane *lane, const plr_tag *tag, const plr_balance *balance, int64_t tokens,
                                 const float *cotangent, const float *logits, const int32_t *counts, const int32_t *ids,
                                 float *logits_grad);
/// result[1] = coefficient / tokens · Σ (log Σ exp(logits[row, :]))² over `rows`, of the `tokens` of all ranks.
plr_status plr_z_loss(plr_lane *lane, const plr_tag *tag, int64_t rows, int64_t experts, int64_t tokens,
                      float coefficient, const float *logits, float *result);
plr_status plr_z_loss_grad(plr_lane *lane, const plr_tag *tag, int64_t rows, int64_t experts, int64_t tokens,
                           float coefficient, const float *cotangent, const float *logits, float *logits_grad);
/// bias[e] += rate · sign(Σ counts − experts · counts[e]), in place. A factor that is not finite leaves it as it was.
plr_status plr_update_bias(plr_lane *lane, const plr_tag *tag, int64_t experts, float rate, const int32_t *counts,
                           const float *factor, float *bias);

/// What a plan is made for, as !moe.plan and #moe.least_loaded say it. Each rank of the group has its own `tokens`; all
/// else is the same on all of them, which is checked.
typedef struct plr_plan_shape {
  int64_t tokens, top_k, experts;
  int64_t helper_slots;   ///< Experts of other ranks that a rank may take rows of; 0 without balance.
  int64_t chunks, leaves; ///< Iterations are at most chunks · leaves; 1 and 1: one, for all tokens.
  int64_t capacity;       ///< The most rows a rank may receive in an iteration; 0: what comes (one leaf a chunk).
  int64_t alpha_numerator, alpha_denominator; ///< 0 and 1: every expert's rows go to its own rank.
  int64_t min_rows;                           ///< At least 1.
  int64_t threshold_numerator, threshold_denominator;
} plr_plan_shape;

/// Where the rows of tokens with these `ids` [tokens, top_k] go; −1 sends none, and PLR_BAD_DATA names token, slot and
/// id of any other id outside [0, experts). Waits for the lane and for the group: after it the number of rows that this
/// rank receives is known. A rank's expert slots are its own experts and then its helper slots. Received rows of an
/// iteration lie by expert slot, then by source rank, token and slot. The table lies in the device space. Null after
/// recording why; all calls below then do nothing.
plr_plan *plr_plan_create(plr_lane *lane, const plr_tag *tag, plr_group *group, const plr_plan_shape *shape,
                          const int32_t *ids);
/// Like plr_release, in the order of calls.
void plr_plan_release(plr_plan *plan);
/// Iterations that have tokens, the same number on all ranks: at least `chunks`. 0 for null, and for memory in which
/// plr_plan_fill has left no plan.
int64_t plr_plan_iterations(const plr_plan *plan);
/// Rows this rank receives in an iteration; 0 for those from plr_plan_iterations on, for null, and for memory in which
/// plr_plan_fill has left no plan.
int64_t plr_plan_rows(const plr_plan *plan, int64_t iteration);
/// The same plan in the caller's memory: plr_footprint_plan_host bytes that the host reads, plr_footprint_plan_device
/// bytes of a table, both aligned to 64. Enqueues and returns; both memories are written when the lane runs it and not
/// before, so that tasks enqueued earlier may still read what lies there, a plan included. The handle is `(plr_plan
/// *)host`. A call below looks into the plan when it is made: the calling thread first goes through a plr_fence on an
/// event recorded after the fill. The plan is there until its memory is written again; plr_plan_release refuses it.
/// Fails on the lanes of all ranks when a leaf alone is above the capacity at one of them (the message has the smallest
/// capacity that holds it), and when rows do not fit 32 bits.
plr_status plr_plan_fill(plr_lane *lane, const plr_tag *tag, plr_group *group, const plr_plan_shape *shape,
                         const int32_t *ids, void *host, int64_t host_bytes, void *device, int64_t device_bytes);

/// What came of a plan. Ratios are of whole numbers, so exact.
typedef struct plr_plan_record {
  const plr_tag *tag;
  int64_t iterations, chunks, capacity;
  int64_t moves;                ///< Pairs of an expert and a rank that helps with it.
  int64_t max_load, total_load; ///< Rows that the fullest rank computes, and all ranks.
  int64_t native_max_load;      ///< Rows of the fullest rank were each expert on its own.
  int64_t max_received;         ///< Most rows that one rank receives in one iteration, over all ranks.
  /// Of this rank: over the chunks the largest ratio of the rows sent to one rank to the mean over ranks.
  double send_ratio;
  /// Over all ranks: most rows that one receives of one whole chunk.
  int64_t max_chunk_received;
} plr_plan_record;

/// Copies up to `capacity` records, from number `first` on, of the plans made since the context was made or since
/// plr_reset_peak; returns how many there are in all, of which the first 4096 are kept. Call after plr_synchronize.
int64_t plr_plan_records(plr_context *context, int64_t first, plr_plan_record *records, int64_t capacity);

// The calls below take the number of an iteration, 0 for a plan with one. An empty iteration does nothing: ranks do not
// meet for it, nothing is written, and no memory is looked at.

/// rows [received, columns] = the rows of input [tokens, columns] at their experts; row_values [received] likewise from
/// values [tokens, top_k]. Either pair may be null. The rows that this rank sends are staged in plr_footprint_exchange
/// bytes of scratch memory; from the pool they come under the tag's component. plr_combine likewise.
plr_status plr_dispatch(plr_lane *lane, const plr_tag *tag, plr_plan *plan, int64_t iteration, plr_type type,
                        int64_t columns, const void *input, const float *values, void *rows, float *row_values,
                        void *workspace, int64_t workspace_bytes);
/// The adjoint: result [tokens, columns] = the sum of a token's rows, slots ascending, in f32, rounded once; values
/// [tokens, top_k] = row_values of each slot. A slot without an expert adds nothing and has the value 0. Either pair
/// may be null. Only the iteration's tokens are written.
plr_status plr_combine(plr_lane *lane, const plr_tag *tag, plr_plan *plan, int64_t iteration, plr_type type,
                       int64_t columns, const void *rows, const float *row_values, void *result, float *values,
                       void *workspace, int64_t workspace_bytes);

/// result [received, n] = rows [received, k] · op(weights[e]) with the weights of each row's expert: [k, n], or [n, k]
/// when transpose_weights; of those in helper slots from `helpers` (null when there are none). Sums in f32. An expert
/// without rows costs nothing.
plr_status plr_grouped_gemm(plr_lane *lane, const plr_tag *tag, const plr_plan *plan, int64_t iteration,
                            int32_t transpose_weights, plr_type type, int64_t n, int64_t k, const void *rows,
                            const void *weights, const void *helpers, void *result, void *workspace,
                            int64_t workspace_bytes);
/// result[e] [m, n] (+)= a_eᵀ · b_e over the rows of each expert of this rank, a [received, m], b [received, n], and
/// helper_result[s] likewise (null when there are no helper slots); exactly 0 for an expert without rows when
/// accumulate = 0. Sums in f32; the results are `type` or f32.
plr_status plr_grouped_gemm_grad(plr_lane *lane, const plr_tag *tag, const plr_plan *plan, int64_t iteration,
                                 int32_t accumulate, plr_type type, plr_type result_type, int64_t m, int64_t n,
                                 const void *a, const void *b, void *result, void *helper_result, void *workspace,
                                 int64_t workspace_bytes);
/// Scratch bytes of the two, on this machine: the most over every number of received rows 0 ... max_rows and every
/// split of them among the experts. -1 as for plr_gemm_workspace_bytes.
int64_t plr_grouped_gemm_workspace_bytes(plr_gemm_kind kind, int32_t transpose_weights, plr_type type, int64_t max_rows,
                                         int64_t n, int64_t k);
int64_t plr_grouped_gemm_grad_workspace_bytes(plr_gemm_kind kind, int32_t accumulate, plr_type type,
                                              plr_type result_type, int64_t max_rows, int64_t m, int64_t n);

/// helpers [helper slots, count] = for each helper slot of this rank the weights of its expert, from `weights` [experts
/// of a rank, count] on the expert's own rank. Slots without an expert are left as they were.
plr_status plr_migrate_experts(plr_lane *lane, const plr_tag *tag, plr_plan *plan, plr_type type, int64_t count,
                               const void *weights, void *helpers);
/// grads [experts of a rank, count] += what helpers have for this rank's experts in helper_grads [helper slots, count],
/// ranks ascending, then slots. One expert's numbers at a time are staged in plr_footprint_return_experts bytes.
plr_status plr_return_expert_grads(plr_lane *lane, const plr_tag *tag, plr_plan *plan, int64_t count,
                                   const float *helper_grads, float *grads, void *workspace, int64_t workspace_bytes);

/// result [rows, columns] = silu(gate) · up, [gate | up] = input [rows, 2·columns]; silu(g) = g / (1 + exp(−g)).
plr_status plr_swiglu(plr_lane *lane, const plr_tag *tag, plr_type type, int64_t rows, int64_t columns,
                      const void *input, void *result);
/// result [rows, 2·columns] from the cotangent [rows, columns] and the input.
plr_status plr_swiglu_grad(plr_lane *lane, const plr_tag *tag, plr_type type, int64_t rows, int64_t columns,
                           const void *cotangent, const void *input, void *result);
/// result[i, :] = factors[i] · input[i, :]
plr_status plr_scale_rows(plr_lane *lane, const plr_tag *tag, plr_type type, int64_t rows, int64_t columns,
                          const void *input, const float *factors, void *result);
/// result[i] = Σ_c a[i, c] · b[i, c], in f32.
plr_status plr_row_dot(plr_lane *lane, const plr_tag *tag, plr_type type, int64_t rows, int64_t columns, const void *a,
                       const void *b, float *result);

// --- Traces
// ----------------------------------------------------------------------------------------------------------------

/// One call on a lane, when the context was made with trace = 1.
typedef struct plr_span {
  const plr_tag *tag;
  const char *call; ///< "plr_gemm", …
  plr_lane_kind lane;
  int64_t start_ns, end_ns; ///< Since the context was made.
  int64_t flops;            ///< 0 when the call does not count them. Attention: of the unmasked half.
  /// Of a product: transpose_a, transpose_b, accumulate, type, result_type, m, n, k. Others: 0. Of a grouped one m (of
  /// its gradient k) counts the rows of all experts.
  int64_t shape[8];
  int64_t products; ///< Of a product: 1, of a grouped one the experts that have rows. Others: 0.
} plr_span;

/// Copies up to `capacity` spans from number `first` on; returns how many there are in all. Call after plr_synchronize.
int64_t plr_trace(plr_context *context, int64_t first, plr_span *spans, int64_t capacity);
void plr_trace_clear(plr_context *context);

#ifdef __cplusplus
}
#endif

#endif // PLATEAU_RUNTIME_H
