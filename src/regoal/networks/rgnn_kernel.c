/* Rounds of message passing, forward and backward, in plain C.
 *
 * The same function as `embed_reference` in rgnn.py:
 *     m_i  = f_i + MLP_R(f_1 .. f_K)_i                  for every atom R(o_1 .. o_K)
 *     f(o) = f(o) + LayerNorm(MLP_U(max messages, f(o)))
 * Where several messages are largest, the gradient flows to the first of them.
 *
 * Shapes: N nodes, M arguments of all atoms, D embedding size (a multiple of LANES), L layers.
 * A call handles the nodes [node_begin, node_end) and, of each relation, the atoms
 * [atom_begin, atom_end): whole instances, so that calls for other instances may run beside it.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef __SSE2__
#include <immintrin.h>
#endif

#ifndef REAL
#define REAL float
#define INTEGER int32_t
#endif

#ifdef __AVX512F__
#define VECTOR_BYTES 64
#define TILE_COLUMNS 4
#else
#define VECTOR_BYTES 32
#define TILE_COLUMNS 2
#endif
#define TILE_ROWS 6
#define MOST_ROWS 12     /* rows of a tile of two columns */
#define LANES ((int)(VECTOR_BYTES / sizeof(REAL)))
#define MAX_WIDTH 1024  /* K * D and 2 * D at most */
#define MAX_ARITY (MAX_WIDTH / 16)
#define MAX_ROWS 48     /* rows that stay in the nearer caches through one MLP */
#define ROOM (48 * 256) /* numbers in one block of rows; a few blocks fit on a thread's stack */
#define INLINE static inline __attribute__((always_inline))

typedef REAL vec __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(REAL)), may_alias));
typedef INTEGER ivec __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(REAL)), may_alias));

INLINE vec load(const REAL *p) { return *(const vec *)p; }
INLINE void store(REAL *p, vec v) { *(vec *)p = v; }
INLINE vec splat(REAL x) { return x - (vec){0}; }

/* Sixteen numbers at once have instructions of their own for what the general forms spell out. */
#if defined(__AVX512F__) && !defined(DOUBLE)
typedef __mmask16 mask;
INLINE mask larger(vec a, vec b) {
    return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_GT_OQ);
}
INLINE mask equal(ivec a, ivec b) { return _mm512_cmpeq_epi32_mask((__m512i)a, (__m512i)b); }
INLINE vec choose(mask m, vec yes, vec no) {
    return (vec)_mm512_mask_mov_ps((__m512)no, m, (__m512)yes);
}
INLINE ivec choose_integer(mask m, ivec yes, ivec no) {
    return (ivec)_mm512_mask_mov_epi32((__m512i)no, m, (__m512i)yes);
}
INLINE vec at_most(vec a, vec b) { return (vec)_mm512_min_ps((__m512)a, (__m512)b); }
INLINE vec reciprocal(vec x) {
    vec y = (vec)_mm512_rcp14_ps((__m512)x);
    return y * (2 - x * y);
}
INLINE vec nearest(vec x) { return (vec)_mm512_roundscale_ps((__m512)x, 0); }
INLINE vec times_two_to(vec x, vec n) { return (vec)_mm512_scalef_ps((__m512)x, (__m512)n); }
#else
typedef ivec mask;
INLINE mask larger(vec a, vec b) { return a > b; }
INLINE mask equal(ivec a, ivec b) { return a == b; }
INLINE ivec choose_integer(mask m, ivec yes, ivec no) { return (yes & m) | (no & ~m); }
INLINE vec choose(mask m, vec yes, vec no) { return (vec)choose_integer(m, (ivec)yes, (ivec)no); }
INLINE vec at_most(vec a, vec b) { return choose(a > b, b, a); }
INLINE vec reciprocal(vec x) { return 1 / x; }
#ifndef DOUBLE
INLINE vec nearest(vec x) { return (x + splat(12582912.0f)) - splat(12582912.0f); }
INLINE vec times_two_to(vec x, vec n) {
    ivec power = __builtin_convertvector(-at_most(-n, splat(126.0f)), ivec);
    return x * (vec)((power + 127) << 23);
}
#endif
#endif

typedef struct {
    int64_t size;              /* D */
    int64_t relations;         /* R */
    const int64_t *arity;      /* [R] */
    const REAL *weights;       /* all parameters, see `layout` in parameters.py */
    const int64_t *message_at; /* [R] where a relation's MLP begins in `weights` */
    int64_t update_at;         /* where the update MLP begins */
    int64_t norm_at;           /* where the layer norm's scale, then shift, begin */
} Network;

typedef struct {
    int64_t nodes;             /* N of the whole batch */
    int64_t arguments;         /* M of the whole batch */
    const int64_t *args;       /* [M] nodes, relation after relation */
    const int64_t *args_at;    /* [R] where a relation's arguments begin */
    const int64_t *atom_begin; /* [R] */
    const int64_t *atom_end;   /* [R] */
    int64_t node_begin, node_end;
    /* Where a relation has a node in one place again and again, its share of the MLP's first layer
     * is computed once. `regoal_share` fills these. */
    int64_t *shared;           /* [sum of arities] how many nodes are in a place; 0: not shared */
    int32_t *slot;             /* [M] number of an argument's node among those of its place */
    int64_t *node_of;          /* the nodes by this number; a place's begin at args_at[r] +
                                * atom_begin[r] * K + place * (atom_end[r] - atom_begin[r]) */
} Graph;

typedef struct {        /* what the backward pass needs, [L, ...] */
    REAL *embeddings;   /* [L + 1, N, D] before each round, and after the last */
    REAL *strongest;    /* [L, N, D] largest message, 0 where there is none */
    INTEGER *winner;    /* [L, N, D] which row of the arguments it came from, -1 for none */
    REAL *hidden;       /* [L, M, D] message MLPs before the activation */
    REAL *update;       /* [L, N, 2D] update MLP before the activation */
    REAL *normal;       /* [L, N, D] normalised update, before scale and shift */
    REAL *deviation;    /* [L, N] one over the standard deviation */
} Saved;

/* Gradients fade through many rounds; arithmetic on numbers too small for a full mantissa is a
 * hundred times slower, so they count as zero for the length of a call. */
#ifdef __SSE2__
#define FLUSH_BEGIN unsigned int flush_before = _mm_getcsr(); _mm_setcsr(flush_before | 0x8040)
#define FLUSH_END _mm_setcsr(flush_before)
#else
#define FLUSH_BEGIN
#define FLUSH_END
#endif

static int64_t fewer(int64_t limit, int64_t count) { return count < limit ? count : limit; }

/* How many rows of this width are one block. */
static int64_t rows_of(int64_t width) { return fewer(MAX_ROWS, ROOM / width); }

/* ---- dense products of a few rows; a matrix is its first number and the step between rows ---- */

/* out[r, :] = bias + rows[r, :] @ weight, or added to out, for R rows and C vectors of columns */
INLINE void tile(int R, int C, const REAL *rows, int64_t row_step, int64_t inputs,
                 const REAL *weight, int64_t step, const REAL *bias, REAL *out, int64_t out_step,
                 int add) {
    vec sum[MOST_ROWS][TILE_COLUMNS];
    for (int r = 0; r < R; r++)
        for (int c = 0; c < C; c++)
            sum[r][c] = add ? load(out + r * out_step + c * LANES)
                            : (bias ? load(bias + c * LANES) : splat(0));
    for (int64_t k = 0; k < inputs; k++) {
        vec w[TILE_COLUMNS];
        for (int c = 0; c < C; c++) w[c] = load(weight + k * step + c * LANES);
        for (int r = 0; r < R; r++) {
            vec x = splat(rows[r * row_step + k]);
            for (int c = 0; c < C; c++) sum[r][c] += x * w[c];
        }
    }
    for (int r = 0; r < R; r++)
        for (int c = 0; c < C; c++) store(out + r * out_step + c * LANES, sum[r][c]);
}

/* As many rows at once as there are registers for, then some, then one. */
INLINE void row_tiles(int R, int S, int C, int64_t n, const REAL *rows, int64_t row_step,
                      int64_t inputs, const REAL *weight, int64_t step, const REAL *bias,
                      REAL *out, int64_t out_step, int add) {
    int64_t r = 0;
    for (; r + R <= n; r += R)
        tile(R, C, rows + r * row_step, row_step, inputs, weight, step, bias, out + r * out_step,
             out_step, add);
    for (; r + S <= n; r += S)
        tile(S, C, rows + r * row_step, row_step, inputs, weight, step, bias, out + r * out_step,
             out_step, add);
    for (; r < n; r++)
        tile(1, C, rows + r * row_step, row_step, inputs, weight, step, bias, out + r * out_step,
             out_step, add);
}

/* out [n, outputs] = bias + rows [n, inputs] @ weight [inputs, outputs], or added to out */
static void product(int64_t n, const REAL *rows, int64_t row_step, int64_t inputs,
                    const REAL *weight, int64_t step, int64_t outputs, const REAL *bias, REAL *out,
                    int64_t out_step, int add) {
    int64_t c = 0;
#define COLUMNS(R, S, C)                                                                          \
    for (; c + (C) * LANES <= outputs; c += (C) * LANES)                                          \
        row_tiles(R, S, C, n, rows, row_step, inputs, weight + c, step, bias ? bias + c : 0,      \
                  out + c, out_step, add)
    COLUMNS(TILE_ROWS, 2, TILE_COLUMNS);
    COLUMNS(MOST_ROWS, 4, 2);
    COLUMNS(TILE_ROWS, 4, 1);
#undef COLUMNS
}

INLINE void outer_tile(int I, int C, int64_t n, const REAL *rows, int64_t row_step,
                       const REAL *grads, int64_t grad_step, REAL *out, int64_t step) {
    vec sum[MOST_ROWS][TILE_COLUMNS];
    for (int i = 0; i < I; i++)
        for (int c = 0; c < C; c++) sum[i][c] = load(out + i * step + c * LANES);
    for (int64_t r = 0; r < n; r++) {
        vec g[TILE_COLUMNS];
        for (int c = 0; c < C; c++) g[c] = load(grads + r * grad_step + c * LANES);
        for (int i = 0; i < I; i++) {
            vec x = splat(rows[r * row_step + i]);
            for (int c = 0; c < C; c++) sum[i][c] += x * g[c];
        }
    }
    for (int i = 0; i < I; i++)
        for (int c = 0; c < C; c++) store(out + i * step + c * LANES, sum[i][c]);
}

/* out [inputs, outputs] += rows^T [inputs, n] @ grads [n, outputs]; inputs is a multiple of 4 */
static void outer_product(int64_t n, const REAL *rows, int64_t row_step, int64_t inputs,
                          const REAL *grads, int64_t grad_step, int64_t outputs, REAL *out,
                          int64_t step) {
    int64_t c = 0;
#define COLUMNS(I, C)                                                                             \
    for (; c + (C) * LANES <= outputs; c += (C) * LANES) {                                        \
        int64_t i = 0;                                                                            \
        for (; i + (I) <= inputs; i += (I))                                                       \
            outer_tile(I, C, n, rows + i, row_step, grads + c, grad_step, out + i * step + c,     \
                       step);                                                                     \
        for (; i < inputs; i += 4)                                                                \
            outer_tile(4, C, n, rows + i, row_step, grads + c, grad_step, out + i * step + c,     \
                       step);                                                                     \
    }
    COLUMNS(4, TILE_COLUMNS)
    COLUMNS(8, 2)
    COLUMNS(8, 1)
#undef COLUMNS
}

static void add_rows(int64_t n, const REAL *grads, int64_t width, REAL *out) {
    for (int64_t c = 0; c < width; c += LANES) {
        vec sum = load(out + c);
        for (int64_t r = 0; r < n; r++) sum += load(grads + r * width + c);
        store(out + c, sum);
    }
}

/* ---- Mish: x tanh(softplus(x)) = x n / (n + 2) with e = exp(x), n = e (e + 2) ---- */

INLINE vec exponential(vec x) {
#ifdef DOUBLE
    vec y;
    for (int i = 0; i < LANES; i++) y[i] = exp(x[i]);
    return y;
#else
    x = -at_most(-x, splat(87.0f));
    vec n = nearest(x * splat(1.44269504088896341f));
    vec r = x - n * splat(0.693359375f) + n * splat(2.12194440e-4f);
    vec y = splat(1.9875691500e-4f);
    y = y * r + splat(1.3981999507e-3f);
    y = y * r + splat(8.3334519073e-3f);
    y = y * r + splat(4.1665795894e-2f);
    y = y * r + splat(1.6666665459e-1f);
    y = y * r + splat(5.0000001201e-1f);
    return times_two_to(y * r * r + r + splat(1.0f), n);
#endif
}

static void mish(int64_t count, const REAL *x, REAL *out) {
    for (int64_t i = 0; i < count; i += LANES) {
        vec v = load(x + i), e = exponential(at_most(v, splat(20))), n = e * (e + 2);
        store(out + i, v * n * reciprocal(n + 2));
    }
}

/* out = mish(x), and grad *= mish'(x) */
static void mish_backward(int64_t count, const REAL *x, REAL *out, REAL *grad) {
    for (int64_t i = 0; i < count; i += LANES) {
        vec v = load(x + i), e = exponential(at_most(v, splat(20))), n = e * (e + 2);
        vec inverse = reciprocal(n + 2), share = n * inverse;
        store(out + i, v * share);
        store(grad + i, load(grad + i) * (share + v * (4 * e * (e + 1) * inverse * inverse)));
    }
}

/* ---- before the rounds: what is the same for all of them is found once ---- */

static uint64_t mix(uint64_t x) {
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    return x ^ x >> 32;
}

typedef struct {
    uint64_t *keys;
    uint64_t mask;
} Set;

static int64_t set_room(int64_t items) {
    int64_t room = 16;
    while (room < 2 * items) room *= 2;
    return room;
}

static void clear_set(Set *set, int64_t items) {
    set->mask = set_room(items) - 1;
    memset(set->keys, 0, (set->mask + 1) * sizeof(uint64_t));
}

/* Where a key is or goes; 0 is no key. */
static uint64_t place_of(const Set *set, uint64_t key) {
    uint64_t at = key & set->mask;
    while (set->keys[at] && set->keys[at] != key) at = (at + 1) & set->mask;
    return at;
}

static uint64_t key_of(uint64_t hash) { return hash + !hash; }

/* Whether it was new. */
static int add_to(Set *set, uint64_t hash) {
    uint64_t at = place_of(set, key_of(hash));
    if (set->keys[at]) return 0;
    set->keys[at] = key_of(hash);
    return 1;
}

static int64_t count_colours(const Graph *g, const uint64_t *colour, Set *set) {
    int64_t count = 0;
    clear_set(set, g->node_end - g->node_begin);
    for (int64_t v = g->node_begin; v < g->node_end; v++) count += add_to(set, colour[v]);
    return count;
}

static uint64_t atom_colour(int64_t r, int64_t K, const int64_t *args, const uint64_t *colour) {
    uint64_t h = mix(r + 1);
    for (int64_t i = 0; i < K; i++) h = mix(h * 31 + colour[args[i]]);
    return h;
}

/* One round of refinement: a node's colour and the set of coloured places it is in. */
static void refine(const Network *net, const Graph *g, const uint64_t *colour, uint64_t *next,
                   Set *set, int64_t arguments) {
    for (int64_t v = g->node_begin; v < g->node_end; v++) next[v] = 0;
    clear_set(set, arguments);
    for (int64_t r = 0; r < net->relations; r++) {
        int64_t K = net->arity[r];
        for (int64_t a = g->atom_begin[r]; a < g->atom_end[r]; a++) {
            const int64_t *args = g->args + g->args_at[r] + a * K;
            uint64_t h = atom_colour(r, K, args, colour);
            for (int64_t i = 0; i < K; i++) {
                uint64_t place = mix(h + i);
                if (add_to(set, mix(place ^ (uint64_t)args[i] * 0x9e3779b97f4a7c15u)))
                    next[args[i]] += place;
            }
        }
    }
    for (int64_t v = g->node_begin; v < g->node_end; v++) next[v] = mix(colour[v] * 31 + next[v]);
}

/* The classes, numbered from node_begin in the order of their first nodes. */
static void number_classes(const Graph *g, const uint64_t *colour, Set *set, int64_t *number,
                           int64_t *class_of) {
    int64_t end = g->node_begin;
    clear_set(set, g->node_end - g->node_begin);
    for (int64_t v = g->node_begin; v < g->node_end; v++) {
        if (add_to(set, colour[v])) number[place_of(set, key_of(colour[v]))] = end++;
        class_of[v] = number[place_of(set, key_of(colour[v]))];
    }
}

/* Every atom between classes once, in the order of the atoms. */
static void merge_atoms(const Network *net, const Graph *g, const int64_t *class_of, Set *set,
                        int64_t arguments, int64_t *args, int64_t *atom_end) {
    clear_set(set, arguments);
    for (int64_t r = 0; r < net->relations; r++) {
        int64_t K = net->arity[r], end = g->atom_begin[r];
        for (int64_t a = g->atom_begin[r]; a < g->atom_end[r]; a++) {
            const int64_t *from = g->args + g->args_at[r] + a * K;
            int64_t *to = args + g->args_at[r] + end * K;
            uint64_t h = mix(r + 1);
            for (int64_t i = 0; i < K; i++) {
                to[i] = class_of[from[i]];
                h = mix(h * 31 + (uint64_t)to[i]);
            }
            end += add_to(set, h);
        }
        atom_end[r] = end;
    }
}

/* The nodes that no number of rounds can tell apart become one, and atoms that so coincide, too.
 *
 * The largest message does not depend on how often it comes, so that nodes have equal embeddings
 * after every round where each sees the same set of (relation, place, colours of all arguments).
 * Colours are hashes of 64 bits. `class_of` [N] is the node that stands for each; `args` and
 * `atom_end` are set for the smaller graph, whose nodes are [node_begin, result). Where it would
 * not be much smaller, nothing is set and the result is node_end; -1 where there is no memory. */
int64_t regoal_merge(const Network *net, const Graph *g, int64_t *class_of, int64_t *args,
                     int64_t *atom_end) {
    int64_t nodes = g->node_end - g->node_begin, arguments = 0, classes = 1, before = 0;
    for (int64_t r = 0; r < net->relations; r++)
        arguments += (g->atom_end[r] - g->atom_begin[r]) * net->arity[r];
    int64_t room = set_room(nodes > arguments ? nodes : arguments);
    uint64_t *memory = malloc((2 * room + 2 * g->node_end) * sizeof(uint64_t));
    if (!memory) return -1;
    Set set = {memory, 0};
    uint64_t *colour = memory + 2 * room, *next = colour + g->node_end;
    for (int64_t v = g->node_begin; v < g->node_end; v++) colour[v] = 1;
    while (classes != before && 4 * classes <= 3 * nodes) {
        refine(net, g, colour, next, &set, arguments);
        uint64_t *swap = colour;
        colour = next, next = swap;
        before = classes, classes = count_colours(g, colour, &set);
    }
    int small = 4 * classes <= 3 * nodes;
    if (small) {
        number_classes(g, colour, &set, (int64_t *)(memory + room), class_of);
        merge_atoms(net, g, class_of, &set, arguments, args, atom_end);
    }
    free(memory);
    return small ? g->node_begin + classes : g->node_end;
}

/* Which places of a relation have few nodes for its atoms, and a number for each of these nodes:
 * `shared`, `slot` and `node_of` of the graph are set. Returns 1 where there is no memory. */
int64_t regoal_share(const Network *net, const Graph *g) {
    int64_t *shared = g->shared;
    int32_t *number = calloc(g->node_end + 1, sizeof(int32_t)); /* from 1; 0 for none yet */
    if (!number) return 1;
    for (int64_t r = 0; r < net->relations; r++) {
        int64_t K = net->arity[r], atoms = g->atom_end[r] - g->atom_begin[r];
        int64_t first = g->args_at[r] + g->atom_begin[r] * K;
        for (int64_t i = 0; i < K; i++, shared++) {
            int64_t found = 0, *nodes = g->node_of + first + i * atoms;
            for (int64_t a = first + i; a < first + atoms * K; a += K) {
                int64_t v = g->args[a];
                if (!number[v]) {
                    nodes[found++] = v;
                    number[v] = (int32_t)found;
                }
                g->slot[a] = number[v] - 1;
            }
            for (int64_t n = 0; n < found; n++) number[nodes[n]] = 0;
            *shared = K > 1 && 4 * found <= 3 * atoms ? found : 0;
        }
    }
    free(number);
    return 0;
}

/* ---- one round forward ---- */

static void gather(int64_t rows, int64_t arity, const int64_t *args, const REAL *x, int64_t size,
                   REAL *out) {
    for (int64_t i = 0; i < rows * arity; i++)
        for (int64_t d = 0; d < size; d += LANES)
            store(out + i * size + d, load(x + args[i] * size + d));
}

/* `winner` may be missing. */
static void keep_strongest(int64_t count, int64_t first, const int64_t *args, const REAL *messages,
                           int64_t size, REAL *strongest, INTEGER *winner) {
    for (int64_t i = 0; i < count; i++) {
        ivec row = (INTEGER)(first + i) - (ivec){0};
        for (int64_t d = 0; d < size; d += LANES) {
            REAL *best = strongest + args[i] * size + d;
            vec m = load(messages + i * size + d), b = load(best);
            mask won = larger(m, b);
            store(best, choose(won, m, b));
            if (!winner) continue;
            ivec *who = (ivec *)(winner + args[i] * size + d);
            *who = choose_integer(won, row, *who);
        }
    }
}

/* One relation of a graph, and the places whose part of the first layer is shared. */
typedef struct {
    int64_t arity, width, begin, end; /* K, K * D, atoms */
    const int64_t *args;              /* of its first atom in this graph */
    int64_t first;                    /* that argument's row in the batch */
    const int64_t *shared;            /* [K] */
    const int32_t *slot;
    const int64_t *node_of;
    int shares;                       /* whether any place is shared */
} Relation;

static Relation relation_of(const Network *net, const Graph *g, int64_t r) {
    Relation found = {.arity = net->arity[r], .width = net->arity[r] * net->size};
    found.begin = g->atom_begin[r];
    found.end = g->atom_end[r];
    found.first = g->args_at[r] + found.begin * found.arity;
    found.args = g->args + found.first;
    found.slot = g->slot + found.first;
    found.node_of = g->node_of + found.first;
    int64_t at = 0;
    for (int64_t i = 0; i < r; i++) at += net->arity[i];
    found.shared = g->shared + at;
    for (int64_t i = 0; i < found.arity; i++) found.shares |= found.shared[i] > 0;
    return found;
}

/* Numbers in a table with one row of K * D for each shared node of each place. */
static int64_t table_size(const Relation *rel) {
    int64_t rows = 0;
    for (int64_t i = 0; i < rel->arity; i++) rows += rel->shared[i];
    return rows * rel->width;
}

/* Room for the largest table of all relations. */
static REAL *new_table(const Network *net, const Graph *g) {
    int64_t most = 1;
    for (int64_t r = 0; r < net->relations; r++) {
        Relation rel = relation_of(net, g, r);
        if (table_size(&rel) > most) most = table_size(&rel);
    }
    return malloc(most * sizeof(REAL));
}

/* The shared nodes' part of the first layer, before the bias. */
static void fill_table(const Relation *rel, const REAL *w, const REAL *x, int64_t D, REAL *table) {
    REAL in[ROOM];
    for (int64_t i = 0; i < rel->arity; i++) {
        const int64_t *nodes = rel->node_of + i * (rel->end - rel->begin);
        int64_t block = rows_of(rel->width);
        for (int64_t v = 0; v < rel->shared[i]; v += block) {
            int64_t n = fewer(block, rel->shared[i] - v);
            gather(n, 1, nodes + v, x, D, in);
            product(n, in, D, D, w + i * D * rel->width, rel->width, rel->width, 0, table,
                    rel->width, 0);
            table += n * rel->width;
        }
    }
}

/* The place after the run of places from `place` on that are all shared or all not. */
static int64_t run_end(const Relation *rel, int64_t place) {
    int64_t end = place + 1;
    while (end < rel->arity && !rel->shared[end] == !rel->shared[place]) end++;
    return end;
}

/* The rows of a table that belong to one atom's shared places; returns how many. */
INLINE int table_rows(const Relation *rel, const int32_t *slot, REAL *table, REAL **rows) {
    int count = 0;
    for (int64_t i = 0; i < rel->arity; i++) {
        if (rel->shared[i]) rows[count++] = table + slot[i] * rel->width;
        table += rel->shared[i] * rel->width;
    }
    return count;
}

/* The first layer of atoms a .. a + n: the shared places from the table, the others multiplied. */
static void first_layer(const Relation *rel, int64_t a, int64_t n, const REAL *in, int64_t D,
                        const REAL *w, const REAL *bias, REAL *table, REAL *h) {
    int64_t width = rel->width, K = rel->arity;
    for (int64_t row = 0; row < n; row++) {
        REAL *part[MAX_ARITY];
        int parts = table_rows(rel, rel->slot + (a + row) * K, table, part);
        for (int64_t c = 0; c < width; c += LANES) {
            vec sum = load(bias + c);
            for (int j = 0; j < parts; j++) sum += load(part[j] + c);
            store(h + row * width + c, sum);
        }
    }
    for (int64_t i = 0; i < K; i = run_end(rel, i))
        if (!rel->shared[i])
            product(n, in + i * D, width, (run_end(rel, i) - i) * D, w + i * D * width, width, width,
                    0, h, width, 1);
}

static void send_messages(const Network *net, const Graph *g, const REAL *x, REAL *hidden,
                          REAL *strongest, INTEGER *winner, REAL *table) {
    REAL in[ROOM], act[ROOM], out[ROOM];
    REAL scratch[ROOM];
    int64_t D = net->size;
    for (int64_t r = 0; r < net->relations; r++) {
        Relation rel = relation_of(net, g, r);
        int64_t K = rel.arity, width = rel.width, block = rows_of(width);
        const REAL *w = net->weights + net->message_at[r], *b = w + width * width;
        const REAL *w2 = b + width, *b2 = w2 + width * width;
        fill_table(&rel, w, x, D, table);
        for (int64_t a = 0; a < rel.end - rel.begin; a += block) {
            int64_t n = fewer(block, rel.end - rel.begin - a);
            const int64_t *args = rel.args + a * K;
            REAL *h = hidden ? hidden + (rel.first + a * K) * D : scratch;
            gather(n, K, args, x, D, in);
            if (rel.shares) first_layer(&rel, a, n, in, D, w, b, table, h);
            else product(n, in, width, width, w, width, width, b, h, width, 0);
            mish(n * width, h, act);
            for (int64_t i = 0; i < n; i++)
                for (int64_t c = 0; c < width; c += LANES)
                    store(out + i * width + c, load(in + i * width + c) + load(b2 + c));
            product(n, act, width, width, w2, width, width, 0, out, width, 1);
            keep_strongest(n * K, rel.first + a * K, args, out, D, strongest, winner);
        }
    }
}

static REAL mean_of(const REAL *x, int64_t size) {
    vec sum = splat(0);
    for (int64_t d = 0; d < size; d += LANES) sum += load(x + d);
    REAL total = 0;
    for (int i = 0; i < LANES; i++) total += sum[i];
    return total / size;
}

/* y = (u - mean) / deviation; returns one over the deviation */
static REAL normalise(const REAL *u, int64_t size, REAL *y) {
    REAL mean = mean_of(u, size), square[MAX_WIDTH];
    for (int64_t d = 0; d < size; d += LANES) {
        vec v = load(u + d) - mean;
        store(y + d, v);
        store(square + d, v * v);
    }
    REAL inverse = 1 / (REAL)sqrt((double)mean_of(square, size) + 1e-5);
    for (int64_t d = 0; d < size; d += LANES) store(y + d, load(y + d) * inverse);
    return inverse;
}

INLINE void join(int64_t n, const REAL *a, const REAL *b, int64_t size, REAL *out) {
    for (int64_t i = 0; i < n; i++) {
        for (int64_t d = 0; d < size; d += LANES) {
            store(out + 2 * i * size + d, load(a + i * size + d));
            store(out + (2 * i + 1) * size + d, load(b + i * size + d));
        }
    }
}

static void update_nodes(const Network *net, const Graph *g, const REAL *x, const REAL *strongest,
                         REAL *update, REAL *normal, REAL *deviation, REAL *next) {
    REAL in[ROOM], act[ROOM], out[ROOM];
    REAL scratch[ROOM], y[MAX_WIDTH];
    int64_t D = net->size, wide = 2 * D, block = rows_of(wide);
    const REAL *w = net->weights + net->update_at, *b = w + wide * wide, *w2 = b + wide;
    const REAL *b2 = w2 + wide * D, *scale = net->weights + net->norm_at, *shift = scale + D;
    for (int64_t v = g->node_begin; v < g->node_end; v += block) {
        int64_t n = fewer(block, g->node_end - v);
        REAL *h = update ? update + v * wide : scratch;
        join(n, strongest + v * D, x + v * D, D, in);
        product(n, in, wide, wide, w, wide, wide, b, h, wide, 0);
        mish(n * wide, h, act);
        product(n, act, wide, wide, w2, D, D, b2, out, D, 0);
        for (int64_t i = 0; i < n; i++) {
            REAL *z = normal ? normal + (v + i) * D : y;
            REAL inverse = normalise(out + i * D, D, z);
            if (deviation) deviation[v + i] = inverse;
            for (int64_t d = 0; d < D; d += LANES)
                store(next + (v + i) * D + d, load(x + (v + i) * D + d) +
                                                  load(z + d) * load(scale + d) + load(shift + d));
        }
    }
}

static void start_maximum(const Graph *g, int64_t D, REAL *strongest, INTEGER *winner) {
    for (int64_t i = g->node_begin * D; i < g->node_end * D; i++) strongest[i] = -INFINITY;
    if (winner)
        for (int64_t i = g->node_begin * D; i < g->node_end * D; i++) winner[i] = -1;
}

static void end_maximum(const Graph *g, int64_t D, REAL *strongest) {
    for (int64_t i = g->node_begin * D; i < g->node_end * D; i += LANES) {
        vec none = splat(-INFINITY), best = load(strongest + i);
        store(strongest + i, choose(larger(best, none), best, splat(0)));
    }
}

/* `saved->embeddings` [L + 1, N, D] is filled; its first N rows must be the start, 0. As the calls
 * below, it returns 1 where there is no memory. */
int64_t regoal_forward(const Network *net, const Graph *g, int64_t layers, const Saved *saved) {
    FLUSH_BEGIN;
    int64_t D = net->size, nodes = g->nodes * D;
    REAL *table = new_table(net, g);
    if (!table) return 1;
    for (int64_t l = 0; l < layers; l++) {
        const REAL *x = saved->embeddings + l * nodes;
        REAL *strongest = saved->strongest + l * nodes;
        INTEGER *winner = saved->winner + l * nodes;
        start_maximum(g, D, strongest, winner);
        send_messages(net, g, x, saved->hidden + l * g->arguments * D, strongest, winner,
                      table);
        end_maximum(g, D, strongest);
        update_nodes(net, g, x, strongest, saved->update + l * nodes * 2, saved->normal + l * nodes,
                     saved->deviation + l * g->nodes, saved->embeddings + (l + 1) * nodes);
    }
    free(table);
    FLUSH_END;
    return 0;
}

/* Without anything for a backward pass: `x` [2, N, D] begins with the start; the result is in the
 * half with the number of layers modulo 2. */
int64_t regoal_infer(const Network *net, const Graph *g, int64_t layers, REAL *x, REAL *strongest) {
    FLUSH_BEGIN;
    int64_t D = net->size, nodes = g->nodes * D;
    REAL *table = new_table(net, g);
    if (!table) return 1;
    for (int64_t l = 0; l < layers; l++) {
        REAL *now = x + (l % 2) * nodes, *next = x + ((l + 1) % 2) * nodes;
        start_maximum(g, D, strongest, 0);
        send_messages(net, g, now, 0, strongest, 0, table);
        end_maximum(g, D, strongest);
        update_nodes(net, g, now, strongest, 0, 0, 0, next);
    }
    free(table);
    FLUSH_END;
    return 0;
}

/* ---- one round backward ---- */

static void transpose(const REAL *w, int64_t rows, int64_t columns, REAL *out) {
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) out[j * rows + i] = w[i * columns + j];
}

/* An MLP's weights, each matrix transposed in place of the original; biases stay unset. */
static void transpose_mlp(const REAL *w, int64_t inputs, int64_t outputs, REAL *out) {
    transpose(w, inputs, inputs, out);
    int64_t second = inputs * inputs + inputs;
    transpose(w + second, inputs, outputs, out + second);
}

void regoal_transpose(const Network *net, REAL *out) {
    for (int64_t r = 0; r < net->relations; r++) {
        int64_t width = net->arity[r] * net->size;
        transpose_mlp(net->weights + net->message_at[r], width, width, out + net->message_at[r]);
    }
    transpose_mlp(net->weights + net->update_at, 2 * net->size, net->size, out + net->update_at);
}

/* Back through an MLP's second layer and its activation: the gradient of the first layer's result
 * goes into `grad` [n, inputs], the biases' and the second layer's are added to `dw`. `hidden` is
 * the first layer's result. */
static void second_layer_backward(int64_t n, int64_t inputs, int64_t outputs, const REAL *hidden,
                                  const REAL *transposed, const REAL *grad_out, REAL *grad,
                                  REAL *dw) {
    REAL act[ROOM];
    int64_t second = inputs * inputs + inputs;
    product(n, grad_out, outputs, outputs, transposed + second, inputs, inputs, 0, grad, inputs, 0);
    mish_backward(n * inputs, hidden, act, grad);
    outer_product(n, act, inputs, inputs, grad_out, outputs, outputs, dw + second, outputs);
    add_rows(n, grad_out, outputs, dw + second + inputs * outputs);
    add_rows(n, grad, inputs, dw + inputs * inputs);
}

/* Back through some of the first layer's inputs: `in` [n, inputs], `grad` [n, width] in, `grad_in`
 * [n, inputs] added to, and so is `dw`; `w` of both begins at these inputs. */
static void first_layer_backward(int64_t n, const REAL *in, int64_t in_step, int64_t inputs,
                                 const REAL *grad, int64_t width, const REAL *transposed,
                                 REAL *grad_in, REAL *dw) {
    outer_product(n, in, in_step, inputs, grad, width, width, dw, width);
    product(n, grad, width, width, transposed, width, inputs, 0, grad_in, in_step, 1);
}

/* Back through the update: `grad` [N, D] of the round's result becomes that of its input through
 * the residual and the MLP; `grad_strongest` [N, D] is set. */
static void update_backward(const Network *net, const Graph *g, const REAL *transposed,
                            const REAL *x, const REAL *strongest, const REAL *update,
                            const REAL *normal, const REAL *deviation, REAL *grad,
                            REAL *grad_strongest, REAL *dw) {
    REAL in[ROOM], out[ROOM], inner[ROOM], grad_in[ROOM];
    REAL product_with[MAX_WIDTH];
    int64_t D = net->size, wide = 2 * D, block = rows_of(wide);
    const REAL *scale = net->weights + net->norm_at;
    REAL *dscale = dw + net->norm_at, *dshift = dscale + D;
    for (int64_t v = g->node_begin; v < g->node_end; v += block) {
        int64_t n = fewer(block, g->node_end - v);
        for (int64_t i = 0; i < n; i++) {
            const REAL *z = normal + (v + i) * D, *dy = grad + (v + i) * D;
            REAL *du = out + i * D;
            for (int64_t d = 0; d < D; d += LANES) {
                store(dscale + d, load(dscale + d) + load(dy + d) * load(z + d));
                store(dshift + d, load(dshift + d) + load(dy + d));
                store(du + d, load(dy + d) * load(scale + d));
                store(product_with + d, load(du + d) * load(z + d));
            }
            REAL mean = mean_of(du, D), along = mean_of(product_with, D);
            for (int64_t d = 0; d < D; d += LANES)
                store(du + d, (load(du + d) - mean - load(z + d) * along) * deviation[v + i]);
        }
        join(n, strongest + v * D, x + v * D, D, in);
        memset(grad_in, 0, n * wide * sizeof(REAL));
        second_layer_backward(n, wide, D, update + v * wide, transposed + net->update_at, out, inner,
                              dw + net->update_at);
        first_layer_backward(n, in, wide, wide, inner, wide, transposed + net->update_at, grad_in,
                             dw + net->update_at);
        for (int64_t i = 0; i < n; i++)
            for (int64_t d = 0; d < D; d += LANES) {
                store(grad_strongest + (v + i) * D + d, load(grad_in + i * wide + d));
                REAL *at = grad + (v + i) * D + d;
                store(at, load(at) + load(grad_in + i * wide + D + d));
            }
    }
}

/* The strongest messages' gradients [n * K, D]: zero where another row has won. */
static void won_gradients(int64_t count, int64_t first, const int64_t *args, const INTEGER *winner,
                          const REAL *grad_strongest, int64_t D, REAL *out) {
    for (int64_t i = 0; i < count; i++) {
        ivec row = (INTEGER)(first + i) - (ivec){0};
        for (int64_t d = 0; d < D; d += LANES) {
            mask won = equal(*(const ivec *)(winner + args[i] * D + d), row);
            vec y = load(grad_strongest + args[i] * D + d);
            store(out + i * D + d, choose(won, y, splat(0)));
        }
    }
}

static void scatter(int64_t count, const int64_t *nodes, const REAL *rows, int64_t D, REAL *x) {
    for (int64_t i = 0; i < count; i++)
        for (int64_t d = 0; d < D; d += LANES) {
            REAL *at = x + nodes[i] * D + d;
            store(at, load(at) + load(rows + i * D + d));
        }
}

/* Atoms a .. a + n: gradients of the places that are not shared go on to the inputs, those of the
 * shared ones are added up in the table. */
static void atoms_backward(const Relation *rel, int64_t a, int64_t n, const REAL *in, int64_t D,
                           const REAL *grad, const REAL *transposed, REAL *table, REAL *grad_in,
                           REAL *dw) {
    int64_t width = rel->width, K = rel->arity;
    for (int64_t i = 0; i < K; i = run_end(rel, i))
        if (!rel->shared[i])
            first_layer_backward(n, in + i * D, width, (run_end(rel, i) - i) * D, grad, width,
                                 transposed + i * D, grad_in + i * D, dw + i * D * width);
    for (int64_t row = 0; row < n; row++) {
        REAL *part[MAX_ARITY];
        int parts = table_rows(rel, rel->slot + (a + row) * K, table, part);
        for (int j = 0; j < parts; j++)
            for (int64_t c = 0; c < width; c += LANES)
                store(part[j] + c, load(part[j] + c) + load(grad + row * width + c));
    }
}

static void table_backward(const Relation *rel, const REAL *x, int64_t D, const REAL *table,
                           const REAL *transposed, REAL *grad, REAL *dw) {
    REAL in[ROOM], grad_in[ROOM];
    int64_t width = rel->width, block = rows_of(width);
    for (int64_t i = 0; i < rel->arity; i++) {
        const int64_t *nodes = rel->node_of + i * (rel->end - rel->begin);
        for (int64_t v = 0; v < rel->shared[i]; v += block) {
            int64_t n = fewer(block, rel->shared[i] - v);
            gather(n, 1, nodes + v, x, D, in);
            memset(grad_in, 0, n * D * sizeof(REAL));
            first_layer_backward(n, in, D, D, table, width, transposed + i * D, grad_in,
                                 dw + i * D * width);
            scatter(n, nodes + v, grad_in, D, grad);
            table += n * width;
        }
    }
}

static void messages_backward(const Network *net, const Graph *g, const REAL *transposed,
                              const REAL *x, const REAL *hidden, const INTEGER *winner,
                              const REAL *grad_strongest, REAL *grad, REAL *dw, REAL *table) {
    REAL in[ROOM], out[ROOM], inner[ROOM], grad_in[ROOM];
    int64_t D = net->size;
    for (int64_t r = 0; r < net->relations; r++) {
        Relation rel = relation_of(net, g, r);
        int64_t K = rel.arity, width = rel.width, block = rows_of(width), at = net->message_at[r];
        memset(table, 0, table_size(&rel) * sizeof(REAL));
        for (int64_t a = 0; a < rel.end - rel.begin; a += block) {
            int64_t n = fewer(block, rel.end - rel.begin - a), first = rel.first + a * K;
            const int64_t *args = rel.args + a * K;
            gather(n, K, args, x, D, in);
            won_gradients(n * K, first, args, winner, grad_strongest, D, out);
            memcpy(grad_in, out, n * width * sizeof(REAL));
            second_layer_backward(n, width, width, hidden + first * D, transposed + at, out, inner,
                                  dw + at);
            atoms_backward(&rel, a, n, in, D, inner, transposed + at, table, grad_in, dw + at);
            scatter(n * K, args, grad_in, D, grad);
        }
        table_backward(&rel, x, D, table, transposed + at, grad, dw + at);
    }
}

/* `grads` [W, N, D] are gradients of the embeddings after the `wanted` [W] rising depths, the last
 * one being the number of layers; `grad` and `grad_strongest` [N, D] are room to work in; the
 * weights' gradients are added to `dw`, laid out as the weights. */
int64_t regoal_backward(const Network *net, const Graph *g, int64_t wanted, const int64_t *depths,
                     const REAL *grads, const Saved *saved, const REAL *transposed, REAL *grad,
                     REAL *grad_strongest, REAL *dw) {
    FLUSH_BEGIN;
    int64_t D = net->size, nodes = g->nodes * D, w = wanted - 1;
    int64_t from = g->node_begin * D, to = g->node_end * D;
    REAL *table = new_table(net, g);
    if (!table) return 1;
    for (int64_t i = from; i < to; i++) grad[i] = 0;
    for (int64_t l = depths[wanted - 1] - 1; l >= 0; l--) {
        if (w >= 0 && depths[w] == l + 1) {
            for (int64_t i = from; i < to; i++) grad[i] += grads[w * nodes + i];
            w--;
        }
        const REAL *x = saved->embeddings + l * nodes;
        update_backward(net, g, transposed, x, saved->strongest + l * nodes,
                        saved->update + 2 * l * nodes, saved->normal + l * nodes,
                        saved->deviation + l * g->nodes, grad, grad_strongest, dw);
        messages_backward(net, g, transposed, x, saved->hidden + l * g->arguments * D,
                          saved->winner + l * nodes, grad_strongest, grad, dw, table);
    }
    free(table);
    FLUSH_END;
    return 0;
}
