#pragma once

#include <cstddef>
#include <cstdint>

#include "common/model/kv_type.h"
#include "kernels/cpu/limit_loops.h"

namespace penstock {

// Plain arguments of the kernels, and the table through which they are called.
// Kernel sources are compiled for one instruction set each, so what they share
// with the rest is this header only, and its constants: no containers, no
// inline functions that the linker could take from the wrong source.

// Columns of a panel: the lanes of the kernels' vectors.
inline constexpr int kPanelColumns = 16;
// Elements along K that share a scale, of weights and of activations.
inline constexpr int kScaleDepth = 32;
// Positions of an attention split. Part of the numerics.
inline constexpr int kAttentionSplit = 256;

// How the elements of a packed weight matrix are stored. A panel holds 16
// columns (rows of the [out, in] tensor) over the whole depth:
//   nibbles  [depth / 32][4 quads][16 columns][4] bytes; the low nibble of quad
//            i is element 4 * i + e of the block, the high one that + 16
//   bytes    [depth / 32][8 quads][16 columns][4] bytes
//   numbers  [depth][16 columns]
//   pairs    [depth / 2][16 columns][2] of BF16, without those under
//            kLeastBfloat
// followed, for nibbles and bytes, by a plane of scales, and one of minima
// where the format has them, [depth / group][16 columns]. An element is
// scale * (stored - zero_point) + minimum.
enum class PanelFormat : uint8_t {
  kNibbles,         // Q4_0
  kNibblesMin,      // Q4_1
  kBytes,           // Q5_0, Q8_0, IQ4_NL
  kBytesMin,        // Q5_1
  kWideNibblesMin,  // Q4_K; wide: scales in F32, which holds products of two
  kWideBytes,       // IQ4_XS
  kWideBytesMin,    // Q5_K
  kFineNibbles,     // Q3_K; fine: wide, and groups of 16
  kFineNibblesMin,  // Q2_K
  kFineBytes,       // Q6_K
  kHalf,
  kBfloat16,       // pairs, on inputs in BF16
  kExactBfloat16,  // numbers, on inputs in F32
  kFloat,
};

// Numbers of smaller magnitude count as zero where BF16 meets BF16: products
// and their sums are multiples of 2^-124 then, and never denormal, which
// instructions treat in different ways.
inline constexpr float kLeastBfloat = 0x1p-55f;

struct PanelTraits {
  int group;         // elements along K that share a scale; 0: numbers
  bool packed;       // two nibbles a byte
  bool small;        // every stored value is under 128
  bool has_minimum;  // all values stored are quants then: zero_point is 0
  int zero_point;
  int element_bytes;  // of a scale and a minimum; of numbers themselves
};

// By PanelFormat.
inline constexpr PanelTraits kPanelTraits[] = {
    {32, true, true, false, 8, 2},      // kNibbles
    {32, true, true, true, 0, 2},       // kNibblesMin
    {32, false, false, false, 128, 2},  // kBytes
    {32, false, true, true, 0, 2},      // kBytesMin
    {32, true, true, true, 0, 4},       // kWideNibblesMin
    {32, false, false, false, 128, 4},  // kWideBytes
    {32, false, true, true, 0, 4},      // kWideBytesMin
    {16, true, true, false, 8, 4},      // kFineNibbles
    {16, true, true, true, 0, 4},       // kFineNibblesMin
    {16, false, true, false, 64, 4},    // kFineBytes
    {0, false, false, false, 0, 2},     // kHalf
    {0, false, false, false, 0, 2},     // kBfloat16
    {0, false, false, false, 0, 2},     // kExactBfloat16
    {0, false, false, false, 0, 4},     // kFloat
};

// A packed weight matrix; owns nothing. Columns past the tensor's are zero.
struct PanelMatrix {
  PanelFormat format = PanelFormat::kFloat;
  int depth = 0;
  int panels = 0;
  size_t panel_bytes = 0;  // a multiple of 64
  size_t scale_offset = 0;
  size_t min_offset = 0;
  const uint8_t* data = nullptr;  // [panels][panel_bytes]
  const float* bias = nullptr;    // [panels][16], added to sums; null: none
};

// Rows of matrix inputs. Quantised by block of 32: x = scale * q, with q in
// [-127, 127]. With two terms the second quantises what the first leaves over,
// in steps 254 times finer; matrices multiply it in the `refined` blocks of a
// row that have the largest scales, and so the largest errors. A block with NaN
// or infinity has NaN for a scale, which spoils all that it multiplies; one
// that is all under 1e-30 is zero.
struct Activations {
  int depth = 0;
  int terms = 0;                 // 0: no matrix takes quantised input
  int refined = 0;               // 0 with less than two terms
  int8_t* quants = nullptr;      // [rows][terms][depth]
  float* scales = nullptr;       // [rows][terms][depth / 32]
  int32_t* sums = nullptr;       // [rows][terms][depth / 32], of the quants
  float* scaled_sums = nullptr;  // [rows][terms][depth / 32], scale * sum
  // [rows][terms][depth / 16], of the quants; null: no matrix has such groups.
  int32_t* half_sums = nullptr;
  uint16_t* chosen = nullptr;  // [rows][refined] blocks, in order
  float* values = nullptr;     // [rows][depth]; null: no matrix takes them
  // [rows][depth], to the nearest BF16, ties to even; null: no matrix takes
  // them.
  uint16_t* bfloats = nullptr;
};

// What becomes of a sum r, bias included.
enum class Epilogue : uint8_t {
  kStore,      // y = r
  kAdd,        // y = y + scale * r
  kGatedSilu,  // panels alternate gate and up: y = silu(gate) * up
  kGatedGelu,  // the same with the GELU by tanh
};

// y[rows][columns] = x * weights^T for a range of panels. A row's result is the
// same bits for every range of rows and panels: each column is summed block by
// block along the depth, in order; the second terms of refined blocks make a
// sum of their own, which is added to it. Of a pair of BF16 the second product
// is added first, as vdpbf16ps does, and each sum is rounded.
struct GemmTask {
  const PanelMatrix* weights = nullptr;
  const Activations* x = nullptr;
  int first_row = 0;  // of x and y
  int last_row = 0;
  int first_panel = 0;  // even, as last_panel is, with gates
  int last_panel = 0;
  Epilogue epilogue = Epilogue::kStore;
  float scale = 1;
  float* y = nullptr;   // [rows][y_stride]; column 0 of the matrix
  size_t y_stride = 0;  // in elements
  // Null, or where products with gates go instead, as Activations::bfloats
  // would hold them.
  uint16_t* bfloats = nullptr;
};

// Of a head's dimensions [first, first + dim), as halves.
struct Rotation {
  int first = 0;
  int dim = 0;                    // even; 0: none
  const float* cosine = nullptr;  // [dim / 2]
  const float* sine = nullptr;    // [dim / 2]
};

inline constexpr int kMaxHeadDim = 1024;

// A page holds, per layer and KV head, in the parts that KvHeadLayout names,
//   keys    [head_dim][16 tokens] elements
//   values  [16 tokens][value_dim] elements
//   scales  [groups of dimensions][16 tokens] of BF16, of types that have them
// Of the runs of 16 elements that these make, nibbles hold two in the bytes of
// one: an even run low, the next one high; a token's values are padded to two.
//
// F16 and BF16 round to nearest, ties to even, and overflow to infinity; FP8
// e4m3 saturates. Integers are of a group of dimensions: the scale is the
// least BF16 number that reaches the group's largest magnitude with 127 (int8)
// or with -8 (int4, whose scale has a sign, and whose +8 saturates to 7). A
// group with NaN or infinity has NaN for a scale, which spoils all that it
// multiplies; one that is all under 2^-100 is zero.

// Rotates and stores the keys and values of one row.
struct WriteKvTask {
  KvType type = KvType::kF16;  // not F32
  KvHeadLayout layout;
  int kv_heads = 0;
  int head_dim = 0;  // at most kMaxHeadDim
  int value_dim = 0;
  Rotation rotation;             // at the row's position
  const float* key = nullptr;    // [kv_heads][head_dim]
  const float* value = nullptr;  // [kv_heads][value_dim]
  uint8_t* page = nullptr;       // of the row's block, in this layer
  int slot = 0;                  // of the row in the block
};

// Rotates queries in place and scales them by `scale`.
struct RotateQueryTask {
  int heads = 0;
  int head_dim = 0;
  Rotation rotation;
  float scale = 1;
  float* query = nullptr;  // [heads][head_dim]
};

// Softmax-weighted values of some queries over some positions, unnormalised.
struct AttentionState {
  float* max = nullptr;  // [queries], largest score
  float* sum = nullptr;  // [queries], of exp(score - max)
  float* out = nullptr;  // [queries][value_dim], sum of exp(score - max) * V
};

// Positions [first, last) of a sequence that a query sees.
struct VisibleRange {
  int first = 0;
  int last = 0;
};

// One split of attention for queries of one sequence and one KV head. Lanes of
// a page past the visible tokens may hold anything. A score that is NaN or
// +inf makes its query's state NaN, one of -inf weighs nothing, and a value
// that is NaN or infinite spoils its dimension: of the queries that see the
// token, never of others.
struct AttentionTask {
  KvType type = KvType::kF16;  // not F32
  KvHeadLayout layout;
  int queries = 0;
  int head_dim = 0;
  int value_dim = 0;
  float score_cap = 0;  // a score s counts as cap * tanh(s / cap); 0: as s
  const float* const* query = nullptr;    // [queries] -> [head_dim]
  const VisibleRange* visible = nullptr;  // [queries]
  const uint8_t* pages = nullptr;         // block 0, at this layer and KV head
  size_t page_stride = 0;                 // bytes from block to block
  const int32_t* blocks = nullptr;        // of the sequence, from position 0
  int split = 0;  // positions [split * kAttentionSplit, + kAttentionSplit)
  float* scratch = nullptr;  // [kMaxQueryTile][kAttentionSplit]
  AttentionState state;      // of this split; undefined for a query that sees
                             // none of it
};

inline constexpr int kMaxQueryTile = 8;

// What is not finite stays so: a NaN or an infinity in a row spoils results of
// that row, and of no other, until its logits show it.
struct KernelTable {
  const char* name;  // of the instruction set
  // RMS norm of a row x [depth] with gain [depth], quantised into out row. NaN
  // throughout where the mean square is NaN or infinite.
  void (*normalize)(const float* x, const float* gain, float epsilon,
                    const Activations& out, int row);
  // Quantises x [last - first] into elements [first, last) of out row;
  // multiples of 32. A row that is whole has yet to `choose`.
  void (*quantize)(const float* x, int first, int last, const Activations& out,
                   int row);
  // Chooses the blocks of a row to be refined; among equals, the first.
  // normalize has done it.
  void (*choose)(const Activations& out, int row);
  // RMS norm of x [count] in place; a multiple of 16.
  void (*normalize_in_place)(float* x, const float* gain, float epsilon,
                             int count);
  // to [count] += scale * x [count]; a multiple of 16.
  void (*add_scaled)(const float* x, float scale, int count, float* to);
  // x [count] = cap * tanh(scale * x / cap), or scale * x where cap is 0; a
  // multiple of 16.
  void (*soft_cap)(float* x, float scale, float cap, int count);
  void (*gemm)(const GemmTask& task);
  void (*rotate_query)(const RotateQueryTask& task);
  void (*write_kv)(const WriteKvTask& task);
  void (*attend)(const AttentionTask& task);
  // Folds a later split of query `query` into `into`.
  void (*merge)(const AttentionState& into, const AttentionState& later,
                int query, int value_dim);
  // out [value_dim] = the weighted mean of query `query`.
  void (*finish)(const AttentionState& state, int query, int value_dim,
                 float* out);
  LimitLoops limits;
};

const KernelTable& ScalarKernels();
// Defined on x86-64 only; callable where the processor has the instructions.
const KernelTable& Avx2Kernels();
const KernelTable& Avx512Kernels();
const KernelTable& Avx512Bf16Kernels();

}  // namespace penstock
