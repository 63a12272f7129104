// The recurrence (GRU, LSTM) forward and backward, whole rollouts, and whole updates of a recurrent policy.
//
// Plain C++ with GCC/Clang vector extensions behind a C interface: no PyTorch headers, no BLAS, so it builds in seconds with
// any compiler of the kind and is called through ctypes, which drops the interpreter lock. Everything runs on the calling
// thread, and sums are added in an order that depends on the arguments' shapes alone: the same inputs give the same bits.
//
// Arrays are row-major and contiguous. T steps, B episodes, I inputs, H hidden units, A symbols. Weights are PyTorch's own:
// w_ih [G H, I], w_hh [G H, H] with gates r, z, n (GRU, G = 3) or i, f, g, o (LSTM, G = 4). h_0 = c_0 = 0.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#else
#define VECTOR_BYTES 32
#endif

namespace {

template <class F> struct Types;
template <> struct Types<float> {
  typedef float Vec __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));
  typedef int32_t Int __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));
  static constexpr float round = 12582912.0f, limit = 87.0f, ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;
  static constexpr int bias = 127, mantissa = 23, degree = 7;
};
template <> struct Types<double> {
  typedef double Vec __attribute__((vector_size(VECTOR_BYTES), aligned(8), may_alias));
  typedef int64_t Int __attribute__((vector_size(VECTOR_BYTES), aligned(8), may_alias));
  static constexpr double round = 6755399441055744.0, limit = 708.0;
  static constexpr double ln2_high = 6.93145751953125e-1, ln2_low = 1.42860682030941723212e-6;
  static constexpr int bias = 1023, mantissa = 52, degree = 14;
};
template <class F> using Vec = typename Types<F>::Vec;
template <class F> constexpr int lanes = VECTOR_BYTES / int(sizeof(F));

template <class F> inline Vec<F> load(const F *p, int n = lanes<F>) {
  Vec<F> v = {};
  if (n == lanes<F>) std::memcpy(&v, p, sizeof v);
  else std::memcpy(&v, p, n * sizeof(F));
  return v;
}
template <class F> inline void store(F *p, Vec<F> v, int n = lanes<F>) {
  if (n == lanes<F>) std::memcpy(p, &v, sizeof v);
  else std::memcpy(p, &v, n * sizeof(F));
}

// exp(x) − 1 to rounding: x = n ln 2 + r, then 2^n (exp(r) − 1) + (2^n − 1). NaN stays NaN; beyond ±limit it saturates,
// where sigmoid and tanh have long been constant.
template <class F> inline Vec<F> expm1(Vec<F> x) {
  typedef Types<F> K;
  x = x > K::limit ? Vec<F>{} + K::limit : x;
  x = x < -K::limit ? Vec<F>{} - K::limit : x;
  const Vec<F> n = (x * F(1.44269504088896340736) + K::round) - K::round;
  const Vec<F> r = (x - n * K::ln2_high) - n * K::ln2_low;
  F factorial = 1;
  F coefficient[K::degree + 1];
  for (int i = 1; i <= K::degree; i++) coefficient[i] = F(1) / (factorial *= i);
  Vec<F> p = Vec<F>{} + coefficient[K::degree];
  for (int i = K::degree - 1; i >= 1; i--) p = p * r + coefficient[i];
  p = p * r;
  typename K::Int exponent = __builtin_convertvector(n, typename K::Int);
  exponent = (exponent + K::bias) << K::mantissa;
  Vec<F> scale;
  std::memcpy(&scale, &exponent, sizeof scale);
  return scale * p + (scale - F(1));
}
template <class F> inline Vec<F> sigmoid(Vec<F> x) { return F(1) / (expm1<F>(-x) + F(2)); }
template <class F> inline Vec<F> tanh_(Vec<F> x) {
  const Vec<F> e = expm1<F>(x + x);
  return e / (e + F(2));
}

// --- C[M, N] = start + A[M, K] B[K, N], A by strides (so that Aᵀ needs no copy), B and C with unit column stride --------
// `start` is a row of N that stands for every row of it, or null for C as it is.

template <class F, int ROWS, int VECS>
inline void tile(const F *a, intptr_t row, intptr_t col, const F *b, intptr_t ldb, F *c, intptr_t ldc, int K, const F *start) {
  Vec<F> sum[ROWS][VECS];
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < VECS; j++) sum[i][j] = load((start ? start : c + i * ldc) + j * lanes<F>);
  for (int k = 0; k < K; k++) {
    Vec<F> right[VECS];
    for (int j = 0; j < VECS; j++) right[j] = load(b + k * ldb + j * lanes<F>);
    for (int i = 0; i < ROWS; i++) {
      const F left = a[i * row + k * col];
      for (int j = 0; j < VECS; j++) sum[i][j] += left * right[j];
    }
  }
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < VECS; j++) store(c + i * ldc + j * lanes<F>, sum[i][j]);
}

template <class F, int VECS>
inline void columns(const F *a, intptr_t row, intptr_t col, const F *b, intptr_t ldb, F *c, intptr_t ldc, int M, int K,
                    const F *start) {
  int m = 0;
  for (; m + 6 <= M; m += 6) tile<F, 6, VECS>(a + m * row, row, col, b, ldb, c + m * ldc, ldc, K, start);
  for (; m + 4 <= M; m += 4) tile<F, 4, VECS>(a + m * row, row, col, b, ldb, c + m * ldc, ldc, K, start);
  for (; m < M; m++) tile<F, 1, VECS>(a + m * row, row, col, b, ldb, c + m * ldc, ldc, K, start);
}

template <class F>
void multiply(const F *a, intptr_t row, intptr_t col, const F *b, intptr_t ldb, F *c, intptr_t ldc, int M, int N, int K,
              const F *start = nullptr) {
  int n = 0;
  for (; n + 2 * lanes<F> <= N; n += 2 * lanes<F>)
    columns<F, 2>(a, row, col, b + n, ldb, c + n, ldc, M, K, start ? start + n : nullptr);
  for (; n + lanes<F> <= N; n += lanes<F>)
    columns<F, 1>(a, row, col, b + n, ldb, c + n, ldc, M, K, start ? start + n : nullptr);
  for (int m = 0; n < N && m < M; m++)
    for (int j = n; j < N; j++) {
      F sum = start ? start[j] : c[m * ldc + j];
      for (int k = 0; k < K; k++) sum += a[m * row + k * col] * b[k * ldb + j];
      c[m * ldc + j] = sum;
    }
}

template <class F> inline F dot(const F *a, const F *b, int H) {
  Vec<F> sum = {};
  for (int j = 0; j < H; j += lanes<F>) {
    const int n = H - j < lanes<F> ? H - j : lanes<F>;
    sum += load(a + j, n) * load(b + j, n);
  }
  F total = 0;
  for (int i = 0; i < lanes<F>; i++) total += sum[i];
  return total;
}
template <class F> inline void add_scaled(F *to, F scale, const F *from, int H) {
  for (int j = 0; j < H; j += lanes<F>) {
    const int n = H - j < lanes<F> ? H - j : lanes<F>;
    store(to + j, load(to + j, n) + scale * load(from + j, n), n);
  }
}

template <class F> void transpose(const F *from, F *to, int rows, int cols) {
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < cols; j++) to[j * rows + i] = from[i * cols + j];
}

// --- one step of a cell, in place -----------------------------------------------------------------------------------------
//
// A row of the tape `s` of step t holds, for a GRU, r | z | u | n, where u = W_hn h + b_hn before the reset gate; for an
// LSTM, i | f | g | o | c | tanh c. The step finds the preactivations there.

template <class F> struct Cell {
  const F *w_ih, *w_hh, *b_ih, *b_hh;
  int I, H, gates, width;       // width of a row of the tape, in units of H
  std::vector<F> in, recurrent; // w_ihᵀ [I, G H] and w_hhᵀ [H, G H]
  std::vector<F> bias;          // what a row of the tape starts from; the GRU's n has its two biases apart
  Cell(const F *w_ih, const F *w_hh, const F *b_ih, const F *b_hh, int I, int H, bool lstm)
      : w_ih(w_ih), w_hh(w_hh), b_ih(b_ih), b_hh(b_hh), I(I), H(H), gates(lstm ? 4 : 3), width(lstm ? 6 : 4),
        in(size_t(I) * gates * H), recurrent(size_t(H) * gates * H), bias(size_t(4) * H) {
    transpose(w_ih, in.data(), gates * H, I);
    transpose(w_hh, recurrent.data(), gates * H, H);
    for (int j = 0; j < (lstm ? 4 : 2) * H; j++) bias[j] = b_ih[j] + b_hh[j];
    if (!lstm)
      for (int j = 0; j < H; j++) bias[2 * H + j] = b_hh[2 * H + j], bias[3 * H + j] = b_ih[2 * H + j];
  }
  bool lstm() const { return gates == 4; }

  // x [B, I], h [B, H] (null: zeros), c [B, ·] with row stride `width H` (null: zeros) → tape s [B, width H], h_next [B, H]
  void step(const F *x, const F *h, const F *c, F *s, F *h_next, int B) const {
    const intptr_t W = intptr_t(width) * H;
    if (lstm()) multiply(x, I, 1, in.data(), 4 * H, s, W, B, 4 * H, I, bias.data());
    else {
      multiply(x, I, 1, in.data(), 3 * H, s, W, B, 2 * H, I, bias.data());
      multiply(x, I, 1, in.data() + 2 * H, 3 * H, s + 3 * H, W, B, H, I, bias.data() + 3 * H);
      for (int b = 0; b < B; b++) std::memcpy(s + b * W + 2 * H, bias.data() + 2 * H, H * sizeof(F));
    }
    if (h) multiply(h, H, 1, recurrent.data(), gates * H, s, W, B, gates * H, H);
    for (int b = 0; b < B; b++) {
      F *row = s + b * W;
      for (int j = 0; j < H; j += lanes<F>) {
        const int n = H - j < lanes<F> ? H - j : lanes<F>;
        if (lstm()) {
          const Vec<F> i = sigmoid<F>(load(row + j, n)), f = sigmoid<F>(load(row + H + j, n));
          const Vec<F> g = tanh_<F>(load(row + 2 * H + j, n)), o = sigmoid<F>(load(row + 3 * H + j, n));
          const Vec<F> cell = c ? f * load(c + b * W + j, n) + i * g : i * g, squashed = tanh_<F>(cell);
          store(row + j, i, n), store(row + H + j, f, n), store(row + 2 * H + j, g, n), store(row + 3 * H + j, o, n);
          store(row + 4 * H + j, cell, n), store(row + 5 * H + j, squashed, n), store(h_next + b * H + j, o * squashed, n);
        } else {
          const Vec<F> r = sigmoid<F>(load(row + j, n)), z = sigmoid<F>(load(row + H + j, n));
          const Vec<F> u = load(row + 2 * H + j, n), candidate = tanh_<F>(load(row + 3 * H + j, n) + r * u);
          const Vec<F> before = h ? load(h + b * H + j, n) : Vec<F>{};
          store(row + j, r, n), store(row + H + j, z, n), store(row + 3 * H + j, candidate, n);
          store(h_next + b * H + j, candidate + z * (before - candidate), n);
        }
      }
    }
  }

  // dh [B, H] is the gradient of this step's h: it becomes that of the step before; dc likewise (LSTM). d [B, width H]
  // receives the gradients of the preactivations: r | z | u | n, or i | f | g | o.
  void step_back(const F *s, const F *h, const F *c, F *dh, F *dc, F *d, int B) const {
    const intptr_t W = intptr_t(width) * H;
    for (int b = 0; b < B; b++) {
      const F *row = s + b * W;
      F *out = d + b * W;
      for (int j = 0; j < H; j += lanes<F>) {
        const int k = H - j < lanes<F> ? H - j : lanes<F>;
        const Vec<F> grad = load(dh + b * H + j, k);
        if (lstm()) {
          const Vec<F> i = load(row + j, k), f = load(row + H + j, k), g = load(row + 2 * H + j, k), o = load(row + 3 * H + j, k);
          const Vec<F> squashed = load(row + 5 * H + j, k), before = c ? load(c + b * W + j, k) : Vec<F>{};
          const Vec<F> cell = load(dc + b * H + j, k) + grad * o * (F(1) - squashed * squashed);
          store(out + j, cell * g * i * (F(1) - i), k), store(out + H + j, cell * before * f * (F(1) - f), k);
          store(out + 2 * H + j, cell * i * (F(1) - g * g), k), store(out + 3 * H + j, grad * squashed * o * (F(1) - o), k);
          store(dc + b * H + j, cell * f, k), store(dh + b * H + j, Vec<F>{}, k);
        } else {
          const Vec<F> r = load(row + j, k), z = load(row + H + j, k), u = load(row + 2 * H + j, k), n = load(row + 3 * H + j, k);
          const Vec<F> before = h ? load(h + b * H + j, k) : Vec<F>{};
          const Vec<F> dn = grad * (F(1) - z) * (F(1) - n * n);
          store(out + j, dn * u * r * (F(1) - r), k), store(out + H + j, grad * (before - n) * z * (F(1) - z), k);
          store(out + 2 * H + j, dn * r, k), store(out + 3 * H + j, dn, k), store(dh + b * H + j, grad * z, k);
        }
      }
    }
    if (h) multiply(d, W, 1, w_hh, H, dh, H, B, H, gates * H);
  }
};

// --- whole sequences --------------------------------------------------------------------------------------------------------

template <class F> void forward(const Cell<F> &cell, int T, int B, const F *x, F *tape, F *hs) {
  const int I = cell.I, H = cell.H;
  const size_t S = size_t(B) * cell.width * H, N = size_t(B) * H;
  for (int t = 0; t < T; t++)
    cell.step(x + size_t(t) * B * I, t ? hs + (t - 1) * N : nullptr, t && cell.lstm() ? tape + (t - 1) * S + 4 * H : nullptr,
              tape + t * S, hs + t * N, B);
}

// dhs [T, B, H] → gradients of the weights (transposed: dw_ih [I, G H], dw_hh [H, G H]) and biases, all zero on entry;
// dx [T, B, I] (zero on entry) if it is not null. Every step's share is added while its gradients are still in the cache.
template <class F>
void backward(const Cell<F> &cell, int T, int B, const F *x, const F *tape, const F *hs, const F *dhs, F *dw_ih, F *dw_hh,
              F *db_ih, F *db_hh, F *dx) {
  const int I = cell.I, H = cell.H;
  const bool lstm = cell.lstm();
  const F *w_ih = cell.w_ih;
  const intptr_t W = intptr_t(cell.width) * H, G = cell.gates * H;
  const size_t S = size_t(B) * W, N = size_t(B) * H;
  std::vector<F> dh(N, F(0)), dc(lstm ? N : 0, F(0)), scratch(S), db(W, F(0));
  F *const d = scratch.data();
  for (int t = T - 1; t >= 0; t--) {
    const F *before = t ? hs + (t - 1) * N : nullptr, *xt = x + size_t(t) * B * I;
    for (size_t i = 0; i < N; i++) dh[i] += dhs[t * N + i];
    cell.step_back(tape + t * S, before, t && lstm ? tape + (t - 1) * S + 4 * H : nullptr, dh.data(), dc.data(), d, B);
    if (t) multiply(before, 1, H, d, W, dw_hh, G, H, int(G), B);
    for (int b = 0; b < B; b++)
      for (int j = 0; j < 4 * H; j++) db[j] += d[b * W + j];
    F *dxt = dx ? dx + size_t(t) * B * I : nullptr;
    if (lstm) {
      multiply(xt, 1, I, d, W, dw_ih, G, I, int(G), B);
      if (dx) multiply(d, W, 1, w_ih, I, dxt, I, B, I, 4 * H);
    } else { // the input meets r | z | n, the state r | z | u
      multiply(xt, 1, I, d, W, dw_ih, G, I, 2 * H, B);
      multiply(xt, 1, I, d + 3 * H, W, dw_ih + 2 * H, G, I, H, B);
      if (dx) {
        multiply(d, W, 1, w_ih, I, dxt, I, B, I, 2 * H);
        multiply(d + 3 * H, W, 1, w_ih + size_t(2) * H * I, I, dxt, I, B, I, H);
      }
    }
  }
  for (int j = 0; j < G; j++) db_hh[j] = db[j], db_ih[j] = !lstm && j >= 2 * H ? db[H + j] : db[j];
}

// --- rollouts -----------------------------------------------------------------------------------------------------------------

// The loop of rlstate/learning/rollout.py. Observations come with everything filled in but the last symbol (from column 0)
// and the leaked colour (from column `colour_at`; `leak` is null where nothing leaks).
template <class F>
void play(int lstm, int T, int B, int I, int H, int A, int greedy, const F *w_ih, const F *w_hh, const F *b_ih, const F *b_hh,
          const F *w_policy, const F *b_policy, const F *w_value, const F *b_value, const int64_t *transitions,
          const uint8_t *controllable, const int64_t *random_symbol, const float *choice, const uint8_t *leak,
          const int64_t *colouring, int colour_at, F *x, int64_t *symbols, int64_t *states, int64_t *colours, F *hs, F *logits,
          F *values) {
  const Cell<F> cell(w_ih, w_hh, b_ih, b_hh, I, H, lstm);
  const size_t S = size_t(B) * cell.width * H, N = size_t(B) * H;
  std::vector<F> tape(2 * S), p(A);
  for (int t = 0; t < T; t++) {
    const size_t at = size_t(t) * B;
    for (int b = 0; b < B; b++) {
      if (t) x[(at + b) * I + symbols[at - B + b]] = F(1);
      if (leak && leak[at + b]) {
        colours[at + b] = colouring[states[at + b]];
        x[(at + b) * I + colour_at + colours[at + b]] = F(1);
      }
    }
    F *now = tape.data() + (t % 2) * S;
    const F *before = tape.data() + ((t + 1) % 2) * S;
    cell.step(x + at * I, t ? hs + (t - 1) * N : nullptr, t && lstm ? before + 4 * H : nullptr, now, hs + t * N, B);
    for (int b = 0; b < B; b++) {
      const F *h = hs + t * N + size_t(b) * H;
      F *logit = logits + (at + b) * A;
      for (int a = 0; a <= A; a++) {
        const F total = a < A ? b_policy[a] + dot(h, w_policy + size_t(a) * H, H) : *b_value + dot(h, w_value, H);
        (a < A ? logit[a] : values[at + b]) = total;
      }
      int64_t symbol = random_symbol[at + b];
      if (controllable[at + b]) {
        int best = 0;
        for (int a = 1; a < A; a++)
          if (logit[a] > logit[best]) best = a;
        symbol = best;
        if (!greedy) {
          F total = 0, cumulative = 0;
          for (int a = 0; a < A; a++) total += p[a] = std::exp(logit[a] - logit[best]);
          for (symbol = 0; symbol < A - 1; symbol++)
            if (F(choice[at + b]) < (cumulative += p[symbol] / total)) break;
        }
      }
      symbols[at + b] = symbol;
      states[at + B + b] = transitions[states[at + b] * A + symbol];
    }
  }
}

// --- the linear heads and the loss of rlstate/learning/objectives.py, and their gradient --------------------------------------

// features h [N, H] → terms: policy loss, value loss, entropy; and the gradients of
// policy loss + value_weight · value loss − entropy_weight · entropy in the features and the heads' weights (zero on entry).
template <class F>
void loss(int ppo, int N, int H, int A, F clip, F value_weight, F entropy_weight, const F *features, const F *w_policy,
          const F *b_policy, const F *w_value, const F *b_value, const int64_t *symbols, const uint8_t *controllable,
          const F *old_log_probs, const F *advantages, const F *targets, F *terms, F *dfeatures, F *dw_policy, F *db_policy,
          F *dw_value, F *db_value) {
  int count = 0;
  for (int i = 0; i < N; i++) count += controllable[i] != 0;
  const F weight = F(1) / F(count > 1 ? count : 1);
  double policy = 0, value = 0, entropies = 0;
  std::vector<F> logit(A), p(A), log_p(A);
  for (int i = 0; i < N; i++) {
    const F *h = features + size_t(i) * H;
    F *dh = dfeatures + size_t(i) * H;
    const F miss = *b_value + dot(h, w_value, H) - targets[i];
    const F dvalue = value_weight * F(2) * miss / F(N);
    value += double(miss) * miss;
    add_scaled(dh, dvalue, w_value, H), add_scaled(dw_value, dvalue, h, H), *db_value += dvalue;
    if (!controllable[i]) continue;

    for (int a = 0; a < A; a++) logit[a] = b_policy[a] + dot(h, w_policy + size_t(a) * H, H);
    F highest = logit[0], total = 0, entropy = 0;
    for (int a = 1; a < A; a++) highest = logit[a] > highest ? logit[a] : highest;
    for (int a = 0; a < A; a++) total += std::exp(logit[a] - highest);
    const F normalizer = highest + std::log(total);
    for (int a = 0; a < A; a++) log_p[a] = logit[a] - normalizer, p[a] = std::exp(log_p[a]), entropy -= p[a] * log_p[a];
    const F advantage = advantages[i];
    F slope = advantage; // of the surrogate in the log-probability
    if (ppo) {
      const F ratio = std::exp(log_p[symbols[i]] - old_log_probs[i]);
      const F clipped = ratio < F(1) - clip ? F(1) - clip : ratio > F(1) + clip ? F(1) + clip : ratio;
      const bool stopped = clipped * advantage < ratio * advantage;
      policy -= double(stopped ? clipped * advantage : ratio * advantage);
      slope = stopped ? F(0) : ratio * advantage;
    } else
      policy -= double(log_p[symbols[i]] * advantage);
    entropies += entropy;
    for (int a = 0; a < A; a++) {
      const F dlogit = weight * (slope * (p[a] - F(a == symbols[i])) + entropy_weight * p[a] * (log_p[a] + entropy));
      add_scaled(dh, dlogit, w_policy + size_t(a) * H, H), add_scaled(dw_policy + size_t(a) * H, dlogit, h, H);
      db_policy[a] += dlogit;
    }
  }
  terms[0] = F(policy) * weight, terms[1] = F(value / N), terms[2] = F(entropies) * weight;
}

// --- one update: forward, loss, backward, clipping, Adam; in place --------------------------------------------------------------

// A cross-entropy of some columns of the auxiliary head: labels and row weights [N]; the mean over rows weighted so.
template <class F>
F cross_entropy(int N, int H, int columns, F scale, const F *features, const F *w, const F *b, const int64_t *labels,
                const F *weights, F *dfeatures, F *dw, F *db) {
  F total_weight = 0;
  for (int i = 0; i < N; i++) total_weight += weights[i];
  total_weight = total_weight > F(1) ? total_weight : F(1);
  double sum = 0;
  std::vector<F> p(columns);
  for (int i = 0; i < N; i++) {
    if (weights[i] == F(0)) continue;
    const F *h = features + size_t(i) * H, weight = weights[i] / total_weight;
    for (int a = 0; a < columns; a++) p[a] = b[a] + dot(h, w + size_t(a) * H, H);
    const F highest = *std::max_element(p.begin(), p.end()), chosen = p[labels[i]];
    F total = 0;
    for (int a = 0; a < columns; a++) total += p[a] = std::exp(p[a] - highest);
    sum += double(weight) * (highest + std::log(total) - chosen);
    for (int a = 0; a < columns; a++) {
      const F d = scale * weight * (p[a] / total - F(a == labels[i]));
      add_scaled(dfeatures + size_t(i) * H, d, w + size_t(a) * H, H), add_scaled(dw + size_t(a) * H, d, h, H);
      db[a] += d;
    }
  }
  return F(sum);
}

// The episodes of a minibatch out of [T, B, width]: `to` is [T, b, width].
template <class V> const V *gather(const V *from, std::vector<V> &to, int T, int B, int width, const int64_t *episodes, int b) {
  if (!episodes) return from;
  to.resize(size_t(T) * b * width);
  for (int t = 0; t < T; t++)
    for (int e = 0; e < b; e++)
      std::copy_n(from + (size_t(t) * B + episodes[e]) * width, width, to.data() + (size_t(t) * b + e) * width);
  return to.data();
}

// weights, means, squares, steps: w_ih, w_hh, b_ih, b_hh, w_policy, b_policy, w_value, b_value[, w_auxiliary, b_auxiliary] and
// Adam's state of each (Kingma & Ba, 2015). `episodes` [b] picks the minibatch out of the batch's B; null: all of them.
// `groups` cross-entropies, each of the head's columns from `columns[2 g]` on, `columns[2 g + 1]` many.
// → terms: policy loss, value loss, entropy, auxiliary loss, norm of the gradient. Nothing is touched if the norm is not finite.
template <class F>
void update(int lstm, int ppo, int T, int B, int I, int H, int A, int O, const int64_t *episodes, int b, F clip, F value_weight,
            F entropy_weight, F auxiliary_weight, F max_norm, F rate, F beta1, F beta2, F eps, F **weights, F **means,
            F **squares, float **steps, const F *x, const int64_t *symbols, const uint8_t *controllable, const F *old_log_probs,
            const F *advantages, const F *targets, int groups, const int *columns, const int64_t **labels,
            const F **label_weights, F *terms) {
  const int G = lstm ? 4 : 3, N = T * b, count = O ? 10 : 8;
  const size_t sizes[10] = {size_t(G) * H * I, size_t(G) * H * H, size_t(G) * H, size_t(G) * H, size_t(A) * H, size_t(A),
                            size_t(H),         1,                 size_t(O) * H, size_t(O)};
  // Kept between calls: fresh memory of this size is zeroed by the system page by page, a tenth of an iteration.
  static thread_local std::vector<F> tape, hs, dhs, gradients, transposed, gathered[5];
  static thread_local std::vector<int64_t> gathered_labels[2];
  static thread_local std::vector<uint8_t> gathered_control;
  size_t total = 0;
  for (int i = 0; i < count; i++) total += sizes[i];
  tape.resize(size_t(N) * (lstm ? 6 : 4) * H), hs.resize(size_t(N) * H), dhs.assign(size_t(N) * H, F(0));
  gradients.assign(total, F(0)), transposed.assign(sizes[0] + sizes[1], F(0));
  F *gradient[10] = {gradients.data()};
  for (int i = 1; i < count; i++) gradient[i] = gradient[i - 1] + sizes[i - 1];

  const Cell<F> cell(weights[0], weights[1], weights[2], weights[3], I, H, lstm);
  x = gather(x, gathered[0], T, B, I, episodes, b);
  forward(cell, T, b, x, tape.data(), hs.data());
  loss<F>(ppo, N, H, A, clip, value_weight, entropy_weight, hs.data(), weights[4], weights[5], weights[6], weights[7],
          gather(symbols, gathered_labels[0], T, B, 1, episodes, b), gather(controllable, gathered_control, T, B, 1, episodes, b),
          gather(old_log_probs, gathered[1], T, B, 1, episodes, b), gather(advantages, gathered[2], T, B, 1, episodes, b),
          gather(targets, gathered[3], T, B, 1, episodes, b), terms, dhs.data(), gradient[4], gradient[5], gradient[6],
          gradient[7]);
  terms[3] = 0;
  for (int g = 0; g < groups; g++) {
    const int first = columns[2 * g];
    terms[3] += cross_entropy<F>(N, H, columns[2 * g + 1], auxiliary_weight, hs.data(), weights[8] + size_t(first) * H,
                                 weights[9] + first, gather(labels[g], gathered_labels[1], T, B, 1, episodes, b),
                                 gather(label_weights[g], gathered[4], T, B, 1, episodes, b), dhs.data(),
                                 gradient[8] + size_t(first) * H, gradient[9] + first);
  }
  F *const dw_ih = transposed.data(), *const dw_hh = dw_ih + sizes[0];
  backward<F>(cell, T, b, x, tape.data(), hs.data(), dhs.data(), dw_ih, dw_hh, gradient[2], gradient[3], nullptr);
  transpose(dw_ih, gradient[0], I, G * H), transpose(dw_hh, gradient[1], H, G * H);

  double squared = 0;
  for (size_t i = 0; i < total; i++) squared += double(gradients[i]) * gradients[i];
  terms[4] = F(std::sqrt(squared));
  if (!std::isfinite(terms[4])) return;
  const F shrink = std::min(F(1), max_norm / (terms[4] + F(1e-6)));
  for (int i = 0; i < count; i++) {
    const double step = *steps[i] += 1;
    const F size = F(rate / (1 - std::pow(double(beta1), step))), root = F(std::sqrt(1 - std::pow(double(beta2), step)));
    F *const w = weights[i], *const m = means[i], *const v = squares[i];
    for (size_t j = 0; j < sizes[i]; j++) {
      const F g = gradient[i][j] * shrink;
      m[j] += (F(1) - beta1) * (g - m[j]), v[j] = beta2 * v[j] + (F(1) - beta2) * g * g;
      w[j] -= size * m[j] / (std::sqrt(v[j]) / root + eps);
    }
  }
}

} // namespace

#define EXPORT(F, NAME)                                                                                                        \
  extern "C" void forward_##NAME(int lstm, int T, int B, int I, int H, const F *x, const F *w_ih, const F *w_hh,               \
                                 const F *b_ih, const F *b_hh, F *tape, F *hs) {                                               \
    forward(Cell<F>(w_ih, w_hh, b_ih, b_hh, I, H, lstm), T, B, x, tape, hs);                                                   \
  }                                                                                                                            \
  extern "C" void backward_##NAME(int lstm, int T, int B, int I, int H, const F *x, const F *w_ih, const F *w_hh,              \
                                  const F *b_ih, const F *b_hh, const F *tape, const F *hs, const F *dhs, F *dw_ih, F *dw_hh,  \
                                  F *db_ih, F *db_hh, F *dx) {                                                                 \
    backward(Cell<F>(w_ih, w_hh, b_ih, b_hh, I, H, lstm), T, B, x, tape, hs, dhs, dw_ih, dw_hh, db_ih, db_hh, dx);             \
  }                                                                                                                            \
  extern "C" void play_##NAME(int lstm, int T, int B, int I, int H, int A, int greedy, const F *w_ih, const F *w_hh,           \
                              const F *b_ih, const F *b_hh, const F *w_policy, const F *b_policy, const F *w_value,            \
                              const F *b_value, const int64_t *transitions, const uint8_t *controllable,                       \
                              const int64_t *random_symbol, const float *choice, const uint8_t *leak,                          \
                              const int64_t *colouring, int colour_at, F *x, int64_t *symbols, int64_t *states,                \
                              int64_t *colours, F *hs, F *logits, F *values) {                                                 \
    play<F>(lstm, T, B, I, H, A, greedy, w_ih, w_hh, b_ih, b_hh, w_policy, b_policy, w_value, b_value, transitions,            \
            controllable, random_symbol, choice, leak, colouring, colour_at, x, symbols, states, colours, hs, logits, values); \
  }                                                                                                                            \
  extern "C" void update_##NAME(int lstm, int ppo, int T, int B, int I, int H, int A, int O, int updates,                      \
                                const int64_t *episodes, const int *sizes, F clip, F value_weight, F entropy_weight, F auxiliary_weight, F max_norm, F rate, F beta1,     \
                                F beta2, F eps, F **weights, F **means, F **squares, float **steps, const F *x,                \
                                const int64_t *symbols, const uint8_t *controllable, const F *old_log_probs,                   \
                                const F *advantages, const F *targets, int groups, const int *columns, const int64_t **labels, \
                                const F **label_weights, F *terms) {                                                           \
    for (int u = 0; u < updates; u++) {                                                                                        \
      update<F>(lstm, ppo, T, B, I, H, A, O, episodes, sizes[u], clip, value_weight, entropy_weight, auxiliary_weight,         \
                max_norm, rate, beta1, beta2, eps, weights, means, squares, steps, x, symbols, controllable, old_log_probs,    \
                advantages, targets, groups, columns, labels, label_weights, terms);                                           \
      if (!std::isfinite(terms[4])) return;                                                                                    \
      if (episodes) episodes += sizes[u];                                                                                      \
    }                                                                                                                          \
  }
EXPORT(float, f32)
EXPORT(double, f64)
