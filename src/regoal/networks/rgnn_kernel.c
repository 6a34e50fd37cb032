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
#define LANES ((int)(VECTOR_BYTES / sizeof(REAL)))
#define MAX_WIDTH 1024  /* K * D and 2 * D at most */
#define MAX_ROWS 48     /* rows that stay in the nearer caches through one MLP */
#define ROOM (48 * 256) /* numbers in one block of rows; a few blocks fit on a thread's stack */
#define INLINE static inline __attribute__((always_inline))

typedef REAL vec __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(REAL)), may_alias));
typedef INTEGER ivec __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(REAL)), may_alias));

INLINE vec load(const REAL *p) { return *(const vec *)p; }
INLINE void store(REAL *p, vec v) { *(vec *)p = v; }
INLINE vec splat(REAL x) { return x - (vec){0}; }
INLINE vec choose(ivec mask, vec yes, vec no) {
    return (vec)(((ivec)yes & mask) | ((ivec)no & ~mask));
}

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

static int64_t at_most(int64_t limit, int64_t count) { return count < limit ? count : limit; }

/* How many rows of this width are one block. */
static int64_t rows_of(int64_t width) { return at_most(MAX_ROWS, ROOM / width); }

/* ---- dense products of a few rows ---- */

/* out[r, :] = bias + rows[r, :] @ weight for R rows and C vectors of columns, starting at column 0 */
INLINE void tile(int R, int C, const REAL *rows, int64_t inputs, const REAL *weight,
                 int64_t outputs, const REAL *bias, REAL *out, int add) {
    vec sum[TILE_ROWS][TILE_COLUMNS];
    for (int r = 0; r < R; r++)
        for (int c = 0; c < C; c++)
            sum[r][c] = add ? load(out + r * outputs + c * LANES)
                            : (bias ? load(bias + c * LANES) : splat(0));
    for (int64_t k = 0; k < inputs; k++) {
        vec w[TILE_COLUMNS];
        for (int c = 0; c < C; c++) w[c] = load(weight + k * outputs + c * LANES);
        for (int r = 0; r < R; r++) {
            vec x = splat(rows[r * inputs + k]);
            for (int c = 0; c < C; c++) sum[r][c] += x * w[c];
        }
    }
    for (int r = 0; r < R; r++)
        for (int c = 0; c < C; c++) store(out + r * outputs + c * LANES, sum[r][c]);
}

INLINE void row_tiles(int C, int64_t n, const REAL *rows, int64_t inputs, const REAL *weight,
                      int64_t outputs, const REAL *bias, REAL *out, int add) {
    int64_t r = 0;
    for (; r + TILE_ROWS <= n; r += TILE_ROWS)
        tile(TILE_ROWS, C, rows + r * inputs, inputs, weight, outputs, bias, out + r * outputs, add);
    for (; r < n; r++)
        tile(1, C, rows + r * inputs, inputs, weight, outputs, bias, out + r * outputs, add);
}

/* out [n, outputs] = bias + rows [n, inputs] @ weight [inputs, outputs], or added to out */
static void product(int64_t n, const REAL *rows, int64_t inputs, const REAL *weight,
                    int64_t outputs, const REAL *bias, REAL *out, int add) {
    int64_t c = 0;
    for (; c + TILE_COLUMNS * LANES <= outputs; c += TILE_COLUMNS * LANES)
        row_tiles(TILE_COLUMNS, n, rows, inputs, weight + c, outputs, bias ? bias + c : 0,
                  out + c, add);
    for (; c < outputs; c += LANES)
        row_tiles(1, n, rows, inputs, weight + c, outputs, bias ? bias + c : 0, out + c, add);
}

INLINE void outer_tile(int I, int C, int64_t n, const REAL *rows, int64_t inputs,
                       const REAL *grads, int64_t outputs, REAL *out) {
    vec sum[TILE_ROWS][TILE_COLUMNS];
    for (int i = 0; i < I; i++)
        for (int c = 0; c < C; c++) sum[i][c] = load(out + i * outputs + c * LANES);
    for (int64_t r = 0; r < n; r++) {
        vec g[TILE_COLUMNS];
        for (int c = 0; c < C; c++) g[c] = load(grads + r * outputs + c * LANES);
        for (int i = 0; i < I; i++) {
            vec x = splat(rows[r * inputs + i]);
            for (int c = 0; c < C; c++) sum[i][c] += x * g[c];
        }
    }
    for (int i = 0; i < I; i++)
        for (int c = 0; c < C; c++) store(out + i * outputs + c * LANES, sum[i][c]);
}

INLINE void outer_rows(int C, int64_t n, const REAL *rows, int64_t inputs, const REAL *grads,
                       int64_t outputs, REAL *out) {
    int64_t i = 0;
    for (; i + TILE_ROWS <= inputs; i += TILE_ROWS)
        outer_tile(TILE_ROWS, C, n, rows + i, inputs, grads, outputs, out + i * outputs);
    for (; i < inputs; i++) outer_tile(1, C, n, rows + i, inputs, grads, outputs, out + i * outputs);
}

/* out [inputs, outputs] += rows^T [inputs, n] @ grads [n, outputs] */
static void outer_product(int64_t n, const REAL *rows, int64_t inputs, const REAL *grads,
                          int64_t outputs, REAL *out) {
    int64_t c = 0;
    for (; c + TILE_COLUMNS * LANES <= outputs; c += TILE_COLUMNS * LANES)
        outer_rows(TILE_COLUMNS, n, rows, inputs, grads + c, outputs, out + c);
    for (; c < outputs; c += LANES) outer_rows(1, n, rows, inputs, grads + c, outputs, out + c);
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
    x = choose(x < splat(-87.0f), splat(-87.0f), x);
    vec shifted = x * splat(1.44269504088896341f) + splat(12582912.0f);
    vec n = shifted - splat(12582912.0f);
    vec r = x - n * splat(0.693359375f) + n * splat(2.12194440e-4f);
    vec y = splat(1.9875691500e-4f);
    y = y * r + splat(1.3981999507e-3f);
    y = y * r + splat(8.3334519073e-3f);
    y = y * r + splat(4.1665795894e-2f);
    y = y * r + splat(1.6666665459e-1f);
    y = y * r + splat(5.0000001201e-1f);
    y = y * r * r + r + splat(1.0f);
    ivec power = (__builtin_convertvector(n, ivec) + 127) << 23;
    return y * (vec)power;
#endif
}

INLINE vec at_most_20(vec x) { return choose(x > splat(20), splat(20), x); }

static void mish(int64_t count, const REAL *x, REAL *out) {
    for (int64_t i = 0; i < count; i += LANES) {
        vec v = load(x + i), e = exponential(at_most_20(v)), n = e * (e + 2);
        store(out + i, v * (n / (n + 2)));
    }
}

/* out = mish(x), and grad *= mish'(x) */
static void mish_backward(int64_t count, const REAL *x, REAL *out, REAL *grad) {
    for (int64_t i = 0; i < count; i += LANES) {
        vec v = load(x + i), e = exponential(at_most_20(v)), n = e * (e + 2);
        vec inverse = 1 / (n + 2), share = n * inverse;
        store(out + i, v * share);
        store(grad + i, load(grad + i) * (share + v * (4 * e * (e + 1) * inverse * inverse)));
    }
}

/* ---- one round forward ---- */

static void gather(int64_t rows, int64_t arity, const int64_t *args, const REAL *x, int64_t size,
                   REAL *out) {
    for (int64_t i = 0; i < rows * arity; i++)
        memcpy(out + i * size, x + args[i] * size, size * sizeof(REAL));
}

static void keep_strongest(int64_t count, int64_t first, const int64_t *args, const REAL *messages,
                           int64_t size, REAL *strongest, INTEGER *winner) {
    for (int64_t i = 0; i < count; i++) {
        REAL *best = strongest + args[i] * size;
        INTEGER *who = winner + args[i] * size;
        ivec row = (INTEGER)(first + i) - (ivec){0};
        for (int64_t d = 0; d < size; d += LANES) {
            vec m = load(messages + i * size + d), b = load(best + d);
            ivec larger = m > b;
            store(best + d, choose(larger, m, b));
            ivec w = *(ivec *)(who + d);
            *(ivec *)(who + d) = (row & larger) | (w & ~larger);
        }
    }
}

static void send_messages(const Network *net, const Graph *g, const REAL *x, REAL *hidden,
                          REAL *strongest, INTEGER *winner) {
    REAL in[ROOM], act[ROOM], out[ROOM];
    REAL scratch[ROOM];
    int64_t D = net->size;
    for (int64_t r = 0; r < net->relations; r++) {
        int64_t K = net->arity[r], width = K * D, block = rows_of(width);
        const REAL *w = net->weights + net->message_at[r];
        for (int64_t a = g->atom_begin[r]; a < g->atom_end[r]; a += block) {
            int64_t n = at_most(block, g->atom_end[r] - a);
            int64_t first = g->args_at[r] + a * K;
            const int64_t *args = g->args + first;
            REAL *h = hidden ? hidden + first * D : scratch;
            gather(n, K, args, x, D, in);
            product(n, in, width, w, width, w + width * width, h, 0);
            mish(n * width, h, act);
            memcpy(out, in, n * width * sizeof(REAL));
            const REAL *w2 = w + width * width + width, *b2 = w2 + width * width;
            for (int64_t i = 0; i < n; i++)
                for (int64_t c = 0; c < width; c += LANES)
                    store(out + i * width + c, load(out + i * width + c) + load(b2 + c));
            product(n, act, width, w2, width, 0, out, 1);
            keep_strongest(n * K, first, args, out, D, strongest, winner);
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

static void join(int64_t n, const REAL *a, const REAL *b, int64_t size, REAL *out) {
    for (int64_t i = 0; i < n; i++) {
        memcpy(out + 2 * i * size, a + i * size, size * sizeof(REAL));
        memcpy(out + (2 * i + 1) * size, b + i * size, size * sizeof(REAL));
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
        int64_t n = at_most(block, g->node_end - v);
        REAL *h = update ? update + v * wide : scratch;
        join(n, strongest + v * D, x + v * D, D, in);
        product(n, in, wide, w, wide, b, h, 0);
        mish(n * wide, h, act);
        product(n, act, wide, w2, D, b2, out, 0);
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
    for (int64_t i = g->node_begin * D; i < g->node_end * D; i++) {
        strongest[i] = -INFINITY;
        winner[i] = -1;
    }
}

static void end_maximum(const Graph *g, int64_t D, REAL *strongest, const INTEGER *winner) {
    for (int64_t i = g->node_begin * D; i < g->node_end * D; i++)
        if (winner[i] < 0) strongest[i] = 0;
}

/* `saved->embeddings` [L + 1, N, D] is filled; its first N rows must be the start, usually 0. */
void regoal_forward(const Network *net, const Graph *g, int64_t layers, const Saved *saved) {
    FLUSH_BEGIN;
    int64_t D = net->size, nodes = g->nodes * D;
    for (int64_t l = 0; l < layers; l++) {
        const REAL *x = saved->embeddings + l * nodes;
        REAL *strongest = saved->strongest + l * nodes;
        INTEGER *winner = saved->winner + l * nodes;
        start_maximum(g, D, strongest, winner);
        send_messages(net, g, x, saved->hidden + l * g->arguments * D, strongest, winner);
        end_maximum(g, D, strongest, winner);
        update_nodes(net, g, x, strongest, saved->update + l * nodes * 2, saved->normal + l * nodes,
                     saved->deviation + l * g->nodes, saved->embeddings + (l + 1) * nodes);
    }
    FLUSH_END;
}

/* Without anything for a backward pass: `x` [2, N, D] begins with the start; returns which half
 * holds the result. */
int64_t regoal_infer(const Network *net, const Graph *g, int64_t layers, REAL *x, REAL *strongest,
                     INTEGER *winner) {
    FLUSH_BEGIN;
    int64_t D = net->size, nodes = g->nodes * D;
    for (int64_t l = 0; l < layers; l++) {
        REAL *now = x + (l % 2) * nodes, *next = x + ((l + 1) % 2) * nodes;
        start_maximum(g, D, strongest, winner);
        send_messages(net, g, now, 0, strongest, winner);
        end_maximum(g, D, strongest, winner);
        update_nodes(net, g, now, strongest, 0, 0, 0, next);
    }
    FLUSH_END;
    return layers % 2;
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

/* Back through one MLP: `grad_out` [n, outputs] in, `grad_in` [n, inputs] out (added to), and the
 * weights' gradients added to `dw`. `hidden` is the first layer before its activation. */
static void mlp_backward(int64_t n, const REAL *in, int64_t inputs, int64_t outputs,
                         const REAL *hidden, const REAL *transposed, const REAL *grad_out,
                         REAL *grad_in, REAL *dw) {
    REAL act[ROOM], grad[ROOM];
    int64_t second = inputs * inputs + inputs;
    product(n, grad_out, outputs, transposed + second, inputs, 0, grad, 0);
    mish_backward(n * inputs, hidden, act, grad);
    outer_product(n, act, inputs, grad_out, outputs, dw + second);
    add_rows(n, grad_out, outputs, dw + second + inputs * outputs);
    outer_product(n, in, inputs, grad, inputs, dw);
    add_rows(n, grad, inputs, dw + inputs * inputs);
    product(n, grad, inputs, transposed, inputs, 0, grad_in, 1);
}

/* Back through the update: `grad` [N, D] of the round's result becomes that of its input through
 * the residual and the MLP; `grad_strongest` [N, D] is set. */
static void update_backward(const Network *net, const Graph *g, const REAL *transposed,
                            const REAL *x, const REAL *strongest, const REAL *update,
                            const REAL *normal, const REAL *deviation, REAL *grad,
                            REAL *grad_strongest, REAL *dw) {
    REAL in[ROOM], out[ROOM], grad_in[ROOM];
    REAL product_with[MAX_WIDTH];
    int64_t D = net->size, wide = 2 * D, block = rows_of(wide);
    const REAL *scale = net->weights + net->norm_at;
    REAL *dscale = dw + net->norm_at, *dshift = dscale + D;
    for (int64_t v = g->node_begin; v < g->node_end; v += block) {
        int64_t n = at_most(block, g->node_end - v);
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
        mlp_backward(n, in, wide, D, update + v * wide, transposed + net->update_at, out, grad_in,
                     dw + net->update_at);
        for (int64_t i = 0; i < n; i++)
            for (int64_t d = 0; d < D; d += LANES) {
                store(grad_strongest + (v + i) * D + d, load(grad_in + i * wide + d));
                REAL *at = grad + (v + i) * D + d;
                store(at, load(at) + load(grad_in + i * wide + D + d));
            }
    }
}

static void messages_backward(const Network *net, const Graph *g, const REAL *transposed,
                              const REAL *x, const REAL *hidden, const INTEGER *winner,
                              const REAL *grad_strongest, REAL *grad, REAL *dw) {
    REAL in[ROOM], out[ROOM], grad_in[ROOM];
    int64_t D = net->size;
    for (int64_t r = 0; r < net->relations; r++) {
        int64_t K = net->arity[r], width = K * D, block = rows_of(width);
        for (int64_t a = g->atom_begin[r]; a < g->atom_end[r]; a += block) {
            int64_t n = at_most(block, g->atom_end[r] - a);
            int64_t first = g->args_at[r] + a * K;
            const int64_t *args = g->args + first;
            gather(n, K, args, x, D, in);
            for (int64_t i = 0; i < n * K; i++) {
                ivec row = (INTEGER)(first + i) - (ivec){0};
                for (int64_t d = 0; d < D; d += LANES) {
                    ivec won = *(const ivec *)(winner + args[i] * D + d) == row;
                    vec y = load(grad_strongest + args[i] * D + d);
                    store(out + i * D + d, (vec)((ivec)y & won));
                }
            }
            memcpy(grad_in, out, n * width * sizeof(REAL));
            mlp_backward(n, in, width, width, hidden + first * D, transposed + net->message_at[r],
                         out, grad_in, dw + net->message_at[r]);
            for (int64_t i = 0; i < n * K; i++)
                for (int64_t d = 0; d < D; d += LANES) {
                    REAL *at = grad + args[i] * D + d;
                    store(at, load(at) + load(grad_in + i * D + d));
                }
        }
    }
}

/* `grads` [W, N, D] are gradients of the embeddings after the `wanted` [W] rising depths, the last
 * one being the number of layers; `grad` and `grad_strongest` [N, D] are room to work in; the
 * weights' gradients are added to `dw`, laid out as the weights. */
void regoal_backward(const Network *net, const Graph *g, int64_t wanted, const int64_t *depths,
                     const REAL *grads, const Saved *saved, const REAL *transposed, REAL *grad,
                     REAL *grad_strongest, REAL *dw) {
    FLUSH_BEGIN;
    int64_t D = net->size, nodes = g->nodes * D, w = wanted - 1;
    int64_t from = g->node_begin * D, to = g->node_end * D;
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
                          saved->winner + l * nodes, grad_strongest, grad, dw);
    }
    FLUSH_END;
}
