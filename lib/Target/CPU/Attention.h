//===- Attention.h - the parts of flash attention ---------------*- C++ -*-===//
//
// One work item is a tile of query rows against one KV head. Its keys come in
// chunks, counted from position 0: a chunk has a softmax of its own (maximum m,
// sum l, output o), and the row's softmax so far (M, L, O) takes it in:
//
//   M' = max(M, m), a = 2^(M - M'), b = 2^(m - M')
//   L' = L a + l b, O' = O a + o b
//
// as the online softmax of Milakov and Gimelshein (arXiv:1805.02867) in flash
// attention (arXiv:2205.14135). A row's bits depend on its own keys only, not
// on the batch, the split or the threads; a chunk that it sees nothing of
// leaves its bits alone. Rows of a tile: `tokens` consecutive tokens x the
// query heads of the KV head, so that later rows never see fewer keys. A
// chunk's keys are pages as the KV cache has them: keys [D][P], values [P][Dv].
//
//===----------------------------------------------------------------------===//
#pragma once
#include "Kernels.h"
#include "gptc/Schedule/Schedule.h"

namespace gptc::cpu {

/// Sizes of a tile and its places in scratch, in bytes. D head size, P keys of
/// a page, Dv value pitch, R rows of a tile, B rows of a block, which are what
/// scores are kept of.
struct AttentionPlan {
  AttentionPlan(gpt::KernelOp kernel, const TargetDesc &target);

  int64_t d, dv, page, chunk, groups, tokens, block, lanes, registers;
  bool dense, alibi, copiesValues;
  /// Scores are only scaled, so that the scale, with log2 e, can be q's.
  bool plain;
  unsigned maskCount;
  int64_t rows;   ///< R, whole blocks
  int64_t qPitch; ///< elements from a row of q to the next
  int64_t sPitch; ///< elements from a row of scores to the next

  int64_t q;         ///< [R][qPitch], scaled
  int64_t output;    ///< O [R][Dv]
  int64_t maximum;   ///< M [R]
  int64_t sum;       ///< L [R]
  int64_t limit;     ///< [R] i64: keys that the row sees
  int64_t position;  ///< alibi: [R] i64, of the row among the keys
  int64_t slope;     ///< alibi: [R]
  int64_t maskRows;  ///< of each mask: [R] i64, offset of the row in it
  int64_t ahead;     ///< [R][2] addresses of D numbers that are soon in use
  int64_t scores;    ///< [B][sPitch]
  int64_t part;      ///< a ChunkPart of B rows
  int64_t lanewise;  ///< [B][lanes]: of each row, its maxima or sums by lane
  int64_t reference; ///< m [B], 0 where the row sees nothing
  int64_t oldFactor, newFactor; ///< a, b [B]
  int64_t keyPages, valuePages; ///< [chunk / P] addresses
  int64_t keys;                 ///< dense: [chunk / P][D][P]
  int64_t values;               ///< dense, if they are copied: [chunk][Dv]
  int64_t bytes;

  int64_t pages() const { return chunk / page; }
  /// Bytes of a ChunkPart of `rows` rows.
  int64_t partBytes(int64_t rows) const;
};

/// A product's register tile: rows x vectors of columns.
struct AttentionTile {
  int64_t rows, vectors;
};
/// With all rows that `vectors` accumulators each leave room for.
AttentionTile attentionTile(const AttentionPlan &p, int64_t vectors);
/// How columns are cut into tiles as wide as can be and about equal.
llvm::SmallVector<AttentionTile> attentionTiles(const AttentionPlan &p,
                                                int64_t columns);

/// scores[rows][..] = q[rows][D] times columns of a page of keys. `stream`: the
/// page is read once, from memory.
void callScores(Emitter &e, const AttentionPlan &p, AttentionTile tile, Value q,
                Value keys, Value scores, bool stream);
/// o[rows][..] = probabilities[rows][count] times values from `column` on; the
/// first key's page is valuePages[0]. Every element is one chain of
/// multiply-adds from key to key.
void callValues(Emitter &e, const AttentionPlan &p, AttentionTile tile,
                Value probabilities, Value valuePages, int64_t column,
                Value count, Value out, bool stream);
/// to[D][P] = `count` (1 to P) rows of keys, D elements apart.
void callPackKeys(Emitter &e, const AttentionPlan &p, Value from, Value count,
                  Value to);

/// One row of queries as its softmax begins.
struct Query {
  Value q;         // its D numbers
  Value limit;     // keys before this one are seen
  Value position;  // of the row among the keys
  Value head;      // query head
  Value out;       // where its result goes
  Value next;      // the same row of the thread's next tile
  Values maskRows; // offset of the row in each mask
};

/// What a chunk's softmax leaves of some rows: m and l, each of whole vectors
/// of rows, and o [rows][Dv].
struct ChunkPart {
  /// Of room for `rows` rows at an address.
  ChunkPart(Emitter &e, const AttentionPlan &p, Value at, int64_t rows);
  Value maximum, sum, output;
};

/// The keys of a chunk against rows from row0 on, at most a block.
struct BlockRange {
  Value row0, rows; // in the tile
  Value keyBase;    // of the chunk
  Value from;       // first key of it that is computed, a page's first
  ChunkPart part;
};

class Attention {
public:
  Attention(Emitter &e, KernelContext &c, gpt::FlashAttentionOp op,
            const AttentionPlan &p);

  Emitter &e;
  const AttentionPlan &p;
  gpt::FlashAttentionOp op;
  std::optional<int64_t> window;
  llvm::SmallVector<Repeated> masks;

  Value place(int64_t offset) { return e.at(scratch, offset); }
  Value elem(int64_t offset, Value index, int64_t size = 4) {
    return e.elem(place(offset), index, size);
  }

  /// Before the rows of a tile are loaded.
  void begin();
  void loadQuery(Value row, const Query &query);
  /// The first chunk that a row sees anything of, when it sees keys before
  /// `limit`.
  Value firstChunk(Value limit);
  /// Takes in the chunk of keys from keyBase on, whose pages lie at keyPages
  /// and valuePages.
  void chunk(Value rows, Value keyBase);
  /// What chunk does, apart: the chunk's own softmax of `rows` rows, at most a
  /// block, that all see some of its keys, and taking it in.
  void computePart(Value rows, Value keyBase, const ChunkPart &part);
  void takePart(Value rows, const ChunkPart &part);
  void finish(Value row, Value out);

private:
  Value scratch;
  double scale;
  Value slopes;
  Value keyCount; // of the masks' columns

  Value word(int64_t offset, Value index) {
    return e.load(e.i64(), elem(offset, index, 8));
  }
  /// Keys before this one, counted from keyBase, are seen by a row: 0 to chunk.
  Value seen(Value row, Value keyBase);
  void scoresOf(const BlockRange &b);
  void valuesOf(const BlockRange &b);
  /// Runs body if any row sees a key of the chunk; `whole`: all rows see all.
  void ifSeen(BlockRange b,
              llvm::function_ref<void(const BlockRange &, Value whole)> body);
  void compute(const BlockRange &b, Value whole);
  void merge(Value row0, Value rows, const ChunkPart &part);

  // OnlineSoftmax.cpp
  void softmax(const BlockRange &b, Value whole);
  Value score(Value s, Value row, Value key);
  Value rowScore(Value s, const BlockRange &b, Value row, Value first);
  void rowMaximum(const BlockRange &b, Value row, Value to);
  void fetchAhead(Value row);
  void rowExponentials(const BlockRange &b, Value row, Value to);
  void findMaxima(const BlockRange &b, Value row);
  void takeSums(Value row0, Value row, const ChunkPart &part);
  Value lastVector(const BlockRange &b, Value row);
  Value power(Value difference);
  Value reduceRows(Value row, llvm::function_ref<Value(Value, Value)> combine);
};

/// Tokens of a tile when `threads` share `rows` rows: fewer than the plan's
/// where there would be too few tiles to share.
Value tileTokens(Emitter &e, const AttentionPlan &p, Value rows, Value threads);
/// Tile number `item` of `heads` times `tiles`, head by head. Later tiles see
/// more keys: in turns from the last to the first and back, so that threads
/// that take every threads-th item, or a range, have about the same to do.
std::pair<Value, Value> headAndTile(Emitter &e, Value item, Value tiles);
/// body(row, t, g) of each row of a tile of `tokens` tokens.
void eachRow(Emitter &e, const AttentionPlan &p, Value tokens,
             llvm::function_ref<void(Value row, Value t, Value g)> body);

void emitCachedAttention(Emitter &e, KernelContext &c, gpt::FlashAttentionOp op,
                         const AttentionPlan &p);
void emitDenseAttention(Emitter &e, KernelContext &c, gpt::FlashAttentionOp op,
                        const AttentionPlan &p);

} // namespace gptc::cpu
