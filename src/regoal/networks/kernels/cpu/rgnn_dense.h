/* Vectors, products of a few rows, and Mish. */
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
#elif defined(__AVX__)
#define VECTOR_BYTES 32
#define TILE_COLUMNS 2
#else
#define VECTOR_BYTES 16
#define TILE_COLUMNS 2
#endif
#define TILE_ROWS 6
#define MOST_ROWS 12     /* rows in a tile of two columns */
#define LANES ((int)(VECTOR_BYTES / sizeof(REAL)))
#define MAX_WIDTH 1024  /* the most that K * D and 2 * D may be */
#define MAX_ARITY (MAX_WIDTH / 16)
#define MAX_ROWS 48     /* so few rows stay in the nearer caches during one MLP */
#define ROOM (48 * 256) /* numbers in one block of rows; a few blocks fit on a thread's stack */
#define INLINE static inline __attribute__((always_inline))

typedef REAL vec __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(REAL)), may_alias));
typedef INTEGER ivec __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(REAL)), may_alias));

INLINE vec load(const REAL *p) { return *(const vec *)p; }
INLINE void store(REAL *p, vec v) { *(vec *)p = v; }
INLINE vec splat(REAL x) { return x - (vec){0}; }

/* For vectors of sixteen numbers, one instruction does what the general forms below spell out. */
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
INLINE REAL total_of(vec x) { return _mm512_reduce_add_ps((__m512)x); }
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
INLINE REAL total_of(vec x) {
    for (int n = LANES / 2; n; n /= 2)
        for (int i = 0; i < n; i++) x[i] += x[i + n];
    return x[0];
}
#ifndef DOUBLE
INLINE vec nearest(vec x) { return (x + splat(12582912.0f)) - splat(12582912.0f); }
INLINE vec times_two_to(vec x, vec n) {
    ivec power = __builtin_convertvector(-at_most(-n, splat(126.0f)), ivec);
    return x * (vec)((power + 127) << 23);
}
#endif
#endif

/* Gradients become tiny over many rounds. Arithmetic on numbers too small for a full mantissa is a
 * hundred times slower. So they count as zero while a shard is computed. */
#ifdef __SSE2__
#define FLUSH_BEGIN unsigned int flush_before = _mm_getcsr(); _mm_setcsr(flush_before | 0x8040)
#define FLUSH_END _mm_setcsr(flush_before)
#else
#define FLUSH_BEGIN
#define FLUSH_END
#endif

static int64_t min_of(int64_t limit, int64_t count) { return count < limit ? count : limit; }

/* Return how many rows of this width are one block. */
static int64_t block_rows(int64_t width) { return min_of(MAX_ROWS, ROOM / width); }

/* ---- dense products of a few rows ----
 * A matrix is given by its first number and by the step from one row to the next. */

/* Compute out[r, :] = bias + rows[r, :] @ weight for R rows and C vectors of columns. If `add`, the
 * product is added to out instead of to the bias. */
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

/* Take R rows at once while there are so many, then S, then one. R fits into the registers. */
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

/* Compute out [n, outputs] = bias + rows [n, inputs] @ weight [inputs, outputs]; if `add`, add the
 * product to out. */
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

/* Add rows^T [inputs, n] @ grads [n, outputs] to out [inputs, outputs]. `inputs` is a multiple of
 * 4. */
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

/* Add the sum of all rows to `out` [width]. */
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

/* Compute out = mish(x), and multiply grad by mish'(x). */
static void mish_backward(int64_t count, const REAL *x, REAL *out, REAL *grad) {
    for (int64_t i = 0; i < count; i += LANES) {
        vec v = load(x + i), e = exponential(at_most(v, splat(20))), n = e * (e + 2);
        vec inverse = reciprocal(n + 2), share = n * inverse;
        store(out + i, v * share);
        store(grad + i, load(grad + i) * (share + v * (4 * e * (e + 1) * inverse * inverse)));
    }
}
